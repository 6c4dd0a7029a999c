package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"sgtune/trial"
)

// logView is the part of a log that is shown.
type logView struct {
	Lines    []logLine
	Size     int64
	Total    int // lines, 0 = not counted
	Filter   logFilter
	Evidence []evidence
	Up, Down string // links to what lies before and behind, "" at an end
	Start    string
	End      string
	More     string // of a search: link that goes on, "" when it is over
	Searched int64  // of a search: where it stands
	Raw      string // the whole file
	Part     string // download of what is shown
	Link     string // file's link, to which from= and to= can be added
	ThisPage string // address of the trial, for forms
}

// evidence is a link to a line that proves the verdict.
type evidence struct {
	Line    int
	Link    string
	Current bool
}

// Lines of a window around the one it was opened at.
const (
	linesBefore = 12
	linesAfter  = 40
	windowBytes = 24 << 10 // most bytes of lines shown
	beforeBytes = 8 << 10  // of those, before
	countWhole  = 64 << 20 // logs up to this size are counted whole at once
)

// openLog shows a trial's log where a request wants it: at a line (line=), at a place (at=, with the number n= of its
// line), as a search (q=, warn=, rank=), else at the evidence, else at its end. nil where there is no log.
func (h *Handler) openLog(r *http.Request, study string, t *trial.Trial) (*logView, error) {
	f, info, err := h.openFile(study, t, serverLogName)
	if errors.Is(err, errNoFile) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	query := r.URL.Query()
	link := fileLink(study, t.Number, serverLogName)
	v := &logView{
		Size: info.Size(), Raw: link, Link: link, ThisPage: "/studies/" + url.PathEscape(study) + "/trials/" + strconv.Itoa(t.Number),
		Filter: logFilter{Text: cut(query.Get("q"), longestValue), Warnings: query.Get("warn") != ""},
	}
	var ok bool
	if v.Filter.Rank, ok = rankOf(query.Get("rank")); !ok {
		return nil, misasked{"rank is the number of a TP rank."}
	}
	l := openedLog{file: f, size: info.Size(), index: h.logs.of(info)}
	if l.size <= countWhole {
		if v.Total, err = l.index.total(r.Context(), f, l.size); err != nil {
			return nil, err
		}
	}
	at, number, err := l.place(r.Context(), query, t, v.Filter.active())
	if err != nil {
		return nil, err
	}
	if v.Filter.active() {
		err = v.search(r.Context(), l, at, number)
	} else {
		err = v.window(l, at, number)
	}
	v.mark(t, number)
	return v, err
}

// openedLog is a log that is being looked at.
type openedLog struct {
	file  *os.File
	size  int64
	index *logIndex
}

// place is where a request wants the log: the offset of a line and its number.
func (l openedLog) place(ctx context.Context, query url.Values, t *trial.Trial, search bool) (at int64, number int, err error) {
	if text := query.Get("at"); text != "" {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil || at < 0 {
			return 0, 0, misasked{"at is a byte of the log, counted from 0."}
		}
		if at, err = lineStart(l.file, min(at, max(0, l.size-1))); err != nil {
			return 0, 0, err
		}
		if n, err := strconv.Atoi(query.Get("n")); err == nil && n > 0 && n <= int(at)+1 {
			return at, n, nil
		}
		number, err = l.index.line(ctx, l.file, l.size, at)
		return at, number, err
	}
	line := 0
	if text := query.Get("line"); text != "" {
		if line, err = strconv.Atoi(text); err != nil || line < 1 {
			return 0, 0, misasked{"line is the number of a line, counted from 1."}
		}
	}
	switch {
	case search:
		return 0, 1, nil
	case line == 0 && t.Verdict.Line > 0 && t.Verdict.Outcome != trial.OK, line > 0 && line == t.Verdict.Line:
		if at, ok := l.evidence(t); ok {
			return at, t.Verdict.Line, nil
		}
		line = t.Verdict.Line
	case line == 0:
		if at, _, err = back(l.file, l.size, linesAfter-2); err != nil {
			return 0, 0, err
		}
		if l.size > countWhole { // numbers are told once somebody asks for a line
			return at, 0, nil
		}
		number, err = l.index.line(ctx, l.file, l.size, at)
		return at, number, err
	}
	if at, err = l.index.offset(ctx, l.file, l.size, line); err != nil {
		return 0, 0, err
	}
	number, err = l.index.line(ctx, l.file, l.size, at)
	return at, number, err
}

// aroundHint is how far from the place that a verdict names its evidence may lie: masks of secrets before it
// make a log shorter.
const aroundHint = 256 << 10

