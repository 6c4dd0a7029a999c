package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
)

// ErrNotAdopted is wrapped by the error of Adopt, which says why the server of a dead sgtune cannot be used.
var ErrNotAdopted = errors.New("not adopted")

// Adoption is one time that a later sgtune took over the living server of a trial.
type Adoption struct {
	At time.Time `json:"at"` // host time
	By string    `json:"by"` // the sgtune that did it
}

// adopting is a host whose processes can be taken over by a later sgtune.
type adopting interface {
	// Adopt proves by its identity that a process is the one that was started, and that its guard, if it was given
	// limits, lives and hears us again. The Argv of the returned process's ID is what the host has of it.
	Adopt(ctx context.Context, id host.ID, logPath string, limits *host.GuardLimits) (host.Process, error)
}

// pastWait are the steps of a trial whose server was ready and that nobody had begun to stop.
var pastWait = []Step{StepCanary, StepQuality, StepWarmup, StepMeasure}

// Adopt takes over the server of t, a running row whose sgtune is dead, to save its load. The caller holds the host's lease,
// and the study is the one that the row belongs to (its identity was compared). It proves that the server is that of
// the row, ends all requests and flushes its caches. From then on goOn runs the trial from its canary to its finished row as
// Run does; it must be called. The levels that are stored are not measured again, and no text that may have been
// sent to this server before is sent again.
//
// With an error, which wraps ErrNotAdopted, the row is as it was and nothing was stopped: Recover reclaims it. So it
// is after another crash at any instant: the row is a running one in one of the same steps.
func (r *Runner) Adopt(ctx context.Context, t *Trial) (goOn func(context.Context, *Trial) error, err error) {
	row := *t
	a := r.orphaned(&row)
	if err := guard(func() error { return a.takeOver(ctx) }); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAdopted, err)
	}
	row.Adopted = true
	row.Adoptions = append(slices.Clone(row.Adoptions), Adoption{At: r.Clock.Now(), By: r.Who})
	return func(ctx context.Context, t *Trial) error {
		*t = row
		a.t = t
		return a.run(ctx)
	}, nil
}

// orphaned is the attempt that a row is in the middle of.
func (r *Runner) orphaned(row *Trial) *attempt {
	row.Steps = maps.Clone(row.Steps)
	if row.Steps == nil {
		row.Steps = map[Step]time.Duration{}
	}
	row.Levels = slices.Clone(row.Levels)
	return &attempt{
		Runner: r, t: row, abort: func(error) {}, since: r.Clock.Now(), awake: r.asleep(),
		launched: row.StartedAt, started: true, ready: true,
	}
}

// takeOver proves that the server is the row's, and makes it idle and its caches empty.
func (a *attempt) takeOver(ctx context.Context) error {
	h, ok := a.Host.(adopting)
	switch {
	case !ok || a.Server.Container != nil:
		return errors.New("this kind of host cannot prove whose server it is")
	case !slices.Contains(pastWait, a.t.Step):
		return fmt.Errorf("its server was not past its start, or was being stopped: step %s", a.t.Step)
	case !slices.Equal(a.maskArgv(a.argv()), a.t.Argv):
		return errors.New("it would be launched with another command line today")
	}
	var err error
	if a.process, err = h.Adopt(ctx, a.t.Process, rawLog(scratch(a.Scratch, a.t.Marker)), a.guardLimits()); err != nil {
		return err
	}
	if differs := a.unlike(a.t.Process, a.process.ID()); differs != "" {
		return fmt.Errorf("%w: %s", host.ErrNotProven, differs)
	}
	usage, err := a.Host.Usage(ctx)
	if err != nil {
		return fmt.Errorf("read the host: %w", err)
	}
	usage.MemAvailable = -1 // what it was before the launch is not known any more
	a.baseline = &usage
	return a.calm(ctx)
}

// unlike says in which fact a living process differs from the stored one, "" in none. A script's interpreter may stand
// before its own words; the stored ones are masked.
func (a *attempt) unlike(stored, living host.ID) string {
	words := a.maskArgv(living.Argv)
	before := len(words) - len(stored.Argv)
	switch {
	case stored.BootID == "" || living.BootID != stored.BootID:
		return "the machine was started anew"
	case living.PID != stored.PID:
		return fmt.Sprintf("it has pid %d and had %d", living.PID, stored.PID)
	case living.StartTicks != stored.StartTicks:
		return fmt.Sprintf("pid %d was given to another process", living.PID)
	case stored.Marker == "" || stored.Marker != a.t.Marker || living.Marker != stored.Marker:
		return fmt.Sprintf("pid %d does not carry the trial's marker", living.PID)
	case before < 0 || len(stored.Argv) < 2 || !slices.Equal(words[before+1:], stored.Argv[1:]):
		return fmt.Sprintf("pid %d has another command line than was launched", living.PID)
	}
	return ""
}

// calm ends what still runs on the server, flushes it, which it refuses as long as it is not idle, and asks its version.
func (a *attempt) calm(ctx context.Context) error {
	end, err := a.Host.Reach(ctx, a.t.Port)
	if err != nil {
		return fmt.Errorf("reach its port: %w", err)
	}
	a.target = ServerTarget(end, a.Server, a.t.Config)
	if !a.owns(ctx, 0) {
		return fmt.Errorf("port %d is not held by a process of the trial", a.t.Port)
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	if a.t.SGLang == "" {
		return nil
	}
	ctx, cancel := a.within(ctx, healthTimeout, infoTimeReal)
	defer cancel()
	info, err := a.target.ServerInfo(ctx)
	if err != nil {
		return fmt.Errorf("ask its version: %w", err)
	}
	if v, _ := info["version"].(string); v != a.t.SGLang {
		return fmt.Errorf("it says that it is SGLang %q and was %s", v, a.t.SGLang)
	}
	return nil
}

// resume is the canary of an adopted server, after what a launch does: its log is followed from its first byte, into
// evidence that is written anew, and what was measured of a level that is not stored is dropped.
func (a *attempt) resume(ctx context.Context) error {
	gone := []string{a.serverLog()}
	for _, level := range a.t.Plan[min(len(a.t.Levels), len(a.t.Plan)):] {
		gone = append(gone, a.samplesPath(level))
	}
	for _, path := range gone {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.find("evidence_incomplete", "evidence of before the adoption is still in its file: "+err.Error())
		}
	}
	a.startWatch(ctx)
	a.watch.drain(ctx)
	return a.canary(ctx)
}

// salt keeps texts apart: none is sent twice in a server's life, and what a dead sgtune has sent is not known.
func (a *attempt) salt() string {
	if n := len(a.t.Adoptions); n > 0 {
		return fmt.Sprintf("%s/adopted-%d", a.Load.Salt, n)
	}
	return a.Load.Salt
}

// taken is how many prompts the stored levels took from the measured rows: the next level goes on behind them.
func taken(levels []Level) int {
	n := 0
	for _, l := range levels {
		if l.Report != nil {
			n += l.Report.Warmup + l.Report.Requests.Sent + l.Report.Cut
		}
	}
	return n
}

// skip passes over prompts that were taken before.
func skip(feed benchmark.Feed, n int) benchmark.Feed {
	for range n {
		feed.Next()
	}
	return feed
}

// adoptions tells who took the server over, as findings.
func adoptions(t *Trial) []Finding {
	var list []Finding
	for _, one := range t.Adoptions {
		list = append(list, Finding{"adopted", fmt.Sprintf("its sgtune died; %s took its living server over at %s, flushed it, and measured what was not stored yet",
			one.By, one.At.Format(time.DateTime))})
	}
	return list
}
