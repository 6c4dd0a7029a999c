package trial_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// guardedHost is a fakeHost whose servers have a guard with a clock of its own.
type guardedHost struct {
	*fakeHost
	stranger *host.GuardForeign // on GPU 0 or, with GPU -1, on the CPU
	reason   host.GuardReason
	problem  error

	limits *host.GuardLimits
}

// guardsClock is what the guard's clock shows when ours shows now.
func guardsClock(now time.Time) time.Time { return now.Add(-37 * time.Minute) }

type guardedPart struct {
	host.Process
	h       *guardedHost
	started time.Time
}

func (h *guardedHost) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := h.fakeHost.Start(ctx, c)
	h.limits = c.Guard
	return &guardedPart{p, h, h.clock.Now()}, err
}

// Guarded writes a sample for each second since the start and says what the guard decided.
func (p *guardedPart) Guarded(context.Context) (*host.GuardVerdict, error) {
	file, err := os.Create(p.h.limits.Evidence)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(file)
	now := p.h.clock.Now()
	for at := p.started; at.Before(now); at = at.Add(time.Second) {
		s := host.GuardSample{At: guardsClock(at), Cores: 2, BusyCores: 2, GPUs: []host.GPU{{Processes: []host.GPUProcess{{PID: p.ID().PID}}}}}
		if f := p.h.stranger; f != nil {
			if f.GPU >= 0 {
				s.ForeignGPU = []host.GuardForeign{*f}
			} else {
				s.ForeignCPU = []host.GuardForeign{*f}
			}
		}
		if err := enc.Encode(s); err != nil {
			return nil, err
		}
	}
	return &host.GuardVerdict{Started: guardsClock(p.started), Reason: p.h.reason, At: guardsClock(now), Detail: "the detail"}, p.h.problem
}

// TestContaminated: a trial during which somebody else used the GPUs, or the CPUs where there were none to spare, is
// void; so is a failure that would be blamed with a stranger on the GPUs. What a person, or nobody, caused is not.
func TestContaminated(t *testing.T) {
	t.Parallel()
	gpu := &host.GuardForeign{PID: 4711, Name: "train", GPU: 0, Memory: 1 << 30}
	cpu := &host.GuardForeign{PID: 4712, Name: "cc1", GPU: -1, Cores: 1.5}
	oom := script{log: startLog, load: 50 * time.Millisecond, oomAfter: 15, oom: prefillOOM, exit: host.Exit{Code: -1, Signal: 9, Known: true}}
	for _, c := range []struct {
		name     string
		stranger *host.GuardForeign
		script   script
		state    trial.State
		void     string
	}{
		{"nobody", nil, script{log: startLog, load: 50 * time.Millisecond}, trial.Complete, ""},
		{"on a GPU", gpu, script{log: startLog, load: 50 * time.Millisecond}, trial.Complete, "while 2 clients were measured another process used the GPUs in "},
		{"on the CPUs", cpu, script{log: startLog, load: 50 * time.Millisecond}, trial.Complete, "while 2 clients were measured all of the 2 cores were busy and other processes took 1.5"},
		{"on a GPU, before it failed", gpu, oom, trial.Failed, "before it failed another process used the GPUs in "},
		{"on the CPUs, before it failed", cpu, oom, trial.Failed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var tr *trial.Trial
			for range 5 { // a busy machine makes the client late, which is nobody's fault
				h := &guardedHost{fakeHost: newFakeHost(t, c.script), stranger: c.stranger, reason: host.GuardOver}
				r := newRunner(t, h.fakeHost, &fakeStore{})
				r.Host, r.Guard = h, &host.GuardLimits{TimeLimit: time.Hour}
				tr = newTrial(2, 4)
				if err := r.Run(t.Context(), tr); err != nil {
					t.Fatal(err)
				}
				if h.limits == nil || h.limits.TimeLimit != time.Hour || r.Guard.Evidence != "" {
					t.Errorf("limits %+v, of all trials %+v", h.limits, r.Guard)
				}
				if tr.Verdict.Outcome != trial.BenchInvalid {
					break
				}
			}
			if tr.State != c.state {
				t.Errorf("%s: %s / %s: %s", tr.State, tr.Verdict.Outcome, tr.Verdict.Cause, tr.Verdict.Text)
			}
			if (tr.Void == "") != (c.void == "") || !strings.HasPrefix(tr.Void, c.void) {
				t.Errorf("void %q, want %q", tr.Void, c.void)
			}
		})
	}
}

// TestGuardIsLost: a guard that was ended by somebody is a finding, and so is one that cannot be asked.
func TestGuardIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		reason  host.GuardReason
		problem error
		want    string
	}{
		{"ended", host.GuardCancelled, nil, "guard_lost"},
		{"unknown", "", os.ErrPermission, "guard_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &guardedHost{fakeHost: newFakeHost(t, script{log: startLog, load: 50 * time.Millisecond}), reason: c.reason, problem: c.problem}
			r, tr := newRunner(t, h.fakeHost, &fakeStore{}), newTrial(2)
			r.Host, r.Guard = h, &host.GuardLimits{}
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			found := ""
			for _, f := range tr.Verdict.Findings {
				found += f.Name + " "
			}
			if !strings.Contains(found, c.want) {
				t.Errorf("findings %q, want %s", found, c.want)
			}
		})
	}
}
