package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rawLine is one line of a log.
type rawLine struct {
	Offset int64  // of its first byte
	Length int64  // bytes without the line end
	Text   []byte // its first bytes, at most longestLine; valid until the next line is read
}

// longestLine is how much of a line is shown.
const longestLine = 4 << 10

// lineReader reads a log from a place on, a line at a time; however long a line is, it keeps its beginning only.
type lineReader struct {
	r    *bufio.Reader
	at   int64
	keep []byte
}

func newLineReader(f io.ReaderAt, from, size int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(io.NewSectionReader(f, from, max(0, size-from)), 64<<10), at: from}
}

// next reads a line; io.EOF when there is none.
func (l *lineReader) next() (rawLine, error) {
	line := rawLine{Offset: l.at}
	l.keep = l.keep[:0]
	for {
		piece, err := l.r.ReadSlice('\n')
		l.at += int64(len(piece))
		ended := err == nil
		text := bytes.TrimSuffix(piece, newline)
		line.Length += int64(len(text))
		l.keep = append(l.keep, text[:min(len(text), longestLine-len(l.keep))]...)
		line.Text = l.keep
		switch {
		case ended:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && line.Length > 0:
			return line, nil
		default:
			return line, err
		}
	}
}

// logFilter picks lines.
type logFilter struct {
	Text     string // that a line holds, whatever its case
	Warnings bool   // warnings and worse only
	Rank     string // lines of one TP rank only, "" = all
}

func (f logFilter) active() bool { return f.Text != "" || f.Warnings || f.Rank != "" }

// worrying are words of lines that are warnings or worse.
var worrying = [][]byte{
	[]byte("warning"), []byte("error"), []byte("critical"), []byte("fatal"), []byte("traceback"), []byte("exception"), []byte("out of memory"),
	[]byte("killed"), []byte("sigquit"), []byte("assert"),
}

// holds reports whether a line passes. lower is the line in lower case.
func (f logFilter) holds(lower []byte) bool {
	if f.Text != "" && !bytes.Contains(lower, []byte(strings.ToLower(f.Text))) {
		return false
	}
	if f.Warnings && !isWorrying(lower) {
		return false
	}
	return f.Rank == "" || ofRank(lower, f.Rank)
}

func isWorrying(lower []byte) bool {
	for _, word := range worrying {
		if bytes.Contains(lower, word) {
			return true
		}
	}
	return false
}

// ofRank reports whether the prefix of a line names a TP rank: "[2026-01-01 22:00:00 TP3]", "[... DP0 TP3 EP3]".
func ofRank(lower []byte, rank string) bool {
	end := bytes.IndexByte(lower, ']')
	if end < 0 {
		return false
	}
	head := append(bytes.Clone(lower[:end]), ' ')
	return bytes.Contains(head, []byte(" tp"+rank+" "))
}

// Limits of one search: a longer one is continued by a link.
const (
	scanBytes   = 64 << 20
	scanMatches = 100
	scanText    = 24 << 10 // bytes of lines shown
)

// found is what a search has found.
type found struct {
	Lines  []logLine
	Next   int64 // where to go on
	Number int   // of the line there
	Done   bool  // the end of the log was reached
}

// scan looks for lines that pass, from a place on whose line number is known.
func scan(ctx context.Context, f io.ReaderAt, size, from int64, number int, filter logFilter) (found, error) {
	r := newLineReader(f, from, size)
	out := found{Next: from, Number: number}
	shown := 0
	for i := 0; ; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			out.Done = true
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if filter.holds(bytes.ToLower(line.Text)) {
			out.Lines = append(out.Lines, newLogLine(line, out.Number))
			shown += len(line.Text)
		}
		out.Next, out.Number = r.at, out.Number+1
		if len(out.Lines) == scanMatches || shown > scanText || r.at-from > scanBytes {
			return out, nil
		}
	}
}

// logLine is one line as it is shown.
type logLine struct {
	Number   int
	Offset   int64
	Text     string
	Worrying bool
	Evidence bool
	Cut      int64 // bytes left out at its end
	End      int64 // offset behind it
}

func newLogLine(l rawLine, number int) logLine {
	return logLine{
		Number: number, Offset: l.Offset, Text: plain(l.Text), Worrying: isWorrying(bytes.ToLower(l.Text)),
		Cut: max(0, l.Length-int64(len(l.Text))), End: l.Offset + l.Length,
	}
}

// ansi are sequences that colour a terminal, move its cursor or name its window.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")

// plain is a line as text: no colours, no control characters, and � for bytes that are none.
func plain(line []byte) string {
	text := strings.ToValidUTF8(string(ansi.ReplaceAll(line, nil)), string(utf8.RuneError))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r == '\r':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return utf8.RuneError // the last ones turn the direction of text
		}
		return r
	}, text)
}

// rankOf reads the rank filter; ok is false where it is no rank.
func rankOf(text string) (rank string, ok bool) {
	if text == "" {
		return "", true
	}
	n, err := strconv.Atoi(text)
	return strconv.Itoa(n), err == nil && n >= 0 && n < 4096
}
