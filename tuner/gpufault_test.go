package tuner_test

import (
	"errors"
	"strings"
	"testing"

	"sgtune/trial"
	"sgtune/tuner"
)

const splitGPU = "GPU 3 is split into instances (MIG); turn MIG off"

// TestUnfitGPUs: a host whose GPUs no trial can use is refused before before: stops anything on it, and check says
// so the evening before.
func TestUnfitGPUs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*rig){
		"with before":    func(*rig) {},
		"without before": func(r *rig) { r.study.Before = nil },
	} {
		r := newRig(t, smallStudy())
		r.host.facts.GPUFault = splitGPU
		change(r)
		v, err := r.loop.Run(t.Context())
		if v != nil || !errors.Is(err, trial.ErrUnfitHost) || !strings.Contains(err.Error(), splitGPU) {
			t.Errorf("%s: verdict %v, error %v", name, v, err)
		}
		if len(r.host.ran) > 0 || len(r.trials(t)) > 0 || r.store.Record().State != tuner.StudyStopped {
			t.Errorf("%s: ran %v, %d trials, %s", name, r.host.ran, len(r.trials(t)), r.store.Record().State)
		}
	}
	report := tuner.Check(mustParse(t, night+"before: [systemctl, stop, x]\n"), tuner.CheckInput{Facts: tuner.HostFacts{GPUFault: splitGPU}, Now: evening})
	if report.Ready || !strings.Contains(report.Verdict, "no, because "+splitGPU) {
		t.Errorf("check: %s", report.Verdict)
	}
}
