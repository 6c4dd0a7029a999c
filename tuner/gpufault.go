package tuner

import "sgtune/trial"

// fit says why no trial can run on this host's GPUs, nil when they can: they are split into instances, a memory is
// broken, or one is lost. Asked before before: runs too, so that a server that works is not stopped in vain.
func fit(f HostFacts) error {
	if f.GPUFault == "" {
		return nil
	}
	return &Stopped{Cause: trial.ErrUnfitHost, Reason: "no trial can run on this host: " + f.GPUFault + "; then run the study again"}
}
