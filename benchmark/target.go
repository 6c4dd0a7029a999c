package benchmark

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Clock is the host's time (a simulated host's runs faster than ours). host.Clock satisfies it.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
	After(d time.Duration) <-chan time.Time
	Scale() float64 // host seconds per real second, 1 for a real host
}

// RealClock returns the clock of a real host: our own time, at scale 1.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (realClock) Scale() float64                         { return 1 }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Target is the server under load.
type Target struct {
	URL    string // base, for example http://127.0.0.1:30000
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Header http.Header // added to every request
	// Admin replaces Header where the server asks for its admin key, when it has one (SGLang from 0.5.9:
	// srt/utils/auth.py, ADMIN_OPTIONAL): there its ordinary key is refused. nil = Header everywhere.
	Admin http.Header
}

// dialTimeout bounds one connection attempt, in real time. A listening server accepts within
// milliseconds, a tunnel within a few round trips.
const dialTimeout = 10 * time.Second

// transport returns connections for n clients that talk to the target at once.
func (t Target) transport(n int) *http.Transport {
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return &http.Transport{
		DialContext:         dial,
		MaxIdleConns:        n,
		MaxIdleConnsPerHost: n, // a closed loop reuses its n connections for ever
		DisableCompression:  true,
		WriteBufferSize:     32 << 10, // a prompt of 5,000 tokens in one write
		ReadBufferSize:      16 << 10,
	}
}
