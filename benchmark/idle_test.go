package benchmark

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestIdleConnectionGivenUp: a server gives up a connection just as a long prompt is sent on it after a pause. Seen
// through a tunnel that is nothing but an idle hang-up: the prompt is sent again, and whole. Where hang-ups are seen
// beforehand it is a reset, and nothing is sent twice.
func TestIdleConnectionGivenUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		tunnel bool
		paused time.Duration
		want   string
		got    int64
	}{
		{"tunnel", true, time.Minute, "", 3},
		{"tunnel, at once", true, -time.Minute, failedReset, 2}, // a slow machine makes a pause of its own
		{"plain", false, time.Minute, failedReset, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const size = 2 << 20
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n, _ := io.Copy(io.Discard, r.Body); n < size {
					t.Errorf("a prompt of %d bytes came", n)
				}
				if requests.Add(1) == 2 {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: "+final3+"\n\ndata: [DONE]\n\n")
			}))
			t.Cleanup(server.Close)
			target := Target{URL: server.URL}
			if c.tunnel {
				target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
					return struct{ net.Conn }{conn}, err
				}
			}
			s, err := newSender(target, senderConfig{clock: RealClock()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			p := Prompt{Text: strings.Repeat("x", size), OutputTokens: 3}
			if a := s.send(t.Context(), p, time.Now()); a.Failed != "" {
				t.Fatalf("%s: %s", a.Failed, a.Error)
			}
			s.idle = s.idle.Add(-c.paused)
			if a := s.send(t.Context(), p, time.Now()); a.Failed != c.want {
				t.Errorf("%q: %s", a.Failed, a.Error)
			}
			if n := requests.Load(); n != c.got {
				t.Errorf("the server got %d requests, want %d", n, c.got)
			}
		})
	}
}
