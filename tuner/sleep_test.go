package tuner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// sleeping is a machine whose clock stands still while it is suspended.
type sleeping struct {
	mu     sync.Mutex
	clock  *fakeClock
	behind time.Duration
	caught int
}

func (s *sleeping) suspend(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind += d
}

func (s *sleeping) Asleep() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behind
}

func (s *sleeping) CatchUp() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.behind
	s.clock.advance(d)
	s.behind = 0
	s.caught++
	return d
}

// A laptop that slept for hours ends its study at its hour all the same, and says so.
func TestSleepDoesNotMoveTheEnd(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Budget = tuner.Budget{Until: "07:00"} // begun at 22:00
	r := newRig(t, s)
	machine := &sleeping{clock: r.clock}
	r.loop.Sleep = machine
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Number == 2 {
			machine.suspend(6 * time.Hour)
		}
	}
	v, err := r.loop.Run(t.Context())
	h := r.trials(t)
	if err != nil || v == nil || v.Answer != "better" {
		t.Fatalf("%+v, %v", v, err)
	}
	if end := r.clock.Now(); end.After(time.Date(2026, 1, 2, 7, 0, 0, 0, time.UTC)) {
		t.Errorf("it ended at %s after %d trials", end, len(h))
	}
	if after := h[3].CreatedAt; after.Before(time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)) {
		t.Errorf("the trial after the sleep was begun at %s", after)
	}
	if told := strings.Join(r.store.texts("host"), "\n"); !strings.Contains(told, "asleep for 6 h") {
		t.Errorf("events %s", told)
	}
}

// A machine that sleeps past the end ends the running trial when it wakes up, not hours later.
func TestSleepPastTheEnd(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Budget = tuner.Budget{Until: "07:00"}
	r := newRig(t, s)
	machine := &sleeping{clock: r.clock}
	r.loop.Sleep = machine
	cut := false
	r.runner.during = func(ctx context.Context, row *trial.Trial) {
		if row.Number != 1 {
			return
		}
		machine.suspend(10 * time.Hour)
		select {
		case <-ctx.Done():
			cut = context.Cause(ctx) == trial.ErrDeadline
		case <-time.After(5 * time.Second):
		}
	}
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "not confirmed" || !cut || len(r.trials(t)) != 2 {
		t.Errorf("%+v, %v, cut %v, %d trials", v, err, cut, len(r.trials(t)))
	}
}

// Clocks are kept right by small steps all the time: nobody is told, and nothing is done anew.
func TestSmallStepsAreNoSleep(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	machine := &sleeping{clock: r.clock}
	r.loop.Sleep = machine
	r.runner.during = func(context.Context, *trial.Trial) { machine.suspend(20 * time.Millisecond) }
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := strings.Join(r.store.texts("host"), "\n"); strings.Contains(told, "asleep") || machine.caught < 3 {
		t.Errorf("caught up %d times: %s", machine.caught, told)
	}
}
