package trial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// losingHost is a fakeHost whose servers lose their guards: answers are those of KeepGuarded, one after the other, and
// then nothing is wrong.
type losingHost struct {
	*fakeHost
	answers []error // one that wraps errLost was replaced
	asked   atomic.Int32
}

var errLost = errors.New("the guard of the server (pid 9) has died")

type losingPart struct {
	host.Process
	h *losingHost
}

func (h *losingHost) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := h.fakeHost.Start(ctx, c)
	return &losingPart{p, h}, err
}

func (p *losingPart) KeepGuarded(context.Context) (string, error) {
	n := int(p.h.asked.Add(1)) - 1
	if n >= len(p.h.answers) || p.h.answers[n] == nil {
		return "", nil
	}
	if errors.Is(p.h.answers[n], errLost) {
		return errLost.Error(), nil
	}
	return "", p.h.answers[n]
}

// TestGuardIsLookedAfter: a guard that was replaced is an event and a finding; a server that lost two, or for which there
// is no other one, is ended at once and without blame. A host that cannot be asked for the moment is no loss.
func TestGuardIsLookedAfter(t *testing.T) {
	t.Parallel()
	gone := fmt.Errorf("%w: no more processes", host.ErrUnguarded)
	for _, c := range []struct {
		name    string
		answers []error
		ended   bool
		told    string
	}{
		{"nothing is wrong", nil, false, ""},
		{"not to be asked", []error{errors.New("link cut"), errors.New("link cut"), errors.New("link cut")}, false, ""},
		{"replaced", []error{errLost}, false, "guard: trial 7: the guard of the server (pid 9) has died"},
		{"replaced twice", []error{errLost, nil, errLost}, true, "guard: trial 7: the trial is ended: it was lost 2 times, the last time the guard of the server (pid 9) has died"},
		{"not to be replaced", []error{gone}, true, "guard: trial 7: the trial is ended: the server has no guard: no more processes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var h *losingHost
			var tr *trial.Trial
			var told []string
			for range 5 { // a busy machine makes the client late, which is nobody's fault
				h = &losingHost{fakeHost: newFakeHost(t, script{log: startLog, load: 50 * time.Millisecond}), answers: c.answers}
				r := newRunner(t, h.fakeHost, &fakeStore{})
				r.Host, r.Guard = h, &host.GuardLimits{}
				r.Load.Cap, r.Load.Window = 2*time.Minute, 40*time.Second // long enough for four looks
				var mu sync.Mutex
				told = nil
				r.Notice = func(kind, text string) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, kind+": "+text)
				}
				tr = newTrial(2, 4)
				if err := r.Run(t.Context(), tr); err != nil {
					t.Fatal(err)
				}
				if tr.Verdict.Outcome != trial.BenchInvalid {
					break
				}
			}
			v := tr.Verdict
			if c.ended {
				if tr.State != trial.Failed || v.Outcome != trial.EnvFault || v.Blames != trial.BlameNo || !strings.Contains(v.Text, "without its guard") {
					t.Errorf("%s, %s, blames %s: %s", tr.State, v.Outcome, v.Blames, v.Text)
				}
			} else if tr.State != trial.Complete {
				t.Errorf("%s, %s / %s: %s", tr.State, v.Outcome, v.Cause, v.Text)
			}
			if all := strings.Join(told, "\n"); c.told != "" && !strings.Contains(all, c.told) || c.told == "" && strings.Contains(all, "guard") {
				t.Errorf("told:\n%s\nwant %q", all, c.told)
			}
			findings := ""
			for _, f := range v.Findings {
				findings += f.Name + " "
			}
			if strings.Contains(findings, "guard_lost") != (c.told != "") {
				t.Errorf("findings %s", findings)
			}
			if asked := strings.Contains(strings.Join(h.happened(), "\n"), "\nterm "); asked == c.ended {
				t.Errorf("what happened on the host: %q", h.happened())
			}
			if int(h.asked.Load()) < len(c.answers) {
				t.Errorf("it was looked at %d times", h.asked.Load())
			}
		})
	}
}
