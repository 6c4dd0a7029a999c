package trial

import (
	"errors"
	"fmt"

	"sgtune/host"
	"sgtune/sglang"
)

// ErrUnfitHost is returned by Run when the GPUs are in a state in which no further trial can be believed: the study
// must stop.
var ErrUnfitHost = errors.New("the host's GPUs are not fit for a trial")

// errGPUFault ends a trial's work: the driver says that a GPU is lost, broken or split.
var errGPUFault = errors.New("the driver reports a fault of a GPU")

// refuse is the error of a launch on GPUs that no trial can use, nil when they are fit.
func (a *attempt) refuse(u host.Usage) error {
	a.fault = host.FaultOf(u.GPUs, u.GPUNote)
	if a.fault == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", errGPUFault, a.fault.Text)
}

// health books what a reading says of the GPUs' state; mu is held. The first fault ends work.
func (w *watch) health(u host.Usage) {
	if w.underLoad {
		w.throttle.Add(u.GPUs)
	}
	if w.fault != nil {
		return
	}
	if w.fault = host.FaultOf(u.GPUs, u.GPUNote); w.fault != nil {
		w.a.abort(fmt.Errorf("%w: %s", errGPUFault, w.fault.Text))
	}
}

// gpuHealth is what was seen of the GPUs' state, before and after the launch.
func (a *attempt) gpuHealth() (fault *host.GPUFault, throttle host.ThrottleWindow) {
	if a.watch == nil {
		return a.fault, throttle
	}
	a.watch.mu.Lock()
	defer a.watch.mu.Unlock()
	return a.watch.fault, a.watch.throttle
}

// unfit says why the study must not go on, nil when it may. Memory that is broken stays so until a person resets
// the card. A GPU that was lost is looked for again at the next launch: it may have been the end of that server only.
func (a *attempt) unfit() error {
	fault, _ := a.gpuHealth()
	if fault == nil || fault.Cause == host.FaultLost && a.started {
		return nil
	}
	return fmt.Errorf("trial %d: %w: %s", a.t.Number, ErrUnfitHost, fault.Text)
}

// faultyGPU: the driver itself says why nothing that the server printed or did is its own fault.
func faultyGPU(f *Facts) (Verdict, bool) {
	if f.GPUFault == nil {
		return Verdict{}, false
	}
	return env(f.GPUFault.Cause, []string{adviceRerun}, f.GPUFault.Text+"; then run the same again"), true
}

// throttled: the result is the machine's.
func throttled(f *Facts) (Verdict, bool) {
	if !f.finished() || !f.Throttle.Throttled() {
		return Verdict{}, false
	}
	if _, bad := invalid(f); bad {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Degraded, Phase: sglang.PhaseBench, Cause: "throttled", Blames: BlameNo, Advice: []string{adviceRerun}}
	v.Text = "the GPUs lowered their clocks while they were measured (" + f.Throttle.Text() + "): the number says how the machine was, not the flags; measure again when it is cool"
	return v, true
}

// powerCapped is the share of samples from which on it is worth saying that the GPUs ran at their power limit.
const powerCapped = 0.5

// capFinding says so, where nothing worse slowed them.
func capFinding(f *Facts) []Finding {
	if f.Throttle.Throttled() || f.Throttle.Share(host.PowerCap) < powerCapped {
		return nil
	}
	return []Finding{{"power_capped", "the GPUs ran at their power limit: " + f.Throttle.Text() + "; that is usual under full load, and a higher limit would be faster"}}
}
