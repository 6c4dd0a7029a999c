package benchmark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A load generator shares the CPU with the server it measures, and most of what net/http does for an answer
// (two goroutines a connection, a pipe between them, three layers of readers) is done again for every token.
// A conn is what is left when one client owns one connection and asks one thing at a time: HTTP/1.1 with
// keep-alive, a body of known length, chunked, or up to the end of the connection (RFC 9112).

const (
	firstBuffer = 8 << 10  // of a connection; it grows while reads fill it
	mostBuffer  = 64 << 10 // more does not make a read cheaper
	mostHead    = 64 << 10 // status line and headers
	mostExcerpt = 4 << 10  // of the body of an error
)

// Errors of an answer that is no HTTP/1.1, or not a complete one.
var (
	errNotHTTP     = errors.New("the answer is not HTTP/1.1")
	errHeadTooLong = errors.New("the headers of the answer are too long")
	errChunk       = errors.New("the answer's chunks cannot be read")
)

// conn is one connection of one client. It is not safe for concurrent use.
type conn struct {
	net   net.Conn
	clock Clock

	buf        []byte
	start, end int       // unread bytes
	at         time.Time // host time of the last read
	filled     bool      // the last read filled the buffer: it may be too small

	// The answer being read.
	status   int
	media    string // content type, "" for an event stream
	location string // of a redirect
	body     framing
	left     int64 // bytes left of the body, or of the present chunk
	inChunk  bool  // a chunk's bytes or its line end are still to come
	finished bool  // read to its end
	reusable bool  // may carry another request afterwards
}

// framing is how the end of a body is known (RFC 9112, 6.3).
type framing uint8

const (
	knownLength framing = iota
	inChunks
	upToClose
)

func newConn(c net.Conn, clock Clock) *conn {
	return &conn{net: c, clock: clock, buf: make([]byte, firstBuffer), reusable: true}
}

// fill reads once from the connection.
func (c *conn) fill() error {
	if c.start == c.end {
		c.start, c.end = 0, 0
		if c.filled && len(c.buf) < mostBuffer {
			c.buf = make([]byte, 2*len(c.buf))
		}
	} else if c.end == len(c.buf) {
		if c.start == 0 {
			if len(c.buf) >= mostHead {
				return errHeadTooLong
			}
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		} else {
			c.end = copy(c.buf, c.buf[c.start:c.end])
			c.start = 0
		}
	}
	room := len(c.buf) - c.end
	n, err := c.net.Read(c.buf[c.end:])
	c.at = c.clock.Now()
	c.end += n
	c.filled = n == room
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// line returns the next line without its end; it is valid until the next fill.
func (c *conn) line() ([]byte, error) {
	for scanned := 0; ; {
		if i := bytes.IndexByte(c.buf[c.start+scanned:c.end], '\n'); i >= 0 {
			line := c.buf[c.start : c.start+scanned+i]
			c.start += scanned + i + 1
			return bytes.TrimSuffix(line, crlf[:1]), nil
		}
		scanned = c.end - c.start
		if scanned >= mostHead {
			return nil, errHeadTooLong
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

var crlf = []byte("\r\n")

// head reads status line and headers of an answer.
func (c *conn) head() error {
	for {
		c.status, c.media, c.location, c.body, c.left = 0, "", "", upToClose, 0
		c.inChunk, c.finished, c.reusable = false, false, true
		if err := c.statusLine(); err != nil {
			return err
		}
		length := int64(-1)
		for {
			line, err := c.line()
			if err != nil {
				return err
			}
			if len(line) == 0 {
				break
			}
			if err := c.header(line, &length); err != nil {
				return err
			}
		}
		if c.status >= 200 {
			return c.settle(length)
		} // 100 Continue and its like: the answer proper follows
	}
}

func (c *conn) statusLine() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(line, []byte("HTTP/1."))
	if !ok || len(rest) < 5 || rest[1] != ' ' {
		return fmt.Errorf("%w: it begins with %s", errNotHTTP, strconv.Quote(shorten(string(line), 40)))
	}
	c.reusable = rest[0] == '1'
	c.status, err = strconv.Atoi(string(rest[2:5]))
	if err != nil || c.status < 100 {
		return fmt.Errorf("%w: status %s", errNotHTTP, strconv.Quote(string(rest[2:5])))
	}
	return nil
}

// header notes what a header says about the body and the connection.
func (c *conn) header(line []byte, length *int64) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return fmt.Errorf("%w: header %s", errNotHTTP, strconv.Quote(shorten(string(line), 40)))
	}
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseInt(string(value), 10, 63)
		if err != nil || n < 0 {
			return fmt.Errorf("%w: content length %s", errNotHTTP, strconv.Quote(shorten(string(value), 40)))
		}
		*length = n
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		if !bytes.EqualFold(value, []byte("chunked")) {
			return fmt.Errorf("%w: transfer encoding %s", errNotHTTP, strconv.Quote(shorten(string(value), 40)))
		}
		c.body = inChunks
	case bytes.EqualFold(name, []byte("Connection")):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			if option = bytes.TrimSpace(option); bytes.EqualFold(option, []byte("close")) {
				c.reusable = false
			} else if bytes.EqualFold(option, []byte("keep-alive")) {
				c.reusable = true
			}
		}
	case bytes.EqualFold(name, []byte("Content-Type")):
		if n := len(eventStreamMedia); len(value) < n || !bytes.EqualFold(value[:n], eventStreamMedia) { // no copy for the usual one
			c.media = string(value)
		}
	case bytes.EqualFold(name, []byte("Content-Encoding")):
		if !bytes.EqualFold(value, []byte("identity")) { // we asked for nothing else
			c.media = "compressed by " + string(value)
		}
	case bytes.EqualFold(name, []byte("Location")):
		c.location = string(value)
	}
	return nil
}

