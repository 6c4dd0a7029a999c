package trial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sgtune/sglang"
)

// Ends of a start that does not come to an end by itself.
var (
	errTimeout = errors.New("not ready within the time limit")
	errDying   = errors.New("the server printed a fatal error and then nothing more")
)

const (
	readyPoll       = time.Second           // host time between two looks
	readyPollReal   = 20 * time.Millisecond // real time, at least
	noProgress      = 10 * time.Minute      // of a start: host pools of hundreds of GB are pinned in silence
	noProgressReal  = 5 * time.Second
	quiet           = 2 * time.Minute // at ready_timeout: longer silence is stuck, less is slow
	quietReal       = 2 * time.Second
	afterFatal      = 90 * time.Second // SGLang 0.5.23 takes up to a minute to die of its dumps
	afterFatalReal  = 3 * time.Second
	readyReportReal = 500 * time.Millisecond
)

// wait waits for readiness by the one rule of design 5: our process lives, and one real token came
// back from its own port, after "fired up" in its log or 200 from /health (/health_generate where /health
// tests nothing). Bodies are never parsed.
func (a *attempt) wait(ctx context.Context) error {
	shown := time.Time{}
	for {
		ready, err := a.look(ctx)
		if err != nil {
			return err
		}
		if ready {
			a.ready, a.t.Startup = true, a.sinceLaunch()
			a.introduce(ctx)
			return nil
		}
		if err := a.tooLong(); err != nil {
			return err
		}
		if time.Since(shown) > readyReportReal {
			shown = time.Now()
			a.report(a.watch.loadText())
		}
		if err := a.Clock.Sleep(ctx, a.floor(readyPoll, readyPollReal)); err != nil {
			return err
		}
	}
}

