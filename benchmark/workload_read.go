package benchmark

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// ReadWorkload reads a workload file and guesses its format, time unit and block size.
func ReadWorkload(path string) (*Workload, error) { return ReadWorkloadAs(path, ReadOptions{}) }

// ReadWorkloadAs reads a workload file with some things said beforehand. Rows that cannot be used
// are dropped and counted by reason; a file without a usable row is an error. Rows of a small file
// are kept; a big one is read once to count its rows and note where they are, and again row by row
// when they are asked for.
func ReadWorkloadAs(path string, opts ReadOptions) (*Workload, error) {
	b, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return readWorkload(b, opts, keepBytes)
}

// keepBytes is how much memory rows may take before they are left on disk.
const keepBytes = 32 << 20

func readWorkload(b *fileBytes, opts ReadOptions, keep int64) (*Workload, error) {
	if opts.TimeUnit != "" && opts.TimeUnit != unitSeconds && opts.TimeUnit != unitMillis {
		return nil, fmt.Errorf("%s: time unit %q: choose s or ms", b.path, opts.TimeUnit)
	}
	l, err := detectLayout(b, opts.Format)
	if err != nil {
		return nil, err
	}
	s := &scan{file: b, layout: l, opts: opts, keep: keep, dropped: map[string]int{}, ordered: true}
	if err := s.read(); err != nil {
		return nil, err
	}
	w := &Workload{Path: b.path, Format: l.name, Dropped: s.dropped}
	if s.kept == 0 {
		return nil, w.nothing(l, s.firstBad)
	}
	return w, s.finish(w)
}

// nothing is the error for a file without a usable row; line is that of the first row, 0 without any.
func (w *Workload) nothing(l *layout, line int) error {
	if len(w.Dropped) == 0 {
		return fmt.Errorf("%s: has no row; a row looks like %s", w.Path, l.format.example)
	}
	example := l.format.example
	if l.name == "" {
		example = examples()
	}
	return fmt.Errorf("%s:%d: no usable row: %s; a row looks like %s", w.Path, line, w.droppedText(), example)
}

// droppedText lists the reasons, for example "bad_json 2, zero_input_tokens 1".
func (w *Workload) droppedText() string {
	var parts []string
	for reason, n := range w.Dropped {
		parts = append(parts, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// scan is the first reading of a file: it counts, and keeps the rows or notes where they are.
type scan struct {
	file   *fileBytes
	layout *layout
	opts   ReadOptions
	keep   int64

	dropped    map[string]int
	number     int // rows so far, dropped ones too
	kept       int
	firstBad   int     // line of the first row that was dropped
	entries    []entry // nil once they take more than keep
	entryBytes int64
	index      rowIndex

	times  timeScan
	block  blockRange
	linker linker
	chats  chatRoots
	facts  *facts // once entries are no longer kept

	ordered bool // rows come in order of time
}

func (s *scan) read() error {
	rows, err := s.layout.rows(s.file)
	if err != nil {
		return s.file.readError(1, err)
	}
	var room []int64
	for {
		row, err := rows.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.file.readError(row.line, err)
		}
		e := entry{room: room}
		if drop := s.layout.parse(row.text, &e); drop != "" {
			if s.dropped[drop]++; s.firstBad == 0 {
				s.firstBad = row.line
			}
		} else if err := s.take(&e, row); err != nil {
			return fmt.Errorf("%s:%d: %w", s.file.path, row.line, err)
		}
		s.number++
		if s.facts != nil {
			room = e.row.HashIDs // nobody keeps them
		}
	}
}

// take takes a usable row.
func (s *scan) take(e *entry, row rowText) error {
	e.row.Number = s.number
	s.chats.add(e)
	if s.layout.format.sessions {
		if !s.linker.add(s.kept, e.row.Session, e.row.Follows) {
			e.row.Follows = false
		}
		if s.linker.full() {
			return fmt.Errorf("more than %d turns or sessions; split the file", maxLinks)
		}
	}
	if !s.times.add(e) {
		s.ordered = false
	}
	s.block.add(len(e.row.HashIDs), e.row.InputTokens)
	s.index.add(row, s.kept, s.number)
	s.kept++
	if s.facts != nil {
		s.count(e)
		return nil
	}
	s.entries = append(s.entries, *e)
	if s.entryBytes += e.bytes(); s.entryBytes > s.keep {
		s.leaveOnDisk()
	}
	return nil
}

// leaveOnDisk stops keeping rows: from here on they are only counted.
func (s *scan) leaveOnDisk() {
	block, _ := s.blockTokens()
	s.facts = &facts{prefix: prefixTally{block: block}}
	for i := range s.entries {
		s.count(&s.entries[i])
	}
	s.entries = nil
}

func (s *scan) count(e *entry) {
	s.facts.add(e.row)
	if e.timed && !e.row.Follows {
		s.facts.gaps.add(e.at.minus(s.times.first))
	}
}

// blockTokens is how many tokens a hash id stands for: what the user said, else what the rows seen so far
// agree with.
func (s *scan) blockTokens() (block int, ok bool) {
	if s.block.rows == 0 {
		return 0, true
	}
	if s.opts.BlockTokens > 0 {
		return s.opts.BlockTokens, true
	}
	return s.block.block(max(1, s.layout.format.block))
}

// bytes estimates the memory an entry takes.
func (e *entry) bytes() int64 {
	n := 320 + 8*cap(e.row.HashIDs) + len(e.row.Text) + len(e.row.Session) + len(e.row.Extra)
	for _, t := range e.row.Turns {
		n += 64
		for _, m := range t.Messages {
			n += 24 + cap(m)
		}
	}
	return int64(n)
}

// decor turns entries into rows.
type decor struct {
	first stamp         // of all times
	unit  time.Duration // of the file's times, 0: times are not used
	chats *chatRoots
}

func (d *decor) row(e *entry) Row {
	r := e.row
	if d.unit > 0 {
		if !r.Follows {
			r.At = e.at.since(d.first, d.unit)
		}
	}
	if r.Follows {
		r.Pause = e.pause.since(stamp{}, max(d.unit, time.Millisecond))
	}
	if e.chat.set {
		r.Session = d.chats.session(e.chat)
	}
	return r
}