// evidence finds the verdict's line near the place it was read at, without counting any lines.
func (l openedLog) evidence(t *trial.Trial) (at int64, ok bool) {
	text := []byte(t.Verdict.Evidence)
	if t.Verdict.Offset <= 0 || len(text) < 8 {
		return 0, false
	}
	from := max(0, t.Verdict.Offset-aroundHint)
	block := make([]byte, 2*aroundHint)
	n, err := l.file.ReadAt(block, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false
	}
	hint, nearest := int(t.Verdict.Offset-from), -1
	for i := 0; ; {
		j := bytes.Index(block[i:n], text)
		if j < 0 {
			break
		}
		start := bytes.LastIndexByte(block[:i+j], '\n') + 1
		if nearest < 0 || distance(start, hint) < distance(nearest, hint) {
			nearest = start
		}
		i += j + len(text)
	}
	return from + int64(nearest), nearest >= 0
}

func distance(a, b int) int { return max(a-b, b-a) }

// window fills a view with the lines around a place; number is 0 where it is not known.
func (v *logView) window(l openedLog, at int64, number int) error {
	from, passed, err := back(l.file, at, linesBefore)
	if err != nil {
		return err
	}
	for at-from > beforeBytes && passed > 0 { // long lines: fewer of them
		passed--
		if from, passed, err = back(l.file, at, passed); err != nil {
			return err
		}
	}
	r, shown, after := newLineReader(l.file, from, l.size), 0, 0
	n := 0
	if number > 0 {
		n = number - passed
	}
	for after < linesAfter && shown < windowBytes {
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		v.Lines = append(v.Lines, newLogLine(line, n))
		shown += len(line.Text)
		if n > 0 {
			n++
		}
		if line.Offset >= at {
			after++
		}
	}
	v.links(l, from, r.at, number-passed, n)
	return nil
}

// links fills in the ways out of a window that begins at from and ends before to, with the numbers of their lines.
func (v *logView) links(l openedLog, from, to int64, first, after int) {
	link := func(at int64, n int) string {
		q := url.Values{"at": {strconv.FormatInt(at, 10)}}
		if n > 0 {
			q.Set("n", strconv.Itoa(n))
		}
		return v.ThisPage + "?" + q.Encode() + "#log"
	}
	if from > 0 {
		v.Start = v.ThisPage + "?line=1#log"
		if up, passed, err := back(l.file, from, linesAfter-linesBefore); err == nil {
			v.Up = link(up, first-passed)
		}
	}
	if to < l.size {
		v.Down = link(to, after)
		if end, _, err := back(l.file, l.size, linesAfter-2); err == nil {
			v.End = link(end, 0)
		}
	}
	v.Part = v.Link + "?" + url.Values{"from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)}, "download": {"1"}}.Encode()
}

// search fills a view with lines that pass the filter.
func (v *logView) search(ctx context.Context, l openedLog, at int64, number int) error {
	f, err := scan(ctx, l.file, l.size, at, max(1, number), v.Filter)
	if err != nil {
		return err
	}
	v.Lines, v.Searched = f.Lines, f.Next
	if !f.Done {
		q := url.Values{"at": {strconv.FormatInt(f.Next, 10)}, "n": {strconv.Itoa(f.Number)}}
		if v.Filter.Text != "" {
			q.Set("q", v.Filter.Text)
		}
		if v.Filter.Warnings {
			q.Set("warn", "1")
		}
		if v.Filter.Rank != "" {
			q.Set("rank", v.Filter.Rank)
		}
		v.More = v.ThisPage + "?" + q.Encode() + "#log"
	}
	return nil
}

// mark says which lines are evidence, and links to all that are.
func (v *logView) mark(t *trial.Trial, number int) {
	if t.Verdict.Line <= 0 {
		return
	}
	lines := append([]int{t.Verdict.Line}, t.Verdict.Also...)
	for _, line := range lines[:min(len(lines), 12)] {
		v.Evidence = append(v.Evidence, evidence{Line: line, Link: v.ThisPage + "?line=" + strconv.Itoa(line) + "#L" + strconv.Itoa(line), Current: line == number})
		for i := range v.Lines {
			v.Lines[i].Evidence = v.Lines[i].Evidence || v.Lines[i].Number == line
		}
	}
}

// logProblem says why a log is not shown.
func logProblem(err error) string {
	var asked misasked
	if errors.As(err, &asked) {
		return asked.text
	}
	return "The log could not be read; the reason is in the log of sgtune."
}
