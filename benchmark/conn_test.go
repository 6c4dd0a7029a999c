package benchmark

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// wire is a connection whose other side has already said everything.
type wire struct {
	net.Conn
	from io.Reader
}

func (w wire) Read(p []byte) (int, error) { return w.from.Read(p) }

// answerOf reads one answer from what a server said.
func answerOf(from io.Reader) (c *conn, body string, err error) {
	c = newConn(wire{from: from}, RealClock())
	if err := c.head(); err != nil {
		return c, "", err
	}
	var b strings.Builder
	for {
		run, err := c.run()
		b.Write(run)
		if err != nil {
			if errors.Is(err, io.EOF) && c.finished {
				err = nil
			}
			return c, b.String(), err
		}
	}
}

func TestConnReadsAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 5_000)
	for _, c := range []struct {
		name, said string
		status     int
		body       string
		reusable   bool
		err        error
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true, nil},
		{"no body", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, "", true, nil},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", 200, "hello world", true, nil},
		{"a long chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n13880\r\n" + long + "\r\n0\r\n\r\n", 200, long, true, nil},
		{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n", 200, "0123456789", true, nil},
		{"up to the end", "HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it", false, nil},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, "ok", true, nil},
		{"closing", "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", 503, "no", false, nil},
		{"continue first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true, nil},
		{"chunks win over a length", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, "ok", true, nil},
		{"cut in the length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 200, "hel", true, io.ErrUnexpectedEOF},
		{"cut in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", 200, "hel", true, io.ErrUnexpectedEOF},
		{"cut between chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 200, "hello", true, io.ErrUnexpectedEOF},
		{"cut before the last line", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", 200, "hello", true, io.ErrUnexpectedEOF},
		{"cut in the headers", "HTTP/1.1 200 OK\r\nContent-Le", 200, "", true, io.EOF},
		{"nothing", "", 0, "", true, io.EOF},
		{"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", 0, "", true, errNotHTTP},
		{"no number", "HTTP/1.1 abc OK\r\n\r\n", 0, "", true, errNotHTTP},
		{"a bad length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 200, "", true, errNotHTTP},
		{"a bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 200, "", true, errChunk},
		{"a huge chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 200, "", true, errChunk},
		{"no line end after a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n", 200, "ok", true, errChunk},
		{"compressed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 200, "", true, errNotHTTP},
		{"endless headers", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 2*mostHead), 200, "", true, errHeadTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for how, from := range map[string]io.Reader{
				"whole":         strings.NewReader(c.said),
				"byte for byte": iotest.OneByteReader(strings.NewReader(c.said)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(c.said)),
			} {
				got, body, err := answerOf(from)
				if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
					t.Errorf("%s: err = %v, want %v", how, err, c.err)
				}
				if body != c.body {
					t.Errorf("%s: body %q", how, shorten(body, 80))
				}
				if err == nil && (got.status != c.status || got.reusable != c.reusable) {
					t.Errorf("%s: status %d, reusable %t", how, got.status, got.reusable)
				}
			}
		})
	}
}

func TestConnCarriesTheNextAnswer(t *testing.T) {
	t.Parallel()
	one := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"
	two := "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo"
	c := newConn(wire{from: strings.NewReader(one + two)}, RealClock())
	for _, want := range []string{"one", "two"} {
		if err := c.head(); err != nil {
			t.Fatal(err)
		}
		if got := string(c.excerpt()); got != want || !c.finished {
			t.Errorf("%q, finished %t", got, c.finished)
		}
	}
}

func TestConnNoticesAHangUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := listener.Accept()
		if err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	ours, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs := <-accepted
	c := newConn(ours, RealClock())
	if c.hungUp() {
		t.Error("an idle connection is called closed")
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); !c.hungUp(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Fatal("a closed connection is called idle")
		}
	}
}

func TestConnEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(ours, RealClock())
	ctx, cancel := context.WithCancel(t.Context())
	stop := c.interruptible(ctx)
	cancel()
	if err := c.head(); err == nil {
		t.Error("a read went on after its context had ended")
	}
	if stop() {
		t.Error("the connection is called good for another request")
	}
}

// FuzzAnswer reads hostile answers: whatever a server says, whole or byte by byte, is read the same way, without
// a panic and without an end.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\ndata: {\"meta_info\":{}}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("HTTP/1.0 500 x\n\n{}"))
	f.Fuzz(func(t *testing.T, said []byte) {
		_, whole, err := answerOf(bytes.NewReader(said))
		_, split, errSplit := answerOf(iotest.OneByteReader(bytes.NewReader(said)))
		if whole != split || (err == nil) != (errSplit == nil) {
			t.Fatalf("whole %q, %v; byte by byte %q, %v", whole, err, split, errSplit)
		}
		for endpoint := range endpointPaths {
			s := &sender{clock: RealClock(), endpoint: endpoint, reader: newReader(endpoint), keepGaps: true, tokens: func(time.Time, int, int) {}}
			s.conn = newConn(wire{from: bytes.NewReader(said)}, RealClock())
			a := answer{Request: Request{Intended: time.Now()}}
			if s.conn.head() == nil {
				_ = s.events(Prompt{Follow: func(Answer) (Prompt, time.Duration, bool) { return Prompt{}, 0, false }}, &a)
			}
			if a.Output < 0 || a.Prompt < 0 || a.Cached < 0 {
				t.Fatalf("%s: %+v", endpoint, a.Request)
			}
		}
	})
}
