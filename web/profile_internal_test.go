package web

import (
	"testing"

	"sgtune/export"
	"sgtune/tuner"
)

func TestWholeJob(t *testing.T) {
	t.Parallel()
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
