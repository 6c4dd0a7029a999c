package sglang_test

import (
	"math"
	"strings"
	"testing"

	"sgtune/sglang"
)

// The founding host: Kimi-K2.5 on eight GPUs of 96 GB.
const (
	foundingT  = 94.037
	foundingA  = 21.7085
	cellBF16   = 70272
	cellFP8    = 35136
	runtimeGiB = 5.81 // graphs and runtime at the defaults
)

func TestKVTokensFounding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fraction, cell float64
		want           int
	}{
		{0.85, cellBF16, 116171},
		{0.88, cellBF16, 159277},
		{0.90, cellFP8, 376029},
		{0.93, cellBF16, 231120},
	} {
		if got := sglang.KVTokens(foundingT, foundingA, tt.fraction, tt.cell, 1); got != tt.want {
			t.Errorf("KVTokens at %.2f, cell %.0f = %d, want %d", tt.fraction, tt.cell, got, tt.want)
		}
	}
}

func TestKVTokensEdges(t *testing.T) {
	t.Parallel()
	if got := sglang.KVTokens(foundingT, foundingA, 0.85, cellBF16, 64); got != 116160 {
		t.Errorf("page 64: %d tokens, want 116160 (a whole number of pages)", got)
	}
	if got := sglang.KVTokens(foundingT, foundingA, 0.76, cellBF16, 1); got > 0 {
		t.Errorf("fraction below 1-A/T gave %d tokens, want none", got)
	}
	if got := sglang.LowestFraction(foundingT, foundingA); math.Abs(got-0.769) > 0.0005 {
		t.Errorf("LowestFraction = %.4f, want 0.769", got)
	}
}

func TestCellBytes(t *testing.T) {
	t.Parallel()
	if got := sglang.CellBytesMLA(512, 64, 61, 2); got != cellBF16 {
		t.Errorf("MLA bf16 cell = %.0f, want %d", got, cellBF16)
	}
	if got := sglang.CellBytesMLA(512, 64, 61, 1); got != cellFP8 {
		t.Errorf("MLA fp8 cell = %.0f, want %d", got, cellFP8)
	}
	if got := sglang.CellBytesMHA(8, 128, 128, 32, 2, 2); got != 65536 {
		t.Errorf("GQA cell = %.0f, want 65536", got)
	}
	if got := sglang.CellBytesMHA(4, 128, 128, 32, 8, 2); got != 16384 {
		t.Errorf("GQA cell with fewer heads than ranks = %.0f, want that of one head, 16384", got)
	}
}

func TestHostPoolTokens(t *testing.T) {
	t.Parallel()
	if got := sglang.HostPoolTokens(48, cellBF16, 1); got != 683061 {
		t.Errorf("48 GB: %d tokens, want 683061 as the log prints", got)
	}
	if got := sglang.HostPoolTokens(48, cellBF16, 64); got%64 != 0 || got < 683060 {
		t.Errorf("48 GB, page 64: %d tokens, want whole pages covering 683060", got)
	}
	if got := sglang.HostPoolTokens(0, cellBF16, 1); got != 0 {
		t.Errorf("no size: %d tokens, want 0", got)
	}
}

// founding085 is the founding baseline's start-up log in printed figures.
func founding085() sglang.Observation {
	return sglang.Observation{
		Fraction: 0.85, TP: 8, KVDtype: "torch.bfloat16", PageSize: 1,
		BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71, Tokens: 116171, KVGiB: 7.60, AfterPoolGiB: 14.11,
		AfterGraphGiB: math.Round((foundingT*0.15-runtimeGiB)*100) / 100,
	}
}

