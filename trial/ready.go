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

// probeCount is what the probes saw, by status code; 0 counts refused and timed-out ones.
type probeCount struct {
	health   map[int]int
	asked    time.Time // when a token was first owed: ready by log or /health, zero before
	answered time.Time // when HTTP first answered anything, zero before
}

// wait waits for readiness by the one rule of design 5: our process lives, and one real token came
// back from its own port, after "fired up" in its log or 200 from /health. Bodies are never parsed.
func (a *attempt) wait(ctx context.Context) error {
	a.probes.health = map[int]int{}
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
	status := a.health(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	a.probes.health[status]++
	if a.probes.asked.IsZero() && (log.Ready || status == http.StatusOK) {
		a.probes.asked = a.Clock.Now()
	}
	if a.probes.answered.IsZero() && status != 0 {
		a.probes.answered = a.Clock.Now()
	}
	w := sglang.Witness{FiredUp: log.Ready, Health: status}
	if a.mayAsk() {
		w.Token = a.oneToken(ctx)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		a.watch.drain(ctx) // the ready line may have come while the token was on its way
		log, _ = a.watch.facts()
		w.FiredUp, w.Ours = log.Ready, w.Token && a.owns(ctx, log.Port)
	}
	w.Alive, w.Owed, w.Silent = a.lives(), a.owed(), a.watch.silence()
	verdict := sglang.Ready(w)
	for _, text := range verdict.Disagree {
		a.find("monitor_wrong", text)
		a.notice("finding", fmt.Sprintf("trial %d: %s", a.t.Number, text))
	}
	if verdict.State == sglang.StateStuck {
		return false, fmt.Errorf("%w: it says that it is ready and gives no token", errStuck)
	}
	if verdict.Ready && !w.FiredUp || verdict.Ready && status != http.StatusOK {
		a.disagreed(w)
	}
	return verdict.Ready, nil
}

// disagreed records which of the two other witnesses was missing when the token came.
func (a *attempt) disagreed(w sglang.Witness) {
	text := fmt.Sprintf("a token came and the log says ready, but /health says %d", w.Health)
	if !w.FiredUp {
		text = "a token came, but the log has no ready line"
	} else if w.Health == 0 {
		text = "a token came and the log says ready, but /health gave no answer"
	}
	a.find("monitor_wrong", text)
}

// mayAsk: a token costs the server a generation, so it is asked for once a witness says ready, or when HTTP
// has been up for long and neither does.
func (a *attempt) mayAsk() bool {
	up := a.probes.answered
	return !a.probes.asked.IsZero() || !up.IsZero() && a.Clock.Now().Sub(up) >= a.floor(silenceLimit, silenceLimitReal)
}

// owed is how long a token has been owed, 0 until that is long enough to mean anything on our clock.
func (a *attempt) owed() time.Duration {
	if a.probes.asked.IsZero() {
		return 0
	}
	owed := a.Clock.Now().Sub(a.probes.asked)
	if owed < a.floor(silenceLimit, silenceLimitReal) {
		return 0
	}
	return owed
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
	case a.owed() > 0 && silent >= a.floor(silenceLimit, silenceLimitReal):
		return fmt.Errorf("%w: it says that it is ready and gives no token", errStuck)
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
	switch w.reader.Facts().Phase {
	case sglang.PhaseLaunch:
		return "starting the server's processes"
	case sglang.PhaseDistInit:
		return "connecting the ranks"
	case sglang.PhaseWeightLoad:
		if v := w.last[kindShards].Values; v["load_total"] > 0 {
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
