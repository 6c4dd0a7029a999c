package trial

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"sgtune/sglang"
)

// healthTimeout is SGLang's own patience (20 s) plus a margin, in host time.
const (
	healthTimeout     = 25 * time.Second
	healthTimeoutReal = 2 * time.Second
	silenceLimit      = 3 * healthTimeout
	silenceLimitReal  = 3 * time.Second
	healthFailures    = sglang.HealthFailures // in a row, together with silence: stuck
)

// listen ends work when a server under load is stuck: no batch line and no token for three health
// timeouts, then three failing answers of /health in a row, and then no token when one is asked for.
// While tokens or lines arrive nobody calls /health: it costs a generation.
func (w *watch) listen(ctx context.Context) {
	limit, failures, bad := w.a.floor(silenceLimit, silenceLimitReal), 0, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.process.Done():
			return
		case <-w.a.Clock.After(limit / 8):
		}
		if !w.loaded() || w.silence() < limit {
			if bad != "" && w.loaded() {
				w.wasBusy(bad)
			}
			failures, bad = 0, ""
			continue
		}
		log, _ := w.facts()
		seen := w.a.health(ctx)
		w.a.probes.note(seen, w.a.Clock.Now(), log.Prefills+log.Decodes)
		bad = cmp.Or(w.a.probes.failed(), bad)
		if seen.status == http.StatusOK && w.a.proves(seen) {
			w.moved()
			continue
		}
		if failures++; failures < healthFailures || w.silence() < limit {
			continue
		}
		if w.a.oneToken(ctx) { // the witness that cannot be wrong is asked last: it costs most
			w.moved()
			continue
		}
		if w.silence() >= limit {
			w.a.abort(fmt.Errorf("%w: requests are in flight, no token came and %s", errStuck, cmp.Or(w.a.probes.failed(), seen.path+" proves nothing")))
			return
		}
	}
}

// vital reports whether the server works: by a health endpoint that proves it, else by one real token.
func (a *attempt) vital(ctx context.Context) bool {
	seen := a.health(ctx)
	return seen.status == http.StatusOK && a.proves(seen) || a.oneToken(ctx)
}

// proves reports whether a 200 of this endpoint means that the scheduler works: /health of a server that has
// nothing better proves it only in versions where it generates a token.
func (a *attempt) proves(seen answer) bool {
	if seen.path == sglang.HealthGenerate {
		return true
	}
	_, first := a.watch.facts()
	return sglang.HealthPath(a.Version, first, a.Server.Environ(a.t.Config)) == sglang.HealthPlain
}

// wasBusy records that /health failed under load, as bad says, and the server went on: it was busy, not dead.
func (w *watch) wasBusy(bad string) {
	log, first := w.facts()
	text := fmt.Sprintf("health_busy_timeout: /health failed while the server was busy, not dead (%s, while %s)", logSide(log, first), bad)
	w.mu.Lock()
	w.findings = append(w.findings, Finding{Name: "monitor_wrong", Text: text})
	w.mu.Unlock()
	w.a.notice("finding", fmt.Sprintf("trial %d: %s", w.a.t.Number, text))
}

func (w *watch) loaded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.underLoad
}
