package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// indexStep is the distance of the places of a log whose line numbers are remembered.
const indexStep = 1 << 20

// indexesKept is how many logs' line numbers are remembered: 2 GB take 16 KiB.
const indexesKept = 32

// logIndexes remember where lines lie in logs that were looked at. A log is counted as far as somebody wanted
// to know, once, a block at a time, and on from there when it grows.
type logIndexes struct {
	mu  sync.Mutex
	all []*logIndex // the newest last
}

// logIndex knows how many lines begin before places of one log.
type logIndex struct {
	mu    sync.Mutex
	info  os.FileInfo
	done  int64 // bytes counted
	lines int   // line ends in them
	marks []int // marks[i]: line ends in the first i*indexStep bytes
}

// of is the index of a file; another file under the same name begins anew.
func (x *logIndexes) of(info os.FileInfo) *logIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, known := range x.all {
		if os.SameFile(known.info, info) {
			return known
		}
	}
	if len(x.all) == indexesKept {
		x.all = x.all[1:]
	}
	fresh := &logIndex{info: info}
	x.all = append(x.all, fresh)
	return fresh
}

// count counts lines until enough says so or the file ends.
func (x *logIndex) count(ctx context.Context, f io.ReaderAt, size int64, enough func() bool) error {
	if size < x.done { // it was cut: what was counted is not there any more
		x.done, x.lines, x.marks = 0, 0, nil
	}
	if len(x.marks) == 0 {
		x.marks = []int{0}
	}
	block := make([]byte, indexStep)
	for x.done < size && !enough() {
		if err := ctx.Err(); err != nil {
			return err
		}
		want := min(indexStep-x.done%indexStep, size-x.done)
		n, err := f.ReadAt(block[:want], x.done)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return nil
		}
		x.lines += bytes.Count(block[:n], newline)
		if x.done += int64(n); x.done%indexStep == 0 {
			x.marks = append(x.marks, x.lines)
		}
	}
	return nil
}

var newline = []byte{'\n'}

// total is the number of lines of a log; a last one without an end counts.
func (x *logIndex) total(ctx context.Context, f io.ReaderAt, size int64) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.count(ctx, f, size, func() bool { return false }); err != nil || size == 0 {
		return 0, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, size-1); err != nil {
		return 0, err
	}
	if last[0] != '\n' {
		return x.lines + 1, nil
	}
	return x.lines, nil
}

// offset is where a line begins (lines count from 1), or where the last one does.
func (x *logIndex) offset(ctx context.Context, f io.ReaderAt, size int64, line int) (int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := max(0, line-1) // line ends before it
	if err := x.count(ctx, f, size, func() bool { return x.lines >= before }); err != nil {
		return 0, err
	}
	if before > x.lines {
		return lineStart(f, size-1)
	}
	i := 0
	for i+1 < len(x.marks) && x.marks[i+1] < before {
		i++
	}
	at, ends := int64(i)*indexStep, x.marks[i]
	block := make([]byte, 64<<10)
	for ends < before {
		n, err := f.ReadAt(block[:min(int64(len(block)), size-at)], at)
		if n == 0 {
			return at, err
		}
		for rest := block[:n]; ends < before; {
			j := bytes.IndexByte(rest, '\n')
			if j < 0 {
				at += int64(len(rest))
				break
			}
			ends, at, rest = ends+1, at+int64(j)+1, rest[j+1:]
		}
	}
	return at, nil
}

// line is the number of the line that begins at an offset.
func (x *logIndex) line(ctx context.Context, f io.ReaderAt, size, offset int64) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.count(ctx, f, size, func() bool { return x.done >= offset }); err != nil {
		return 0, err
	}
	i := min(int(offset/indexStep), len(x.marks)-1)
	at, ends := int64(i)*indexStep, x.marks[i]
	block := make([]byte, 64<<10)
	for at < offset {
		n, err := f.ReadAt(block[:min(int64(len(block)), offset-at)], at)
		if n == 0 {
			return 0, err
		}
		ends, at = ends+bytes.Count(block[:n], newline), at+int64(n)
	}
	return ends + 1, nil
}

// farthestBack is how far the beginning of a line is looked for; a longer line is shown from there.
const farthestBack = 1 << 20

// lineStart is where the line begins that holds the byte at an offset.
func lineStart(f io.ReaderAt, at int64) (int64, error) {
	block := make([]byte, 16<<10)
	for end := at; end > 0 && at-end < farthestBack; {
		from := max(0, end-int64(len(block)))
		n, err := f.ReadAt(block[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		if end = from; end == 0 {
			return 0, nil
		}
	}
	return max(0, at-farthestBack), nil
}

// back is where the line begins that is so many lines before the line at an offset, or as many as there are.
func back(f io.ReaderAt, at int64, lines int) (from int64, passed int, err error) {
	for from = at; passed < lines && from > 0; passed++ {
		if from, err = lineStart(f, from-1); err != nil {
			return 0, 0, err
		}
	}
	return from, passed, nil
}
