package trial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

// sickHost is a fakeHost whose GPUs have a fault from a moment on.
type sickHost struct {
	*fakeHost
	fault func(*host.Usage)

	serving bool // it begins with a launch; else at once
}

func (h *sickHost) Usage(ctx context.Context) (host.Usage, error) {
	u, err := h.fakeHost.Usage(ctx)
	if err == nil && (!h.serving || launched(h.fakeHost)) {
		h.fault(&u)
	}
	return u, err
}

func launched(h *fakeHost) bool {
	return slices.ContainsFunc(h.happened(), func(e string) bool { return strings.HasPrefix(e, "start ") })
}

func lost(u *host.Usage) {
	u.GPUs, u.GPUNote = nil, "no GPU facts: GPU 1: open: the GPU is lost: GPU is lost (NVML 15)"
}
func broken(u *host.Usage) { u.GPUs[1].UncorrectedECC = host.Known(1) }
func split(u *host.Usage)  { u.GPUs[0].MIG = host.Yes }
func hot(u *host.Usage) {
	for i := range u.GPUs {
		u.GPUs[i].Throttle = host.Throttle{Known: true, Reasons: []host.ThrottleReason{host.PowerCap, host.HardwareThermal}}
	}
}

// TestGPUFault: what the driver says of a GPU decides, before a launch and during one; broken memory, and GPUs that
// are lost or split when a launch is due, stop the study.
func TestGPUFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   func(*host.Usage)
		serving bool
		cause   string
		stops   bool
		dies    string // what the log blames instead
		text    string
	}{
		{"MIG on", split, false, "mig_on", true, "", "GPU 0 is split into instances (MIG)"},
		{"ECC before the launch", broken, false, "ecc", true, "", "GPU 1 has had 1 memory error that it could not correct"},
		{"lost before the launch", lost, false, "gpu_lost", true, "", "GPU 1: open: the GPU is lost"},
		{"ECC while it runs", broken, true, "ecc", true, "", "reset it"},
		{"lost while it runs", lost, true, "gpu_lost", false, "", "the GPU is lost"},
		{"lost, and the server dies of it", lost, true, "gpu_lost", false, "RuntimeError: CUDA error: unspecified launch failure\n", "the GPU is lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &sickHost{fakeHost: newFakeHost(t, script{log: startLog, load: 50 * time.Millisecond, dies: c.dies, exit: host.Exit{Code: 1, Known: true}}), fault: c.fault, serving: c.serving}
			r, tr := newRunner(t, h.fakeHost, &fakeStore{}), newTrial(2, 4)
			r.Host = h
			err := r.Run(t.Context(), tr)
			if c.stops != errors.Is(err, trial.ErrUnfitHost) || !c.stops && err != nil {
				t.Errorf("stops the study: %v", err)
			}
			v := tr.Verdict
			if tr.State != trial.Failed || v.Outcome != trial.EnvFault || v.Cause != c.cause || v.Blames != trial.BlameNo || !strings.Contains(v.Text, c.text) {
				t.Errorf("%s: %s / %s / %s: %s", tr.State, v.Outcome, v.Phase, v.Cause, v.Text)
			}
			if got := launched(h.fakeHost); got != c.serving || h.alive() > 0 {
				t.Errorf("launched %v, %d processes left", got, h.alive())
			}
			if tr.Value != nil {
				t.Errorf("it has a value: %v", *tr.Value)
			}
		})
	}
}

// TestThrottledTrial: the figures stay, with the mark that they are the machine's.
func TestThrottledTrial(t *testing.T) {
	t.Parallel()
	for range 5 { // a busy machine makes the client late, which the report rightly calls invalid
		h := &sickHost{fakeHost: newFakeHost(t, script{log: startLog, load: 50 * time.Millisecond}), fault: hot}
		r, tr := newRunner(t, h.fakeHost, &fakeStore{}), newTrial(2, 4)
		r.Host = h
		if err := r.Run(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		if tr.Verdict.Outcome == trial.BenchInvalid {
			continue
		}
		v := tr.Verdict
		if tr.State != trial.Complete || v.Outcome != trial.Degraded || v.Cause != "throttled" || v.Blames != trial.BlameNo || tr.Value == nil || !strings.Contains(v.Text, "hw_thermal in 100%") {
			t.Errorf("%s: %s / %s: %s", tr.State, v.Outcome, v.Cause, v.Text)
		}
		return
	}
	t.Error("the client was late five times")
}

// TestDriverDecides: the driver's word against everything else that a verdict depends on.
func TestDriverDecides(t *testing.T) {
	t.Parallel()
	window := func(throttle host.Throttle, n int) host.ThrottleWindow {
		var w host.ThrottleWindow
		for range n {
			w.Add([]host.GPU{{Throttle: throttle}})
		}
		return w
	}
	hot := window(host.Throttle{Known: true, Reasons: []host.ThrottleReason{host.SoftwareThermal}}, 20)
	capped := window(host.Throttle{Known: true, Reasons: []host.ThrottleReason{host.PowerCap}}, 20)
	died := sglang.LogFacts{Lines: 9, Fatal: []sglang.Event{{Kind: "python_fatal", Phase: sglang.PhaseDecode, Line: 7, Text: "CUDA error: unspecified launch failure"}}}
	fault := &host.GPUFault{Cause: host.FaultLost, Text: "GPU 1: lost"}
	for _, c := range []struct {
		name    string
		facts   trial.Facts
		outcome trial.Outcome
		cause   string
		finding string
	}{
		{"the log names an exception", trial.Facts{Log: died, Ending: trial.EndDied, Dead: true}, trial.Crashed, "", ""},
		{"and the driver a lost GPU", trial.Facts{Log: died, Ending: trial.EndDied, Dead: true, GPUFault: fault}, trial.EnvFault, "gpu_lost", ""},
		{"all done, then broken", trial.Facts{Ending: trial.EndDone, Ready: true, GPUFault: &host.GPUFault{Cause: host.FaultECC, Text: "GPU 1: broken"}}, trial.EnvFault, "ecc", ""},
		{"served hot", trial.Facts{Ending: trial.EndDone, Ready: true, Throttle: hot}, trial.Degraded, "throttled", ""},
		{"pruned hot", trial.Facts{Ending: trial.EndPruned, Ready: true, Throttle: hot}, trial.Degraded, "throttled", ""},
		{"served at the power limit", trial.Facts{Ending: trial.EndDone, Ready: true, Throttle: capped}, trial.OK, "none", "power_capped"},
		{"died hot", trial.Facts{Log: died, Ending: trial.EndDied, Dead: true, Throttle: hot}, trial.Crashed, "", ""},
	} {
		v := trial.Classify(c.facts)
		if v.Outcome != c.outcome || c.cause != "" && v.Cause != c.cause {
			t.Errorf("%s: %s / %s: %s", c.name, v.Outcome, v.Cause, v.Text)
		}
		if got := slices.ContainsFunc(v.Findings, func(f trial.Finding) bool { return f.Name == "power_capped" }); got != (c.finding != "") {
			t.Errorf("%s: findings %v", c.name, v.Findings)
		}
		if !trial.CauseAllowed(v.Outcome, v.Cause) {
			t.Errorf("%s: %s / %s is not of the list", c.name, v.Outcome, v.Cause)
		}
	}
}
