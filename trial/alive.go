package trial

import (
	"context"
	"net/http"
	"time"
)

// healthTimeout is SGLang's own patience (20 s) plus a margin, in host time.
const (
	healthTimeout     = 25 * time.Second
	healthTimeoutReal = 2 * time.Second
	silenceLimit      = 3 * healthTimeout
	silenceLimitReal  = 3 * time.Second
	healthFailures    = 3 // in a row, together with silence: stuck
)

// listen ends work when a server under load is stuck: no batch line and no token for three health
// timeouts, and then three failing answers of /health in a row. While tokens or lines arrive
// nobody calls /health: it costs a generation.
func (w *watch) listen(ctx context.Context) {
	limit, failures := w.a.floor(silenceLimit, silenceLimitReal), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.process.Done():
			return
		case <-w.a.Clock.After(limit / 8):
		}
		if !w.loaded() || w.silence() < limit {
			failures = 0
			continue
		}
		if w.a.health(ctx) == http.StatusOK {
			w.moved()
			continue
		}
		if failures++; failures >= healthFailures && w.silence() >= limit {
			w.a.abort(errStuck)
			return
		}
	}
}

func (w *watch) loaded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.underLoad
}

// health asks /health once; 0 means refused or timed out.
func (a *attempt) health(ctx context.Context) int {
	ctx, cancel := a.within(ctx, healthTimeout, healthTimeoutReal)
	defer cancel()
	status, err := a.target.Health(ctx)
	if err != nil {
		return 0
	}
	return status
}
