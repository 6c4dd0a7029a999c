package benchmark_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
)

// hostile is a server by hand: what it says, and when it hangs up, is up to each test.
type hostile struct {
	say func(n int, c net.Conn, wanted int) (keep bool) // answers the n-th request, from 0

	mu              sync.Mutex
	requests, conns int
}

func (h *hostile) start(t testing.TB) benchmark.Target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns++
			h.mu.Unlock()
			serving.Go(func() { h.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return benchmark.Target{URL: "http://" + listener.Addr().String()}
}

func (h *hostile) serve(c net.Conn) {
	defer c.Close()
	from := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var body struct {
			Sampling struct {
				Max int `json:"max_new_tokens"`
			} `json:"sampling_params"`
			Max int `json:"max_tokens"`
		}
		if err := json.Unmarshal(text, &body); err != nil {
			fmt.Fprintf(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			return
		}
		h.mu.Lock()
		n := h.requests
		h.requests++
		h.mu.Unlock()
		if !h.say(n, c, body.Sampling.Max+body.Max) {
			return
		}
	}
}

// counts are the requests and connections so far.
func (h *hostile) counts() (requests, conns int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests, h.conns
}

const eventStream = "Content-Type: text/event-stream\r\n"

// tokenEvents is a whole answer of /generate of so many tokens.
func tokenEvents(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		finish := "null"
		if i == n {
			finish = `{"type":"length"}`
		}
		fmt.Fprintf(&b, `data: {"text":" a","meta_info":{"finish_reason":%s,"prompt_tokens":9,"cached_tokens":0,"completion_tokens":%d}}`+"\n\n", finish, i)
	}
	return b.String() + "data: [DONE]\n\n"
}

// chunks is a body as one chunk.
func chunks(body string) string {
	return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
}