// look asks the witnesses once.
func (a *attempt) look(ctx context.Context) (ready bool, err error) {
	a.watch.drain(ctx) // before /health: a log that says ready is never held against an older refusal
	log, _ := a.watch.facts()
	seen := a.health(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if seen.status != 0 && !a.owns(ctx, log.Port) {
		a.foreign(seen)
		seen = answer{path: seen.path} // to our server it means nothing
	}
	batches := log.Prefills + log.Decodes
	a.probes.note(seen, a.Clock.Now(), batches)
	if log.Ready || seen.status == http.StatusOK {
		a.probes.owes(a.Clock.Now())
	}
	w := sglang.Witness{FiredUp: log.Ready, Health: seen.status, HealthTimedOut: seen.timedOut}
	if a.mayAsk() && a.owns(ctx, log.Port) {
		w.Ours, w.Token = true, a.oneToken(ctx)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		a.watch.drain(ctx) // the ready line may have come while the token was on its way
		log, _ = a.watch.facts()
		w.FiredUp = log.Ready
	}
	w.Alive, w.Owed, w.Silent = a.lives(), a.owed(), a.quietFor()
	var before int
	w.Failures, before = a.probes.failing()
	w.Batches = w.Failures > 0 && log.Prefills+log.Decodes > before
	return a.conclude(w)
}

// conclude applies the rule to what the witnesses said.
func (a *attempt) conclude(w sglang.Witness) (ready bool, err error) {
	verdict := sglang.Ready(w)
	for _, text := range verdict.Disagree {
		a.disagree(text)
	}
	switch {
	case verdict.State == sglang.StateStuck && w.Health == http.StatusOK:
		return false, fmt.Errorf("%w: it says that it is ready and gives no token", errStuck)
	case verdict.State == sglang.StateStuck:
		return false, fmt.Errorf("%w: its log says that it is ready, but it gives no token and %s", errStuck, a.probes.failed())
	case verdict.Ready && len(verdict.Disagree) == 0:
		a.oneMissing(w)
	}
	return verdict.Ready, nil
}

// oneMissing records which one of the two other witnesses was missing when the token came.
func (a *attempt) oneMissing(w sglang.Witness) {
	switch {
	case w.FiredUp && w.Health == http.StatusOK:
	case !w.FiredUp: // up to 0.4.9 the line may still come: /health_generate works before the server's own first request
		a.lineless = a.bothSides("a token came, but the log has no ready line")
	case w.Batches:
		a.disagree("health_busy_timeout: the log says ready and batches ran, but /health failed; the server is busy, not dead")
	case w.HealthTimedOut:
		a.disagree("health_busy_timeout: a token came and the log says ready, but /health did not answer in time")
	case w.Health == 0:
		a.disagree("a token came and the log says ready, but /health gave no answer")
	default:
		a.disagree(fmt.Sprintf("a token came and the log says ready, but /health says %d", w.Health))
	}
}

// disagree records a monitor that contradicts the server, with both sides quoted.
func (a *attempt) disagree(text string) {
	text = a.bothSides(text)
	a.find("monitor_wrong", text)
	a.notice("finding", fmt.Sprintf("trial %d: %s", a.t.Number, text))
}

// bothSides adds what the log and what the health endpoint said to a text.
func (a *attempt) bothSides(text string) string {
	log, first := a.watch.facts()
	health := a.probes.failed()
	if health == "" {
		health = a.healthPath() + " answered 200"
	}
	return fmt.Sprintf("%s (%s, while %s)", text, logSide(log, first), health)
}

// foreign records, once, that somebody else's server answers on our port.
func (a *attempt) foreign(seen answer) {
	const name = "probe_answered_by_other_server"
	for _, f := range a.findings {
		if f.Name == name {
			return
		}
	}
	holder := a.holder
	if holder == "" {
		holder = "a process that is not of this trial"
	}
	a.find(name, fmt.Sprintf("%s on port %d %s, but the port is held by %s; the answer was not used", seen.path, a.t.Port, seen.words(), holder))
}

// mayAsk: a token costs the server a generation, so it is asked for once a witness says ready, or when HTTP
// has been up for long and neither does.
func (a *attempt) mayAsk() bool {
	asked, up := a.probes.since()
	return !asked.IsZero() || !up.IsZero() && a.Clock.Now().Sub(up) >= a.floor(silenceLimit, silenceLimitReal)
}

// owed is how long a token has been owed, 0 until that is long enough to mean anything on our clock.
func (a *attempt) owed() time.Duration {
	asked, _ := a.probes.since()
	if asked.IsZero() {
		return 0
	}
	return a.longEnough(a.Clock.Now().Sub(asked))
}

// quietFor is how long nothing has moved, 0 until that is long enough to mean anything on our clock.
func (a *attempt) quietFor() time.Duration { return a.longEnough(a.watch.silence()) }

func (a *attempt) longEnough(d time.Duration) time.Duration {
	if d < a.floor(silenceLimit, silenceLimitReal) {
		return 0
	}
	return d
}

func (a *attempt) oneToken(ctx context.Context) bool {
	ctx, cancel := a.within(ctx, healthTimeout, healthTimeoutReal)
	defer cancel()
	return a.target.OneToken(ctx) == nil
}

func (a *attempt) lives() bool {
	select {
	case <-a.process.Done():
		return false
	default:
		return true
	}
}

// owns reports whether the port is ours: announced in our log, or held by one of our processes.
func (a *attempt) owns(ctx context.Context, announced int) bool {
	if announced == a.t.Port {
		return true
	}
	end, err := a.Host.Reach(ctx, a.t.Port)
	if err != nil || len(end.Owners) == 0 {
		return false
	}
	ours, err := a.Host.Find(ctx, a.t.Marker)
	if err != nil {
		return false
	}
	for _, p := range ours {
		for _, owner := range end.Owners {
			if p.ID().PID == owner {
				return true
			}
		}
	}
	a.holder = holders(end.Owners)
	return false
}

// tooLong ends a start: by its time limit, or because nothing moves any more.
func (a *attempt) tooLong() error {
	silent := a.watch.silence()
	log, _ := a.watch.facts()
	switch {
	case len(log.Fatal) > 0 && silent >= a.floor(afterFatal, afterFatalReal):
		return errDying
	case silent >= a.floor(noProgress, noProgressReal):
		return errStuck
	case a.ReadyTimeout > 0 && a.sinceLaunch() >= a.ReadyTimeout:
		if silent >= a.floor(quiet, quietReal) {
			return errStuck
		}
		return errTimeout
	}
	return nil
}

// loadText says how far the start is.
func (w *watch) loadText() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.reader.Facts()
	switch log.Phase {
	case sglang.PhaseLaunch:
		return "starting the server's processes"
	case sglang.PhaseDistInit:
		return "connecting the ranks"
	case sglang.PhaseWeightLoad:
		if v := log.Last[kindShards].Values; v["load_total"] > 0 {
			return fmt.Sprintf("loading weights, %.0f of %.0f files", v["load_done"], v["load_total"])
		}
		return "loading weights"
	case sglang.PhaseKVPool:
		return "allocating the KV pool"
	case sglang.PhaseGraphCapture:
		return "capturing CUDA graphs"
	case sglang.PhaseHostPool:
		return "pinning host memory for the hierarchical cache (silent for minutes when it is large)"
	default:
		return "waiting for its first token"
	}
}
