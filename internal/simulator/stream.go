package simulator

import (
	"sync"
	"time"
)

// stream carries one request's progress from the pace loop to its HTTP handler. The loop never waits for a
// handler: put overwrites what was not read yet.
type stream struct {
	r    *Request // owned by the engine, read under server.mu only
	live bool     // the client streams; else only the end matters
	told int
	sent time.Time

	lastAt float64 // simulated time of the last token told, for /metrics

	mu    sync.Mutex
	last  progress
	ready chan struct{}
}

// progress is what an event says.
type progress struct {
	out, cached, retracted int
	done, aborted          bool
}

func newStream(r *Request, live bool) *stream {
	return &stream{r: r, live: live, ready: make(chan struct{}, 1)}
}

func (s *stream) put(p progress) {
	s.mu.Lock()
	s.last = p
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *stream) get() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