func length(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// TestOddServers: what is legal is understood, and what is not is counted under its kind; nothing is sent twice.
func TestOddServers(t *testing.T) {
	t.Parallel()
	const requests = 4 // a client that fails pauses longer each time
	whole := func(head string, how func(string) string, keep bool) func(int, net.Conn, int) bool {
		return func(_ int, c net.Conn, wanted int) bool {
			_, _ = io.WriteString(c, head+how(tokenEvents(wanted)))
			return keep
		}
	}
	said := func(text string, keep bool) func(int, net.Conn, int) bool {
		return func(_ int, c net.Conn, _ int) bool {
			_, _ = io.WriteString(c, text)
			return keep
		}
	}
	toClose := func(body string) string { return "\r\n" + body }
	for _, c := range []struct {
		name  string
		say   func(int, net.Conn, int) bool
		kind  string // of all requests, "" = all are fine
		error string // what their errors say
		conns int    // 0 = any number
	}{
		{"chunks", whole("HTTP/1.1 200 OK\r\n"+eventStream, chunks, true), "", "", 1},
		{"length", whole("HTTP/1.1 200 OK\r\n"+eventStream, length, true), "", "", 1},
		{"HTTP/1.0", whole("HTTP/1.0 200 OK\r\n"+eventStream, toClose, false), "", "", requests},
		{"HTTP/1.0 kept alive", whole("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n"+eventStream, length, true), "", "", 1},
		{"no connection kept", whole("HTTP/1.1 200 OK\r\nConnection: close\r\n"+eventStream, chunks, false), "", "", requests},
		{"close among others", whole("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n"+eventStream, chunks, false), "", "", requests},
		{"never hangs up", whole("HTTP/1.1 200 OK\r\n"+eventStream, toClose, true), "", "", requests},
		{"no content type", whole("HTTP/1.1 200 OK\r\n", chunks, true), "", "", 1},
		{"shouted content type", whole("HTTP/1.1 200 OK\r\nCONTENT-TYPE: Text/Event-Stream; charset=utf-8\r\n", chunks, true), "", "", 1},
		{"continue", whole("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"+eventStream, chunks, true), "", "", 1},
		{"CRLF and pings", func(_ int, c net.Conn, wanted int) bool {
			body := ": ping\r\n\r\n" + strings.ReplaceAll(tokenEvents(wanted), "\n\n", "\r\n\r\n: ping\r\n\r\nevent: x\r\n")
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(body))
			return true
		}, "", "", 1},
		{"byte for byte", func(_ int, c net.Conn, wanted int) bool {
			for _, b := range []byte("HTTP/1.1 200 OK\r\n" + eventStream + chunks(tokenEvents(wanted))) {
				_, _ = c.Write([]byte{b})
			}
			return true
		}, "", "", 1},
		{"more than it announced", whole("HTTP/1.1 200 OK\r\n"+eventStream, func(body string) string { return length(body) + "\r\njunk" }, true), "", "", requests},
		{"spaces in JSON", func(_ int, c net.Conn, wanted int) bool {
			body := strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(tokenEvents(wanted))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(body))
			return true
		}, "", "", 1},
		{"cut, with spaces in JSON", func(_ int, c net.Conn, wanted int) bool {
			body, _, _ := strings.Cut(strings.ReplaceAll(tokenEvents(wanted), `":`, `": `), `data: {"text": " a", "meta_info": {"finish_reason": {`)
			body, _, _ = strings.Cut(body, "data: [DONE]")
			body = body[:strings.LastIndex(body, "data:")]
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(body))
			return true
		}, "cut_stream", "before [DONE]", 0},
		{"hangs up without an answer", said("", false), "reset", "", requests},
		{"half a head", said("HTTP/1.1 200 OK\r\nContent-", false), "reset", "", requests},
		{"no HTTP", said("SSH-2.0-OpenSSH_9.2\r\n", false), "stream_error", "not HTTP", requests},
		{"half a body by length", whole("HTTP/1.1 200 OK\r\n"+eventStream, func(b string) string { return length(b)[:len(b)-20] }, false), "cut_stream", "", requests},
		{"half a body to the end", whole("HTTP/1.0 200 OK\r\n"+eventStream, func(b string) string { return "\r\n" + b[:len(b)/2] }, false), "cut_stream", "", requests},
		{"whole but for [DONE]", whole("HTTP/1.1 200 OK\r\n"+eventStream, func(b string) string { return chunks(strings.TrimSuffix(b, "data: [DONE]\n\n")) }, true), "", "", 1},
		{"compressed", said("HTTP/1.1 200 OK\r\n"+eventStream+"Content-Encoding: gzip\r\n"+length("\x1f\x8b\x08\x00"), true), "stream_error", "gzip", 0},
		{"one JSON", said("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+length(`{"text":"a"}`), true), "stream_error", "application/json", 0},
		{"a redirect", said("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.invalid/generate\r\n"+length(""), true), "http_status", "elsewhere.invalid", 1},
		{"no content", said("HTTP/1.1 204 No Content\r\n\r\n", true), "http_status", "204", 1},
		{"busy, kept alive", said("HTTP/1.1 503 Service Unavailable\r\n"+length("queue full"), true), "http_status", "queue full", 1},
		{"busy, cut", said("HTTP/1.1 503 Service Unavailable\r\n"+length("queue full")[:30], false), "http_status", "503", requests},
		{"busy without end", func(_ int, c net.Conn, _ int) bool {
			_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\n\r\n")
			for {
				if _, err := c.Write(make([]byte, 10_000)); err != nil {
					return false
				}
			}
		}, "http_status", "503", requests},
		{"an empty answer", said("HTTP/1.1 200 OK\r\n"+eventStream+chunks("data: [DONE]\n\n"), true), "stream_error", "", 0},
		{"no tokens", said("HTTP/1.1 200 OK\r\n"+eventStream+chunks(`data: {"meta_info":{"finish_reason":{"type":"stop"},"completion_tokens":0}}`+"\n\ndata: [DONE]\n\n"), true), "wrong_tokens", "", 1},
		{"nothing on the wire", said("HTTP/1.1 200 OK\r\n"+eventStream+chunks(""), true), "cut_stream", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &hostile{say: c.say}
			r, err := benchmark.Run(t.Context(), h.start(t), feedOf(lengths(10, 9, 4)), benchmark.Options{Concurrency: 1, Requests: requests, Timeout: 20 * time.Second}, nil)
			if err != nil {
				t.Fatal(err)
			}
			failed := map[string]int{}
			if c.kind != "" {
				failed[c.kind] = requests
			}
			if fmt.Sprint(r.Requests.Failed) != fmt.Sprint(failed) || r.Requests.Sent != requests {
				t.Errorf("%+v, want %v: %q", r.Requests, failed, r.Errors)
			}
			if !strings.Contains(strings.Join(r.Errors, "\n"), c.error) {
				t.Errorf("errors %q do not say %q", r.Errors, c.error)
			}
			got, conns := h.counts()
			if got != requests {
				t.Errorf("the server got %d requests, want %d", got, requests)
			}
			if c.conns > 0 && conns != c.conns {
				t.Errorf("%d connections, want %d", conns, c.conns)
			}
		})
	}
}

