package main

import (
	"strings"
	"testing"

	"sgtune/tuner"
)

// A study that says how large its whole job is gets hours in the status lines (and in exports: package web).
func TestWholeJob(t *testing.T) {
	t.Parallel()
	term, _ := screen(t, false, false, 200)
	term.study.Workload.Total = 88_000
	s := status(4, nil)
	s.JobNow, s.JobBest = 29.84, 22.41
	s.Drift = tuner.Drift{Found: true, Slope: -0.01, Low: -0.015, High: -0.005, Launches: 4}
	term.Status(s)
	text := strings.Join(term.statusLines(), "\n")
	for _, want := range []string{"2104 output tok/s at 80 clients; all 88,000 requests in 22.4 h instead of 29.8 h", "the host changed over the night by -1.0% an hour"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
