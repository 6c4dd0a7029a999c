package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// SGLang's stream is cumulative: every event repeats all text so far (reference: its /generate). One
// answer of n tokens is O(n²) bytes, so events are split at line ends and only looked into for one
// number; the last one alone is decoded as JSON.

// maxEvent bounds one event; a longer one is not SGLang.
const maxEvent = 64 << 20

var errEventTooLong = fmt.Errorf("an event is longer than %d MB", maxEvent>>20)

// decoder splits a body into the payloads of its "data:" lines. The zero value needs reset.
type decoder struct {
	from    io.Reader
	buf     []byte
	start   int // first unread byte
	end     int // end of the bytes read
	scanned int // bytes before this hold no line end
	failed  error
}

func (d *decoder) reset(from io.Reader) {
	d.from, d.start, d.end, d.scanned, d.failed = from, 0, 0, 0, nil
	if d.buf == nil {
		d.buf = make([]byte, 16<<10)
	}
}

// next returns the next payload; it is valid until the next call. io.EOF is the end of the body,
// whether the stream was complete or not. Other fields, comments and blank lines are skipped.
func (d *decoder) next() ([]byte, error) {
	for {
		line, err := d.line()
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			return bytes.TrimSpace(data), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// line returns the next line without its end. A last line without an end comes with the error.
func (d *decoder) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(d.buf[d.scanned:d.end], '\n'); i >= 0 {
			line := d.buf[d.start : d.scanned+i]
			d.start = d.scanned + i + 1
			d.scanned = d.start
			return line, nil
		}
		d.scanned = d.end
		if d.failed != nil {
			line := d.buf[d.start:d.end]
			d.start = d.end
			return line, d.failed
		}
		if err := d.room(); err != nil {
			d.failed = err
			continue
		}
		n, err := d.from.Read(d.buf[d.end:])
		d.end += n
		d.failed = err
	}
}

// room makes space behind end: by moving the unread bytes to the front, or by doubling.
func (d *decoder) room() error {
	if d.start > 0 {
		copy(d.buf, d.buf[d.start:d.end])
		d.end -= d.start
		d.scanned -= d.start
		d.start = 0
	}
	if d.end < len(d.buf) {
		return nil
	}
	if len(d.buf) >= maxEvent {
		return errEventTooLong
	}
	d.buf = append(d.buf, make([]byte, len(d.buf))...)
	return nil
}

var (
	keyCompletion = []byte(`"completion_tokens":`)
	keyPrompt     = []byte(`"prompt_tokens":`)
	doneMark      = []byte("[DONE]")
	errorMark     = []byte(`{"error"`)
)

// number finds the value behind a key in an event, from its end, where meta_info stands. Inside a
// JSON string the quote before the colon is escaped, so that generated text cannot match.
func number(event, key []byte) (int, bool) {
	i := bytes.LastIndex(event, key)
	if i < 0 {
		return 0, false
	}
	n, digits := 0, 0
	for _, c := range event[i+len(key):] {
		switch {
		case c == ' ' && digits == 0:
			continue
		case c >= '0' && c <= '9' && digits < 10:
			n = 10*n + int(c-'0')
			digits++
			continue
		}
		break
	}
	return n, digits > 0
}

// final is what the last event says about the whole request.
type final struct {
	Completion int
	Prompt     int
	Cached     int
}

var errNoUsage = errors.New("the last event has no meta_info.completion_tokens")

// decodeFinal reads the last event before [DONE]. A request the server aborted is an error.
func decodeFinal(event []byte) (final, error) {
	var e struct {
		Meta struct {
			Completion *int            `json:"completion_tokens"`
			Prompt     int             `json:"prompt_tokens"`
			Cached     int             `json:"cached_tokens"`
			Finish     json.RawMessage `json:"finish_reason"`
		} `json:"meta_info"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return final{}, fmt.Errorf("the last event is not JSON: %w", err)
	}
	if e.Meta.Completion == nil {
		return final{}, errNoUsage
	}
	var reason struct{ Type, Message string }
	if json.Unmarshal(e.Meta.Finish, &reason) == nil && reason.Type == "abort" {
		return final{}, fmt.Errorf("the server aborted the request: %s", shorten(reason.Message, 200))
	}
	return final{*e.Meta.Completion, e.Meta.Prompt, e.Meta.Cached}, nil
}

// streamError reads an error event; its shape is only known to be an object with "error".
func streamError(event []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(event, &e) == nil && e.Error.Message != "" {
		return shorten(e.Error.Message, 200)
	}
	return excerpt(event)
}

// excerpt shows the start of a body on one line.
func excerpt(body []byte) string {
	return shorten(string(bytes.Join(bytes.Fields(body[:min(len(body), 1000)]), []byte(" "))), 200)
}
