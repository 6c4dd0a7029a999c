package trial_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
	"sgtune/trial"
)

// errDead is what calls of a dead sgtune come to, long after anybody looks.
var errDead = errors.New("this sgtune is dead")

// crash is a rule of a gate: at one call of a run, before or after its effect, sgtune dies. From then on nothing that it
// does has an effect: its calls hang until the test is over.
type crash struct {
	call  string
	after bool
	end   <-chan struct{}

	once sync.Once
	dead chan struct{}
}

func newCrash(t *testing.T, call string, after bool) *crash {
	return &crash{call: call, after: after, end: t.Context().Done(), dead: make(chan struct{})}
}

func (c *crash) rule(_ context.Context, call string, after bool) error {
	if call == c.call && after == c.after {
		c.once.Do(func() { close(c.dead) })
	}
	select {
	case <-c.dead:
		<-c.end
		return errDead
	default:
		return nil
	}
}

// callsOf are the calls that a run of do makes through a gate, each once, in the order of their first.
func callsOf(do func(rule func(context.Context, string, bool) error)) []string {
	var mu sync.Mutex
	var calls []string
	do(func(_ context.Context, call string, after bool) error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(calls, call) {
			calls = append(calls, call)
		}
		return nil
	})
	return calls
}

// crashRun starts a trial behind a gate. Its row is stored as waiting before, as the loop does.
func crashRun(t *testing.T, h *fakeHost, store *fakeStore, rule func(context.Context, string, bool) error) (ended chan error) {
	t.Helper()
	tr := newTrial(2, 4)
	if err := store.SaveTrial(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, h, store)
	g := &gate{host: h, store: store, rule: rule}
	r.Host, r.Store = g, g
	r.Load.Cap, r.Load.Canary, r.Load.Window = 20*time.Second, 10*time.Second, 5*time.Second
	ended = make(chan error, 1)
	go func() { ended <- r.Run(t.Context(), tr) }()
	return ended
}

// TestCrashAtEachCall: sgtune dies at each call that it makes to its store or to its host, before and after the effect of
// the call. The next one finds nothing left on the host once it has recovered, a finished row as it was, and an
// unfinished one innocent, so that its configuration is launched again.
func TestCrashAtEachCall(t *testing.T) {
	t.Parallel()
	calls := callsOf(func(rule func(context.Context, string, bool) error) {
		if err := <-crashRun(t, newFakeHost(t, script{log: startLog}), &fakeStore{}, rule); err != nil {
			t.Fatal(err)
		}
	})
	for _, must := range []string{"save@launch", "save@measure", "start@launch", "stop@stop", "find@reclaim", "usage@reclaim", "reach@reclaim", "save finished@save"} {
		if !slices.Contains(calls, must) {
			t.Fatalf("a whole run makes no call %q, only %s", must, strings.Join(calls, ", "))
		}
	}
	for _, call := range calls {
		if testing.Short() && !strings.HasPrefix(call, "save") && !strings.HasPrefix(call, "st") {
			continue // writes, starts and stops
		}
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after %v", call, after), func(t *testing.T) {
				t.Parallel()
				h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
				c := newCrash(t, call, after)
				ended := crashRun(t, h, store, c.rule)
				select {
				case <-c.dead:
				case err := <-ended:
					t.Skipf("this run made no such call, and ended: %v", err) // readings are taken by the clock
				}
				recovered(t, h, store)
			})
		}
	}
}

// recovered has the next sgtune recover from what is stored, and checks what comes of it.
func recovered(t *testing.T, h *fakeHost, store *fakeStore) {
	t.Helper()
	before := store.last()
	row := before
	if _, err := trial.Recover(t.Context(), h, h.clock, "night", []*trial.Trial{&row}, store); err != nil {
		t.Errorf("recovery: %v", err)
	}
	checkRecovered(t, h, store, before, row)
	saves := store.count()
	if _, err := trial.Recover(t.Context(), h, h.clock, "night", []*trial.Trial{&row}, store); err != nil || store.count() != saves {
		t.Errorf("recovered twice: %v, %d rows stored", err, store.count()-saves)
	}
}

func checkRecovered(t *testing.T, h *fakeHost, store *fakeStore, before, row trial.Trial) {
	t.Helper()
	if h.alive() != 0 {
		t.Errorf("%d processes left", h.alive())
	}
	last := store.last()
	switch {
	case before.State.Finished() || before.State == trial.Waiting:
		if diff := cmp.Diff(before, last); diff != "" {
			t.Errorf("the %s row changed: %s", before.State, diff)
		}
	case last.State != trial.Failed || last.Verdict.Outcome != trial.Aborted || last.Verdict.Blames != trial.BlameNo || last.Void != "":
		t.Errorf("row in step %s became %s, %+v", before.Step, last.State, last.Verdict)
	case last.Release != trial.ReleaseVerified && before.GPUBaseline != nil:
		t.Errorf("release %s", last.Release)
	case !cmp.Equal(before.Levels, last.Levels):
		t.Errorf("%d levels were stored, %d are left", len(before.Levels), len(last.Levels))
	}
	if finished := store.finishedRows(); finished > 1 {
		t.Errorf("%d finished rows", finished)
	}
	if row.State != last.State {
		t.Errorf("the loop was handed a row that is %s, and %s is stored", row.State, last.State)
	}
}

// TestCrashWhileRecovering: the next sgtune dies, too, at each of its calls; the one after it recovers.
func TestCrashWhileRecovering(t *testing.T) {
	t.Parallel()
	const marker = "night.7.1"
	scene := func(t *testing.T) (*fakeHost, *fakeStore, trial.Trial) {
		h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
		orphan(t, h, marker)
		orphan(t, h, "night.3.1") // of a row that is not there
		row := newTrial(2)
		row.State, row.Step, row.Marker, row.GPUBaseline = trial.Running, trial.StepMeasure, marker, []int64{gib / 2, gib / 2}
		e, err := h.Reach(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		row.Port = e.Port
		if err := store.SaveTrial(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		return h, store, *row
	}
	calls := callsOf(func(rule func(context.Context, string, bool) error) {
		h, store, row := scene(t)
		g := &gate{host: h, store: store, rule: rule}
		if _, err := trial.Recover(t.Context(), g, h.clock, "night", []*trial.Trial{&row}, g); err != nil {
			t.Fatal(err)
		}
	})
	if len(calls) < 5 {
		t.Fatalf("calls: %v", calls)
	}
	for _, call := range calls {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after %v", call, after), func(t *testing.T) {
				t.Parallel()
				h, store, row := scene(t)
				c := newCrash(t, call, after)
				g := &gate{host: h, store: store, rule: c.rule}
				go func() { _, _ = trial.Recover(t.Context(), g, h.clock, "night", []*trial.Trial{&row}, g) }() // it hangs until the test is over
				<-c.dead
				recovered(t, h, store)
			})
		}
	}
}

func (s *fakeStore) last() trial.Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves[len(s.saves)-1]
}

func (s *fakeStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.saves)
}

func (s *fakeStore) finishedRows() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished
}

var _ host.Host = (*gate)(nil)
