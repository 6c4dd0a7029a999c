package web

import (
	"strings"
	"testing"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// TestFactsNameTheLimits holds a candidate's figures beside the limits of its study file.
func TestFactsNameTheLimits(t *testing.T) {
	t.Parallel()
	const file = "study: s\nserver: {model: /m, flags: {tp-size: 8}, baseline: {mem-fraction-static: 0.85}}\nspace: {hicache-size: [0, 48]}\n" +
		"workload: {file: t.jsonl}\n"
	for _, tt := range []struct{ name, more, margin, wait string }{
		{"none", "", "host pools 384 GB", "no difference found"},
		{"in all", "host: {ram_budget: 400GB}\nslo: {ttft_p95: 30s}\n", "host pools 384 of 400 GB", "no difference found (limit 30 s)"},
		{"a rank", "host: {ram_budget: 50GB/rank}\nslo: {ttft_p95: 500ms}\n", "host pools 384 of 400 GB", "no difference found (limit 500 ms)"},
	} {
		today, better := sglang.Config{"mem-fraction-static": 0.85}, sglang.Config{"hicache-size": 48.0}
		picked := &trial.Trial{Memory: sglang.Observation{TP: 8, HostPoolGB: 48}, LowWater: 2 << 30, MinRAM: 71e9}
		var confirms []*trial.Trial
		for i := range 6 {
			value, config := 1.0, today
			if i%2 > 0 {
				config = better
			}
			r := &benchmark.Report{TTFTms: &benchmark.Distribution{P95: 4000 + float64(100*(i/2))}}
			confirms = append(confirms, &trial.Trial{State: trial.Complete, Value: &value, Config: config, Levels: []trial.Level{{Concurrency: 40, Report: r}}})
		}
		l := newLaunches(&tuner.Record{Source: file + tt.more, BaselineConfig: today}, &tuner.Verdict{Config: better, Level: 40}, picked, confirms)
		if got, want := l.margin(&tuner.Overview{}), "GPU memory free at the least 2.0 GiB; host RAM free at the least 71 GB; "+tt.margin; got != want {
			t.Errorf("%s: margin %q, want %q", tt.name, got, want)
		}
		if got := l.wait(); !strings.HasSuffix(got, ", "+tt.wait) {
			t.Errorf("%s: wait %q, want %q", tt.name, got, tt.wait)
		}
	}
}
