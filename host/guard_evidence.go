package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// evidenceFile is a file of samples that stays below its limit and still covers the whole trial: when it is full,
// each two lines become one, and from then on each line stands for twice as many seconds.
type evidenceFile struct {
	path  string
	limit int64

	file *os.File
	size int64
	per  int // samples a line
	open []GuardSample
}

// add writes a sample, or keeps it until its line is whole.
func (e *evidenceFile) add(s GuardSample) error {
	if e.per == 0 {
		e.per = 1
	}
	if e.open = append(e.open, s); len(e.open) < e.per {
		return nil
	}
	return e.flush()
}

func (e *evidenceFile) flush() error {
	if len(e.open) == 0 {
		return nil
	}
	s := e.open[0]
	for _, next := range e.open[1:] {
		s = next.join(s)
	}
	e.open = nil
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write evidence: %w", err)
	}
	line = append(line, '\n')
	if err := e.ready(int64(len(line))); err != nil {
		return fmt.Errorf("write evidence: %w", err)
	}
	if _, err := e.file.Write(line); err != nil { // a full disk may have taken half a line
		return fmt.Errorf("write evidence: %w", errors.Join(err, e.file.Truncate(e.size)))
	}
	e.size += int64(len(line))
	return nil
}

// ready opens the file and makes room in it.
func (e *evidenceFile) ready(room int64) error {
	if e.file == nil {
		f, err := os.OpenFile(e.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		e.file, e.size = f, info.Size()
	}
	if e.size+room <= e.limit {
		return nil
	}
	if err := errors.Join(e.file.Close(), e.thin()); err != nil {
		e.file = nil
		return err
	}
	e.file = nil
	e.per *= 2
	f, err := os.OpenFile(e.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	e.file = f
	if e.size+room > e.limit {
		return fmt.Errorf("%s is full: %d bytes are too few", e.path, e.limit)
	}
	return nil
}

// thin joins each two lines. A line that is no sample (cut off by a crash) is dropped.
func (e *evidenceFile) thin() error {
	b, err := os.ReadFile(e.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var out bytes.Buffer
	var before *GuardSample
	enc := json.NewEncoder(&out)
	for line := range bytes.Lines(b) {
		var s GuardSample
		if json.Unmarshal(line, &s) != nil {
			continue
		}
		if before == nil {
			before = &s
			continue
		}
		if err := enc.Encode(s.join(*before)); err != nil {
			return err
		}
		before = nil
	}
	if before != nil {
		if err := enc.Encode(before); err != nil {
			return err
		}
	}
	e.size = int64(out.Len())
	return writeWhole(e.path, out.Bytes())
}

func (e *evidenceFile) close() error {
	err := e.flush()
	if e.file != nil {
		err = errors.Join(err, e.file.Sync(), e.file.Close())
		e.file = nil
	}
	return err
}
