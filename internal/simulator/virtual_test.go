package simulator

import (
	"errors"
	"math"
	"testing"

	"sgtune/sglang"
)

// Every profile starts with SGLang's automatic values, holds a useful pool, and the arithmetic constants are those of
// its model.
func TestProfiles(t *testing.T) {
	t.Parallel()
	models := map[string]struct{ layers, perLayer, weightsGiB float64 }{
		"kimi-8x96":     {61, 576 * 2, 72.3},              // MLA: every rank holds the whole latent
		"llama70b-4x80": {80, 2 * 8 / 4 * 128 * 2, 32.85}, // 8 KV heads over 4 ranks
		"llama8b-1x24":  {32, 2 * 8 * 128 * 2, 14.96},
	}
	for _, name := range Profiles() {
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		m := models[name]
		if float64(p.CellBytes) != m.layers*m.perLayer {
			t.Errorf("%s: %d bytes a token, %g layers of %g are %g", name, p.CellBytes, m.layers, m.perLayer, m.layers*m.perLayer)
		}
		if loaded := p.BeforeLoadGiB - p.AfterLoadGiB; loaded < m.weightsGiB || loaded > m.weightsGiB+0.6 {
			t.Errorf("%s: loading takes %.2f GiB, the weights are %.2f", name, loaded, m.weightsGiB)
		}
		if p.BeforeLoadGiB > float64(p.GPUTotalMiB)/1024 {
			t.Errorf("%s: %.2f GiB free on a card of %d MiB", name, p.BeforeLoadGiB, p.GPUTotalMiB)
		}
		r, err := Run(nil, Unique(8, 100, 500, 50, 0.3, 1), 1, Options{Profile: name, Canary: true, SettleS: 30, MeasureS: 60})
		if err != nil || r.Failure != nil || r.OutputTokS <= 0 || r.Memory.TP != p.Ranks || r.Memory.Tokens < 10_000 {
			t.Errorf("%s with automatic values: %v %+v", name, err, r)
		}
	}
	if _, err := Lookup("nope"); err == nil {
		t.Error("an unknown profile was found")
	}
}

// Without chance two seeds are the same launch; with more of it launches differ more.
func TestNoiseOptions(t *testing.T) {
	t.Parallel()
	w := Unique(30, 300, 1000, 100, 0.3, 1)
	run := func(seed int64, o Options) float64 {
		o.SettleS, o.MeasureS = 20, 60
		r, err := Run(nil, w, seed, o)
		if err != nil || r.Failure != nil {
			t.Fatal(err, r.Failure)
		}
		return r.OutputTokS
	}
	if a, b := run(1, Options{NoiseFree: true}), run(2, Options{NoiseFree: true}); math.Abs(a/b-1) > 0.005 { // other texts, same lengths
		t.Errorf("without chance seeds give %.2f and %.2f tok/s", a, b)
	}
	spread := func(o Options) float64 {
		var logs []float64
		mean, squares := 0.0, 0.0
		for seed := range int64(12) {
			logs = append(logs, math.Log(run(seed, o)))
			mean += logs[seed] / 12
		}
		for _, x := range logs {
			squares += (x - mean) * (x - mean) / 11
		}
		return math.Sqrt(squares)
	}
	if own, five := spread(Options{}), spread(Options{LaunchNoise: 0.05}); own > 0.02 || five < 0.025 || five > 0.1 {
		t.Errorf("launches differ by %.3f, with 5%% by %.3f", own, five)
	}
}

// A launch under the caller's own load: time goes from event to event, answers come, a flush empties the cache.
func TestVirtual(t *testing.T) {
	t.Parallel()
	v, err := Launch(sglang.Config{"mem-fraction-static": 0.85}, 1, Options{StartupS: 90})
	if err != nil || v.Failure() != nil {
		t.Fatal(err, v.Failure())
	}
	if v.Ready() != 90 || v.Now() != 90 || !v.Idle() || v.Memory().Tokens != 116171 || v.OwnRAM() != 16e9 {
		t.Errorf("ready at %.1f, now %.1f, %d tokens", v.Ready(), v.Now(), v.Memory().Tokens)
	}
	w := Unique(1, 1, 1000, 20, 0, 1)
	serve := func(at float64) (*Request, float64) {
		r := v.Submit(w.Prompt(0, 0, 7), 20, at)
		for !r.Done {
			next := v.Advance(at + 60)
			if next < at || v.Failure() != nil {
				t.Fatalf("from %.2f to %.2f: %v", at, next, v.Failure())
			}
			at = next
		}
		return r, at
	}
	first, at := serve(95)
	if first.Arrival != 95 || first.Out != 20 || first.FirstAt <= 95 || first.LastAt != at || first.Cached != 0 {
		t.Errorf("first request %+v", first)
	}
	if again, _ := serve(at); again.Cached != 960 {
		t.Errorf("the same prompt again found %d tokens cached, want 960, the last whole block", again.Cached)
	}
	v.Flush()
	if after, _ := serve(v.Now()); after.Cached != 0 {
		t.Errorf("after the flush %d tokens were cached", after.Cached)
	}
	if reached := v.Advance(1000); reached != 1000 || v.Now() != 1000 {
		t.Errorf("an idle server went to %.1f, its clock says %.1f", reached, v.Now())
	}
	v.Submit(w.Prompt(0, 1, 7), 20, 1000)
	v.Advance(1000.01)
	v.Abort()
	for v.Advance(1100) < 1100 {
	}
	if !v.Idle() || v.FreeGiB() <= 0 {
		t.Error("aborted requests are still there")
	}
}

// Starts that die say when and why, before any load.
func TestVirtualFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg   sglang.Config
		cause string
	}{
		{sglang.Config{"mem-fraction-static": 0.7}, "kv_pool_nonpositive"},
		{sglang.Config{"mem-fraction-static": 0.94}, "graph_capture_oom"},
		{sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 56.0}, "hicache_check_refused"},
	} {
		v, err := Launch(c.cfg, 1, Options{StartupS: 100})
		if err != nil {
			t.Fatal(err)
		}
		if f := v.Failure(); f == nil || f.Cause != c.cause || v.Ready() <= 0 || v.Ready() >= 100 {
			t.Errorf("%s: %v at %.1f s", c.cfg.Key(), f, v.Ready())
		}
	}
	var refused *RefusedError
	if _, err := Launch(sglang.Config{"hicache-size": 16.0, "disable-radix-cache": true}, 1, Options{}); !errors.As(err, &refused) {
		t.Errorf("flags that exclude each other: %v", err)
	}
}
