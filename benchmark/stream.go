package benchmark

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxEvent bounds one event; a longer one is no answer of a language model.
const maxEvent = 64 << 20

var errEventTooLong = fmt.Errorf("an event is longer than %d MB", maxEvent>>20)

// runs is a body that comes in pieces; an error is its end.
type runs interface {
	run() ([]byte, error)
}

// decoder splits a body into the payloads of its "data:" lines, as the WHATWG's "Server-sent events" has
// them, one line an event. A line that lies within one piece is not copied. The zero value needs reset.
type decoder struct {
	from    runs
	run     []byte // unread rest of the piece
	partial []byte // start of a line whose end has not come yet
	whole   bool   // partial was handed out: the next line begins anew
	failed  error
}

func (d *decoder) reset(from runs) {
	d.from, d.run, d.partial, d.whole, d.failed = from, nil, d.partial[:0], false, nil
}

// next returns the next payload; it is valid until the next call. io.EOF is the end of the body,
// whether the stream was complete or not. Other fields, comments and blank lines are skipped.
func (d *decoder) next() ([]byte, error) {
	for {
		line, err := d.line()
		if len(line) > 6 && line[5] == ' ' && string(line[:5]) == "data:" && line[6] > ' ' && line[6] < utf8.RuneSelf && line[len(line)-1] > ' ' && line[len(line)-1] < utf8.RuneSelf {
			return line[6:], nil // nothing to trim
		}
		if data, ok := bytes.CutPrefix(line, dataField); ok {
			return bytes.TrimSpace(data), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

var dataField = []byte("data:")

// line returns the next line without its end. A last line without an end comes with the error.
func (d *decoder) line() ([]byte, error) {
	if d.whole {
		d.partial, d.whole = d.partial[:0], false
	}
	for {
		if i := bytes.IndexByte(d.run, '\n'); i >= 0 {
			line := d.run[:i]
			d.run = d.run[i+1:]
			if len(d.partial) > 0 {
				d.partial, d.whole = append(d.partial, line...), true
				line = d.partial
			}
			return line, nil
		}
		d.partial = append(d.partial, d.run...)
		d.run = nil
		if d.failed == nil && len(d.partial) > maxEvent {
			d.failed = errEventTooLong
		}
		if d.failed != nil {
			d.whole = true
			return d.partial, d.failed
		}
		d.run, d.failed = d.from.run()
	}
}

// number finds the value behind a key in an event, from its end, where the counts stand. Inside a
// JSON string the quote before the colon is escaped, so that generated text cannot match.
func number(event, key []byte) (int, bool) {
	i := bytes.LastIndex(event, key)
	if i < 0 {
		return 0, false
	}
	return digits(event[i+len(key):])
}

// digits reads a number at the start of a text.
func digits(text []byte) (n int, ok bool) {
	count := 0
	for _, c := range text {
		switch {
		case c == ' ' && count == 0:
			continue
		case c >= '0' && c <= '9' && count < 10:
			n = 10*n + int(c-'0')
			count++
			continue
		}
		break
	}
	return n, count > 0
}

// excerpt shows the start of a body on one line.
func excerpt(body []byte) string {
	return shorten(string(bytes.Join(bytes.Fields(body[:min(len(body), 1000)]), []byte(" "))), 200)
}
