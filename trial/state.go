package trial

// State is what samplers and SQL read.
type State string

// States. A trial is created Waiting, Running once the host is about to be touched, and ends in one of
// the other four.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Complete  State = "complete"  // ran to its end; the value, if any, counts
	Pruned    State = "pruned"    // stopped early as hopeless; its partial result is a bound
	Failed    State = "failed"    // ended by a failure; Verdict says whose
	Cancelled State = "cancelled" // stopped by a person
)

// Step is where the tuner is in a running trial.
type Step string

// Steps in order. Quality is passed over without a gate.
const (
	StepAdmit   Step = "admit"
	StepLaunch  Step = "launch"
	StepWait    Step = "wait"
	StepCanary  Step = "canary"
	StepQuality Step = "quality"
	StepWarmup  Step = "warmup"
	StepMeasure Step = "measure"
	StepStop    Step = "stop"
	StepReclaim Step = "reclaim"
	StepSave    Step = "save"
)

// Steps lists all steps in order.
var Steps = []Step{StepAdmit, StepLaunch, StepWait, StepCanary, StepQuality, StepWarmup, StepMeasure, StepStop, StepReclaim, StepSave}

var next = map[State][]State{
	Waiting: {Running, Cancelled},
	Running: {Running, Complete, Pruned, Failed, Cancelled},
}

// Finished reports whether a state is final.
func (s State) Finished() bool { return s != Waiting && s != Running }

// CanBecome reports whether a trial may go from s to t.
func (s State) CanBecome(t State) bool {
	for _, n := range next[s] {
		if n == t {
			return true
		}
	}
	return false
}
