package main

import (
	"strings"
	"testing"

	"sgtune/export"
	"sgtune/tuner"
)

// A study that says how large its whole job is gets hours in the status lines and in exports.
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
	v := &tuner.Verdict{Total: 88_000, Hours: 22.41, BaselineHours: 29.84}
	for _, tt := range []struct {
		name    string
		verdict *tuner.Verdict
		profile export.Profile
		want    string
	}{
		{"the winner", v, export.Profile{Confirmed: true}, "all 88,000 requests in 22.4 h instead of 29.8 h"},
		{"the baseline", v, export.Profile{Baseline: true}, "all 88,000 requests in 29.8 h"},
		{"another trial", v, export.Profile{}, ""},
		{"no verdict", nil, export.Profile{Baseline: true}, ""},
		{"no job", &tuner.Verdict{}, export.Profile{Confirmed: true}, ""},
	} {
		if got := wholeJob(tt.verdict, tt.profile); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