func TestPredictFounding(t *testing.T) {
	t.Parallel()
	c, err := sglang.Calibrate(founding085())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		fraction float64
		dtype    string
		tokens   float64
		free     float64
	}{
		{0.85, "bf16", 116171, 8.30},
		{0.88, "bf16", 159277, 5.47},
		{0.90, "fp8_e4m3", 376029, 3.52},
		{0.93, "bf16", 231120, 0.82},
	} {
		p := c.Predict(sglang.Config{"mem-fraction-static": tt.fraction, "kv-cache-dtype": tt.dtype, "hicache-size": 48.0})
		if !p.Tokens.Contains(tt.tokens) {
			t.Errorf("%.2f %s: tokens %+v do not contain %.0f", tt.fraction, tt.dtype, p.Tokens, tt.tokens)
		}
		if w := p.Tokens.HalfWidth() / tt.tokens; w > 0.0015 {
			t.Errorf("%.2f %s: half-width %.3f%%, want at most 0.15%%", tt.fraction, tt.dtype, 100*w)
		}
		if p.Tokens.Mid < p.Tokens.Low || p.Tokens.Mid > p.Tokens.High {
			t.Errorf("%.2f %s: middle outside %+v", tt.fraction, tt.dtype, p.Tokens)
		}
		if !p.HasFree || math.Abs(p.FreeAfterGraphGiB.Mid-tt.free) > 0.15 {
			t.Errorf("%.2f %s: free after graphs %+v, want %.2f within 0.15", tt.fraction, tt.dtype, p.FreeAfterGraphGiB, tt.free)
		}
		if math.Abs(p.LowestFraction-0.769) > 0.001 {
			t.Errorf("lowest fraction %.4f, want 0.769", p.LowestFraction)
		}
		if p.HostPoolGBPerRank != 48 {
			t.Errorf("host pool %.0f GB a rank, want 48", p.HostPoolGBPerRank)
		}
		if tt.dtype == "bf16" && !p.HostPoolTokens.Contains(683061) {
			t.Errorf("host tokens %+v do not contain 683061", p.HostPoolTokens)
		}
	}
}

