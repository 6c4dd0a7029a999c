package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
)

// Limits of the store, in real and host time.
const storeLimit = 30 * time.Second

// storeRetries are the pauses between tries to store the finished row: half a minute is enough for
// a locked file and for a person who frees a full disk while looking at the message.
var storeRetries = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second}

// attempt is one trial while it runs: what the steps hand to each other.
type attempt struct {
	*Runner
	t     *Trial
	abort context.CancelCauseFunc // ends work; the first cause wins
	since time.Time               // when the present step began
	awake time.Duration           // Asleep when the trial began

	baseline *host.Usage    // before the launch, nil when it was not read
	fault    *host.GPUFault // of a GPU before the launch, nil for none
	started  bool           // Start was called: something may live with our marker
	process  host.Process
	target   benchmark.Target
	watch    *watch
	load     *replay // feeds and palette, nil before they are needed

	launched time.Time // host time
	loaded   time.Time // when load began, zero before
	ready    bool
	stuck    bool // it hangs: no use in asking it to stop
	// unguarded: nobody watches the memory while it is asked to stop
	unguarded atomic.Bool
	probes    probes
	lineless  string // it was ready while the log had no ready line: a finding when none comes
	holder    string // who holds the port, for a refusal
	findings  []Finding

	// How things were when work ended, before reclaim changed them.
	reached      Step          // the step in which it ended
	reachedAfter time.Duration // since the launch
	final        Step          // what the finished row says: where a failed trial failed
	exit         Exit
	log          sglang.LogFacts
	first, last  map[string]sglang.Event // by kind
	silent       time.Duration           // since the log last moved

	guarded     *host.GuardVerdict // what the guard of the server decided, nil where there is none
	watchedFrom time.Time          // host time of its first look
	site        *Site              // the trial's own machine, nil where all trials share the Host
	unsettled   error              // why it has none
	job         *host.SlurmJob     // its job, where that ended before we ended anything

	released released // what reclaim found
	unsaved  error    // first failure to store the row
}

// Exit is the end of the server as it was before sgtune stopped anything.
type Exit struct {
	Alive bool // it was still running; the rest is not valid
	host.Exit
}

func (r *Runner) begin(t *Trial) *attempt {
	t.State = Running
	t.LowWater, t.OwnRAM, t.MinRAM = -1, -1, -1
	t.Dir = strconv.Itoa(t.Number)
	t.Steps = maps.Clone(t.Steps)
	if t.Steps == nil {
		t.Steps = map[Step]time.Duration{}
	}
	if t.CreatedAt.IsZero() {
		t.CreatedAt = r.Clock.Now()
	}
	return &attempt{Runner: r, t: t, abort: func(error) {}, since: r.Clock.Now(), awake: r.asleep()}
}

// dir is the trial's evidence folder.
func (a *attempt) dir() string { return filepath.Join(a.Files, a.t.Dir) }

// leave books the time spent in the present step.
func (a *attempt) leave() {
	now := a.Clock.Now()
	if a.t.Step != "" && !a.since.IsZero() {
		a.t.Steps[a.t.Step] += now.Sub(a.since)
	}
	a.since = now
}

// stepText says in plain words what a step does.
var stepText = map[Step]string{
	StepAdmit:   "checking the host",
	StepLaunch:  "starting the server",
	StepWait:    "waiting for the server to load",
	StepCanary:  "canary: the longest prompts, to see whether memory holds",
	StepWarmup:  "flushing and filling the cache",
	StepMeasure: "measuring",
	StepStop:    "stopping the server",
	StepReclaim: "checking that the host is clean",
	StepSave:    "storing the result",
}

// expected is the configured length of a step, 0 where none is known.
func (a *attempt) expected(s Step) time.Duration {
	switch s {
	case StepCanary:
		return a.Load.Canary
	case StepWarmup:
		if a.fillWanted() > 0 {
			return a.Load.Fill
		}
	case StepMeasure:
		return time.Duration(len(a.t.Plan)) * a.Load.Cap
	case StepStop:
		return a.Grace
	default: // the loop knows how long this model took to load before
	}
	return 0
}

// report shows what is happening.
func (a *attempt) report(text string) { a.show(Progress{Text: text}) }

func (a *attempt) show(p Progress) {
	if a.Progress == nil {
		return
	}
	p.Number, p.Step = a.t.Number, a.t.Step
	p.Elapsed, p.Expected = a.Clock.Now().Sub(a.since), a.expected(a.t.Step)
	a.Progress(p)
}

func (r *Runner) notice(kind, text string) {
	if r.Notice != nil {
		r.Notice(kind, text)
	}
}

func (a *attempt) find(name, text string) {
	a.findings = append(a.findings, Finding{Name: name, Text: text})
}

// floor is a limit of host time that never gets shorter than least of real time, however fast the
// host's clock runs: our own scheduling and the network do not run faster with it.
func (r *Runner) floor(limit, least time.Duration) time.Duration { return floor(r.Clock, limit, least) }

func floor(c benchmark.Clock, limit, least time.Duration) time.Duration {
	return max(limit, time.Duration(float64(least)*patience*c.Scale()))
}

// patience stretches every least real time; tests, whose servers are quick, shorten it.
var patience = 1.0

// within is a context that ends after limit of host time, but not before least of real time.
func (r *Runner) within(ctx context.Context, limit, least time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(time.Duration(float64(limit)/r.Clock.Scale()), time.Duration(float64(least)*patience)))
}

// pause waits d of host time, less when ctx ends or a person is in a hurry.
func (r *Runner) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-r.Hurry:
	case <-r.Clock.After(d):
	}
}

// storeError says which row could not be stored.
type storeError struct {
	number int
	step   Step
	err    error
}

func (e *storeError) Error() string {
	return fmt.Sprintf("store trial %d before step %s: %v", e.number, e.step, e.err)
}

func (e *storeError) Unwrap() error { return e.err }

// panicError is a bug of ours that ended a trial.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("sgtune itself failed: %v", e.value) }

// guard turns a panic into an error, so that the line after the call always runs.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return do()
}

// asPanic returns the stack of a panic, "" when err is none.
func asPanic(err error) string {
	var p *panicError
	if errors.As(err, &p) {
		return string(p.stack)
	}
	return ""
}
