package tuner

import (
	"math"
	"testing"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

func TestJobText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		total      int
		now, after float64
		want       string
	}{
		{0, 3, 2, ""},
		{88_000, 0, 2, ""},
		{88_000, 29.84, 22.413, "all 88,000 requests in 22.4 h instead of 29.8 h"},
		{88_000, 29.84, 0, "all 88,000 requests in 29.8 h"},
		{1, 0.5, 0.5, "all 1 request in 30 min"},
		{1_234_567, 1280.4, 99.96, "all 1,234,567 requests in 100 h instead of 1280 h"},
	} {
		if got := JobText(tt.total, tt.now, tt.after); got != tt.want {
			t.Errorf("%d, %g, %g: %q, want %q", tt.total, tt.now, tt.after, got, tt.want)
		}
	}
}

// The hours come from tokens a second over the mean answer of the file; without a file's lengths from the
// answers seen, and from the count of requests only where nothing else is known.
func TestJobHours(t *testing.T) {
	t.Parallel()
	rows := make([]benchmark.Row, 10)
	for i := range rows {
		rows[i] = benchmark.Row{InputTokens: 1000, OutputTokens: 3000}
	}
	s := &Study{Workload: WorkloadSpec{Total: 88_000}}
	measured := func(change func(*benchmark.Report)) History {
		h := History{row(0, 800, sglang.Config{}, 0)}
		r := h[0].Levels[0].Report
		r.OutputTokS, r.RequestsS, r.Requests.OK, r.Tokens.Got = 800, 0.5, 40, 40*2000
		change(r)
		return h
	}
	for _, tt := range []struct {
		name string
		w    *benchmark.Workload
		h    History
		want float64
	}{
		{"the file's lengths", benchmark.NewWorkload(rows, 0), measured(func(*benchmark.Report) {}), 88_000 * 3000 / 800.0 / 3600},
		{"the answers' lengths", nil, measured(func(*benchmark.Report) {}), 88_000 * 2000 / 800.0 / 3600},
		{"requests alone", nil, measured(func(r *benchmark.Report) { r.Tokens.Got = 0 }), 88_000 / 0.5 / 3600},
		{"nothing", nil, History{&trial.Trial{Best: 40}}, 0},
	} {
		if got := s.jobHours(tt.w, tt.h); math.Abs(got-tt.want) > 1e-9*tt.want {
			t.Errorf("%s: %g h, want %g", tt.name, got, tt.want)
		}
	}
}