func TestPredictKnobs(t *testing.T) {
	t.Parallel()
	c, err := sglang.Calibrate(founding085())
	if err != nil {
		t.Fatal(err)
	}
	base := c.Predict(sglang.Config{})
	if base.Tokens.Low > 116171 || base.Tokens.High < 116171 {
		t.Errorf("no knobs: %+v, want the observed 116171", base.Tokens)
	}
	if auto := c.Predict(sglang.Config{"kv-cache-dtype": "auto"}); auto.Tokens != base.Tokens {
		t.Errorf("auto: %+v, want as observed %+v", auto.Tokens, base.Tokens)
	}
	if capped := c.Predict(sglang.Config{"mem-fraction-static": 0.93, "max-total-tokens": 1000.0}); capped.Tokens != (sglang.Range{Low: 1000, Mid: 1000, High: 1000}) {
		t.Errorf("max-total-tokens 1000: %+v", capped.Tokens)
	}
	if paged := c.Predict(sglang.Config{"page-size": 64.0}); math.Mod(paged.Tokens.Mid, 64) != 0 {
		t.Errorf("page-size 64: %v tokens, want whole pages", paged.Tokens.Mid)
	}
	if none := c.Predict(sglang.Config{"mem-fraction-static": 0.75}); none.Tokens.High > 0 {
		t.Errorf("0.75 is below the weights, predicted %+v tokens", none.Tokens)
	}
	if off := c.Predict(sglang.Config{"hicache-size": 0.0}); off.HostPoolGBPerRank != 0 || off.HostPoolTokens != (sglang.Range{}) {
		t.Errorf("hicache-size 0: %+v, %v GB, want no host pool", off.HostPoolTokens, off.HostPoolGBPerRank)
	}
	ratio := c.Predict(sglang.Config{"enable-hierarchical-cache": true, "hicache-ratio": 3.0})
	if want := 3 * ratio.Tokens.Mid; ratio.HostPoolTokens.Mid != want || ratio.HostPoolGBPerRank <= 0 {
		t.Errorf("hicache-ratio 3: %+v, %.1f GB, want %.0f tokens", ratio.HostPoolTokens, ratio.HostPoolGBPerRank, want)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*sglang.Observation)
		want   string
	}{
		{"no pool", func(o *sglang.Observation) { o.Tokens = 0 }, "does not reach the KV pool"},
		{"no weights line", func(o *sglang.Observation) { o.BeforeLoadGiB = 0 }, "does not reach the KV pool"},
		{"tiny pool", func(o *sglang.Observation) { o.KVGiB = 0 }, "too small"},
	} {
		o := founding085()
		tt.change(&o)
		if _, err := sglang.Calibrate(o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCalibrateCappedPool(t *testing.T) {
	t.Parallel()
	o := founding085()
	o.MaxTotalTokens, o.Tokens, o.KVGiB = 50000, 50000, 3.27
	c, err := sglang.Calibrate(o)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Predict(sglang.Config{"mem-fraction-static": 0.88})
	if !p.Tokens.Contains(159277) {
		t.Errorf("capped observation predicts %+v, want a range with 159277: a capped pool hides the memory there was", p.Tokens)
	}
	full, err := sglang.Calibrate(founding085())
	if err != nil {
		t.Fatal(err)
	}
	want := full.Predict(sglang.Config{"mem-fraction-static": 0.88}).FreeAfterGraphGiB.Mid
	o.AfterGraphGiB += (116171 - 50000.0) * 70272 / sglang.GiB // what the cap left empty
	if c, err = sglang.Calibrate(o); err != nil {
		t.Fatal(err)
	}
	if got := c.Predict(sglang.Config{"mem-fraction-static": 0.88}).FreeAfterGraphGiB.Mid; math.Abs(got-want) > 0.05 {
		t.Errorf("after a capped launch a full pool leaves %.2f GiB, want %.2f", got, want)
	}
	capped := full.Predict(sglang.Config{"mem-fraction-static": 0.85, "max-total-tokens": 50000.0})
	if got := capped.FreeAfterGraphGiB.Mid; math.Abs(got-o.AfterGraphGiB) > 0.05 {
		t.Errorf("with max-total-tokens 50000 %.2f GiB stay free, want %.2f", got, o.AfterGraphGiB)
	}
}

func TestPredictWithoutGraphs(t *testing.T) {
	t.Parallel()
	o := founding085()
	o.AfterGraphGiB, o.AvailableGiB = 0, 0
	c, err := sglang.Calibrate(o)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Predict(sglang.Config{"mem-fraction-static": 0.88})
	if p.HasFree || p.FreeAfterGraphGiB != (sglang.Range{}) {
		t.Errorf("free memory %+v (has %v) from a log without graphs", p.FreeAfterGraphGiB, p.HasFree)
	}
	if !p.Tokens.Contains(159277) {
		t.Errorf("tokens %+v, want 159277 inside", p.Tokens)
	}
}

func TestHostRAMFounding(t *testing.T) {
	t.Parallel()
	ram := sglang.HostRAM{AvailableBytes: 440e9, Ranks: 8}
	for _, tt := range []struct {
		gb   float64
		fits bool
	}{{0, true}, {48, true}, {56, false}, {300, false}} {
		pools := sglang.HostPoolsBytes(sglang.Config{"hicache-size": tt.gb}, 8)
		err := ram.Fits(pools)
		if (err == nil) != tt.fits {
			t.Errorf("%.0f GB x 8 on 440 GB: %v, want fits %v", tt.gb, err, tt.fits)
		}
		if err != nil && (!strings.Contains(err.Error(), "440.0 GB") || !strings.Contains(err.Error(), "pools of")) {
			t.Errorf("%.0f GB: message lacks a number: %v", tt.gb, err)
		}
	}
}

func TestDtypeBytes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]float64{"bf16": 2, "torch.bfloat16": 2, "fp8_e5m2": 1, "torch.float8_e4m3fn": 1, "nvfp4": 0.5625} {
		if got, ok := sglang.DtypeBytes(name); !ok || got != want {
			t.Errorf("DtypeBytes(%q) = %v, %v, want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"auto", "", "int3"} {
		if got, ok := sglang.DtypeBytes(name); ok {
			t.Errorf("DtypeBytes(%q) = %v, want unknown", name, got)
		}
	}
}