// textRows is a workload of n texts of so many bytes.
func textRows(n, size, output int) *benchmark.Workload {
	var rows []benchmark.Row
	for i := range n {
		rows = append(rows, benchmark.Row{Number: i, Text: strings.Repeat("word ", size/5), OutputTokens: output})
	}
	return benchmark.NewWorkload(rows, 0)
}

// A server that finds a prompt too long says so and hangs up long before it has read all of it.
func TestAnswerBeforeTheRequestIsSent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n"+length("prompt too long"))
			time.Sleep(20 * time.Millisecond) // the client is still writing
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	r, err := benchmark.Run(t.Context(), benchmark.Target{URL: "http://" + listener.Addr().String()}, feedOf(textRows(1, 16<<20, 4)),
		benchmark.Options{Concurrency: 1, Requests: 3, Timeout: 20 * time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests.Failed["http_status"] != 3 || !strings.Contains(strings.Join(r.Errors, ""), "prompt too long") {
		t.Errorf("%+v: %q", r.Requests, r.Errors)
	}
}

// What is left of a request that timed out does not reach the next one of the same client.
func TestTimeoutEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	h := &hostile{say: func(n int, c net.Conn, wanted int) bool {
		if n%2 == 1 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+"Transfer-Encoding: chunked\r\n\r\n")
			_, _ = c.Read(make([]byte, 1)) // until the client gives up
			return false
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(tokenEvents(wanted)))
		return true
	}}
	var kinds []string
	r, err := benchmark.Run(t.Context(), h.start(t), feedOf(lengths(10, 9, 4)), benchmark.Options{Concurrency: 1, Requests: 8, Timeout: 300 * time.Millisecond},
		func(q benchmark.Request) { kinds = append(kinds, q.Failed) })
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests.OK != 4 || r.Requests.Failed["timeout"] != 4 {
		t.Errorf("%+v in this order: %q (%q)", r.Requests, kinds, r.Errors)
	}
}

// A server that hangs up after each answer without having said so costs connections, not requests.
func TestSilentHangUps(t *testing.T) {
	t.Parallel()
	h := &hostile{say: func(_ int, c net.Conn, wanted int) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(tokenEvents(wanted)))
		return false
	}}
	r, err := benchmark.Run(t.Context(), h.start(t), feedOf(lengths(10, 9, 4)), benchmark.Options{Concurrency: 8, Requests: 400, Timeout: 20 * time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A hang-up that arrives after the request has left is indistinguishable from a reset.
	if r.Requests.OK < 380 || r.Requests.OK+r.Requests.Failed["reset"] != 400 {
		t.Errorf("%+v: %q", r.Requests, r.Errors)
	}
}

// Over TLS the end of a connection that is not announced (close_notify) is no end of an answer, unless the answer
// was complete before.
func TestTLSEndsWithoutNotice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		said func(events string) string
		want string
	}{
		{"complete", func(events string) string { return events }, "map[]"},
		{"cut", func(events string) string { return events[:len(events)/2] }, "map[cut_stream:3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n"+eventStream+"\r\n"+c.said(tokenEvents(4)))
				_ = conn.(*tls.Conn).NetConn().Close()
			}))
			t.Cleanup(server.Close)
			target := benchmark.Target{URL: server.URL, TLS: server.Client().Transport.(*http.Transport).TLSClientConfig}
			r, err := benchmark.Run(t.Context(), target, feedOf(lengths(10, 9, 4)), benchmark.Options{Concurrency: 1, Requests: 3, Timeout: 20 * time.Second}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(r.Requests.Failed) != c.want {
				t.Errorf("%v, want %v: %q", r.Requests.Failed, c.want, r.Errors)
			}
		})
	}
}
