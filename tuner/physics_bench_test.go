package tuner_test

import (
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// night30 is a history of thirty trials of the founding case's shape.
func night30(b testing.TB) (*tuner.Study, tuner.History) {
	s := newStudy()
	var h tuner.History
	for n := range 30 {
		c := sglang.Config{
			"mem-fraction-static": 0.80 + 0.005*float64(n%24), "hicache-size": []float64{0, 16, 24, 32, 40, 48}[n%6],
			"chunked-prefill-size": []float64{4096, 8192, 16384}[n%3], "schedule-conservativeness": float64(3+n%11) / 10, "kv-cache-dtype": "bf16",
		}
		t := finished(n, c, trial.Complete, speed(c))
		t.Memory, t.OwnRAM, t.MinRAM = observe(c), 9e9, -1
		h = append(h, t)
	}
	h[0].Role, h[0].Config = trial.RoleBaseline, s.Baseline
	return s, h
}

var kimiHost = tuner.HostFacts{MemTotal: 449e9, MemAvailable: 440e9, CgroupHeadroom: -1}

// BenchmarkAdmit is what one answer of the admission costs: a sampler asks for each candidate.
func BenchmarkAdmit(b *testing.B) {
	s, h := night30(b)
	admit := tuner.NewAdmission(s, h, kimiHost, tuner.NewFrontier(h).Check).Admit
	c := sglang.Merge(s.SearchBase(), sglang.Config{"mem-fraction-static": 0.87, "hicache-size": 48.0, "chunked-prefill-size": 8192.0, "schedule-conservativeness": 0.55})
	for b.Loop() {
		_ = admit(c)
	}
}

// BenchmarkPhysicsSample is one proposal after thirty trials, models built anew.
func BenchmarkPhysicsSample(b *testing.B) {
	s, h := night30(b)
	p := tuner.StudyProblem(s, h, kimiHost, nil)
	p.Admit = tuner.NewAdmission(s, h, kimiHost, tuner.NewFrontier(h).Check).Admit
	p.Remaining = 10
	sampler, err := tuner.NewSampler("physics")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := sampler.Sample(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}
