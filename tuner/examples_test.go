package tuner_test

import (
	"path/filepath"
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/tuner"
)

// TestExamples reads every example and checks that it would do something worth a night.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s, err := tuner.ReadStudy(file)
			if err != nil {
				t.Fatal(err)
			}
			r := tuner.Check(s, tuner.CheckInput{Facts: idle, Now: evening})
			if !r.Ready || r.Space.Admitted < 10 {
				t.Errorf("%d configurations admitted; %s", r.Space.Admitted, r.Verdict)
			}
		})
	}
}

func TestQuickstart(t *testing.T) {
	t.Parallel()
	s, err := tuner.ReadStudy("../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if s.Budget.Trials != 19 || s.Confirm != 5 || s.Host.Kind != tuner.HostSimulated || !s.Simulated || s.Host.TimeScale > 150 ||
		s.Host.Startup != 90*time.Second || s.Measure.Fill != time.Minute || s.Measure.Max != 2*time.Minute || len(s.Workload.Concurrency) != 1 ||
		len(s.Server.Command) != 0 || s.Finish.Launch != "none" {
		t.Errorf("not the study the README promises: %+v", s)
	}
	if got := s.Space.Names(); len(got) != 4 || s.Space.Size() < 1000 {
		t.Errorf("space %v of %d", got, s.Space.Size())
	}
	if r := tuner.Ranks(sglang.Merge(s.Server.Flags, s.Baseline)); r != 8 {
		t.Errorf("%d ranks, want 8", r)
	}
}