var eventStreamMedia = []byte("text/event-stream")

// settle decides how the body ends. Chunks win over a length (RFC 9112, 6.3).
func (c *conn) settle(length int64) error {
	switch {
	case c.status == http.StatusNoContent || c.status == http.StatusNotModified:
		c.body, c.left = knownLength, 0
	case c.body == inChunks:
	case length >= 0:
		c.body, c.left = knownLength, length
	default:
		c.reusable = false
	}
	return nil
}

// run returns the next bytes of the body, as many as are there: at least one, and io.EOF at the body's end.
// They are valid until the next call.
func (c *conn) run() ([]byte, error) {
	for {
		if c.finished {
			return nil, io.EOF
		}
		if c.body == knownLength && c.left == 0 {
			c.finished = true
			continue
		}
		if c.body == inChunks && c.left == 0 {
			if err := c.chunk(); err != nil {
				return nil, unexpected(err)
			}
			continue
		}
		if c.start == c.end {
			err := c.fill()
			if c.body == upToClose && errors.Is(err, io.EOF) {
				c.finished = true
				continue
			}
			if err != nil {
				return nil, unexpected(err)
			}
		}
		return c.take(), nil
	}
}

// take cuts what is there of the body off the unread bytes.
func (c *conn) take() []byte {
	n := int64(c.end - c.start)
	if c.body != upToClose {
		n = min(n, c.left)
		c.left -= n
	}
	run := c.buf[c.start : c.start+int(n)]
	c.start += int(n)
	return run
}

// unexpected is the error of a connection that ends in the middle of a body.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// chunk reads the line end of the chunk before, and the size of the next one. The last one has no bytes; after
// its trailers the body is finished.
func (c *conn) chunk() error {
	if c.nextChunk() {
		return nil
	}
	if c.inChunk {
		line, err := c.line()
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return fmt.Errorf("%w: %s instead of a line end", errChunk, strconv.Quote(shorten(string(line), 20)))
		}
		c.inChunk = false
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	n, ok := chunkSize(line)
	if !ok {
		return fmt.Errorf("%w: size %s", errChunk, strconv.Quote(shorten(string(line), 20)))
	}
	if n > 0 {
		c.left, c.inChunk = n, true
		return nil
	}
	for len(line) > 0 {
		if line, err = c.line(); err != nil {
			return err
		}
	}
	c.finished = true
	return nil
}

// nextChunk reads the usual case at once: the line end of the chunk before and the next one's size of at most four
// digits lie in the buffer, and nothing else between them. It takes nothing otherwise.
func (c *conn) nextChunk() bool {
	b := c.buf[c.start:c.end]
	if !c.inChunk || len(b) < 2 || b[0] != '\r' || b[1] != '\n' {
		return false
	}
	var n int64
	for i := 2; i < len(b) && i < 7; i++ {
		switch d := b[i]; {
		case d >= '0' && d <= '9':
			n = n<<4 | int64(d-'0')
		case d >= 'a' && d <= 'f':
			n = n<<4 | int64(d-'a'+10)
		case d == '\r' && n > 0 && i+1 < len(b) && b[i+1] == '\n':
			c.start += i + 2
			c.left = n
			return true
		default:
			return false
		}
	}
	return false
}

// chunkSize reads a chunk's size; what follows a semicolon is an extension that nobody needs.
func chunkSize(line []byte) (n int64, ok bool) {
	for i, b := range line {
		var digit byte
		switch {
		case b >= '0' && b <= '9':
			digit = b - '0'
		case b >= 'a' && b <= 'f':
			digit = b - 'a' + 10
		case b >= 'A' && b <= 'F':
			digit = b - 'A' + 10
		case i > 0 && (b == ';' || b == ' ' || b == '\t'):
			return n, true
		default:
			return 0, false
		}
		if n >= 1<<40 {
			return 0, false
		}
		n = n<<4 | int64(digit)
	}
	return n, len(line) > 0
}

// rest reads the body to its end.
func (c *conn) rest() error {
	for {
		if _, err := c.run(); err != nil {
			if errors.Is(err, io.EOF) && c.finished {
				return nil
			}
			return err
		}
	}
}

// excerpt reads the start of a body that says what is wrong.
func (c *conn) excerpt() []byte {
	var text []byte
	for len(text) < mostExcerpt {
		run, err := c.run()
		text = append(text, run[:min(len(run), mostExcerpt-len(text))]...)
		if err != nil {
			break
		}
	}
	return text
}
