package sglang

import (
	"bytes"
	"time"
)

// echoes are signs of a line that repeats what a client sent (--log-requests, debug dumps).
var echoes = newFinder(
	"Receive: obj=", "Receive OpenAI", "Finish: obj=", "ReqInput(", "Req(rid=", "text='", `text="`, "origin_input_text",
	"'messages': ", `"messages": `, `"messages":[`, "prompt='", `prompt="`, `"prompt": `, `"prompt":"`, "'prompt': ", `"text": `, `"text":"`, "'text': ",
	"content='", `content="`, `"content": `, `"content":"`, "'content': ", "input_value='", `input_value="`,
)

// isEcho reports whether a line repeats what a client sent. Failure words in it mean nothing.
func isEcho(msg []byte) bool {
	if len(msg) > 0 && msg[0] == '{' { // --log-requests-format json
		return true
	}
	_, any := echoes.find(msg)
	return any
}

// isRequest reports whether a message is what --log-requests prints, in either format
// (request_logger.py).
func isRequest(msg []byte) bool {
	if len(msg) == 0 {
		return false
	}
	switch msg[0] {
	case 'R', 'F':
		return bytes.HasPrefix(msg, []byte("Receive: obj=")) || bytes.HasPrefix(msg, []byte("Finish: obj="))
	case '{':
		return bytes.Contains(msg, []byte(`"event": "request.`))
	}
	return false
}

const (
	// maxEchoLines is how many lines a quoted text may go on before it is given up as never closed.
	maxEchoLines = 2000
	// maxEchoTime is how much later than the echo a line's own time may be to be the server's next line.
	maxEchoTime = time.Hour
)

// echo follows a request that is quoted over several lines: some front ends print prompts as they
// are. Until the quote closes, lines are the client's, even those that look like a traceback. Only a
// line framed with the time that the server's next line could have ends it, too: quotes get lost.
type echo struct {
	quote byte // that will close it, 0 when none is open
	lines int
	at    time.Time // of the line that opened it
}

// begin looks whether a message leaves a quoted request open. cut says that its end is not known. The
// source lines of a traceback are full of open quotes, and indented.
func (e *echo) begin(f *frame, cut bool) {
	msg := f.msg
	if cut || startsIndented(msg) || bytes.Count(msg, []byte("'"))%2 == 0 && bytes.Count(msg, []byte(`"`))%2 == 0 || !isEcho(msg) {
		return
	}
	if quote := openQuote(msg); quote != 0 {
		*e = echo{quote: quote, at: f.at()}
	}
}

// swallow takes the next line. It reports whether the line belongs to the quoted text.
func (e *echo) swallow(f *frame) bool {
	if e.quote == 0 {
		return false
	}
	if e.lines++; e.lines > maxEchoLines || f.prefixed && e.follows(f) {
		e.quote = 0
		return false
	}
	msg := f.msg
	for i := 0; i < len(msg); i++ {
		switch msg[i] {
		case '\\':
			i++
		case e.quote:
			if i+1 == len(msg) || bytes.IndexByte([]byte(",)}]"), msg[i+1]) >= 0 {
				e.quote = openQuote(msg[i+1:])
				return true
			}
		}
	}
	return true
}

// follows reports whether a framed line can be what the server wrote after the echo.
func (e *echo) follows(f *frame) bool {
	d := f.at().Sub(e.at)
	return e.at.IsZero() || d >= 0 && d <= maxEchoTime
}

// openQuote returns the quote that is still open at the end of a Python or JSON value, 0 when all
// are closed. A quote opens a value only where one can begin: an apostrophe in a word does not.
func openQuote(text []byte) byte {
	var open byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case open != 0 && c == '\\':
			i++
		case open != 0 && c == open:
			open = 0
		case open == 0 && (c == '\'' || c == '"') && (i == 0 || bytes.IndexByte([]byte("=([{,: "), text[i-1]) >= 0):
			open = c
		}
	}
	return open
}
