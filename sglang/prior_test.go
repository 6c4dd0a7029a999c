package sglang_test

import (
	"math"
	"strings"
	"testing"

	"sgtune/sglang"
)

// TestPriorFounding: the estimate from config.json and the GPU alone must contain what was observed.
func TestPriorFounding(t *testing.T) {
	t.Parallel()
	m := readModel(t, "kimi-k2.5")
	flags := sglang.Config{"tp-size": 8.0}
	l := layoutOf(flags)
	auto := sglang.AutoDefaults(sglang.AutoInput{GPUMiB: 97871, TP: 8, MLA: true})
	for _, tt := range []struct {
		name       string
		checkpoint float64
		mostWidth  float64 // half-width of 0.88 in tokens
	}{
		{"from the shape", 0, 100000}, {"from the size of the files", 594.9e9, 65000},
	} {
		p, err := sglang.NewPrior(m, l, 97871.0/1024, tt.checkpoint, auto)
		if err != nil {
			t.Fatal(err)
		}
		if !p.TGiB.Contains(94.037) || !p.WeightsGiB.Contains(94.037-21.7085) {
			t.Errorf("%s: T %v, weights %v; want 94.04 and 72.33 inside", tt.name, p.TGiB, p.WeightsGiB)
		}
		for fraction, tokens := range map[float64]float64{0.85: 116171, 0.88: 159277, 0.93: 231120} {
			got := p.Predict(l, sglang.Config{"mem-fraction-static": fraction})
			if !got.Tokens.Contains(tokens) || got.Tokens.HalfWidth() > tt.mostWidth {
				t.Errorf("%s, %.2f: %+v, want %.0f inside and half-width below %.0f", tt.name, fraction, got.Tokens, tokens, tt.mostWidth)
			}
			if got.Tokens.Mid < got.Tokens.Low || got.Tokens.Mid > got.Tokens.High || !got.HasFree {
				t.Errorf("%s, %.2f: %+v", tt.name, fraction, got)
			}
		}
		if free := p.Predict(l, sglang.Config{"mem-fraction-static": 0.88}).FreeAfterGraphGiB; !free.Contains(5.47) {
			t.Errorf("%s: free after graphs %v, want 5.47 inside", tt.name, free)
		}
		if lowest := p.Line(l).Lowest(); !lowest.Contains(0.769) {
			t.Errorf("%s: lowest fraction %v, want 0.769 inside", tt.name, lowest)
		}
	}
}

// TestPriorLogs: weights as printed by logs of other models and hosts lie inside the estimates.
func TestPriorLogs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, model string
		flags       sglang.Config
		gpuGiB      float64
		before, w   float64 // T and the weights as the logs print them
	}{
		{"8B on one H100", "llama-3.1-8b", sglang.Config{"tp-size": 1.0}, 81559.0 / 1024, 78.62, 15.06},
		{"8B on two", "llama-3.1-8b", sglang.Config{"tp-size": 2.0}, 81559.0 / 1024, 78.47, 8.11},
		{"70B on two", "llama-3.1-70b", sglang.Config{"tp-size": 2.0}, 81559.0 / 1024, 78.90, 65.80},
		{"DeepSeek V3 FP8 on eight H200", "deepseek-v3", sglang.Config{"tp-size": 8.0}, 143771.0 / 1024, 139.60, 84.90},
	} {
		p, err := sglang.NewPrior(readModel(t, tt.model), layoutOf(tt.flags), tt.gpuGiB, 0, sglang.Auto{GraphMax: 256})
		if err != nil {
			t.Fatal(err)
		}
		if !p.TGiB.Contains(tt.before) || !p.WeightsGiB.Contains(tt.w) {
			t.Errorf("%s: T %v and weights %v, want %.2f and %.2f inside", tt.name, p.TGiB, p.WeightsGiB, tt.before, tt.w)
		}
	}
}

func TestRankWeightsSplit(t *testing.T) {
	t.Parallel()
	m := readModel(t, "llama-3.1-70b")
	one := m.RankWeights(layoutOf(sglang.Config{"tp-size": 1.0}), 0)
	for name, tt := range map[string]struct {
		flags sglang.Config
		want  float64
	}{
		"tp 4":          {sglang.Config{"tp-size": 4.0}, one / 4},
		"pp 4":          {sglang.Config{"pp-size": 4.0}, one / 4},
		"tp 2 x pp 2":   {sglang.Config{"tp-size": 2.0, "pp-size": 2.0}, one / 4},
		"replicas, dp8": {sglang.Config{"dp-size": 8.0}, one},
	} {
		if got := m.RankWeights(layoutOf(tt.flags), 0); math.Abs(got/tt.want-1) > 0.03 {
			t.Errorf("%s: %.1f GB a rank, want %.1f", name, got/1e9, tt.want/1e9)
		}
	}
	if got := m.RankWeights(layoutOf(sglang.Config{"tp-size": 8.0}), 141.1e9); math.Abs(got-141.1e9/8) > 1e6 {
		t.Errorf("with the size of the files: %.2f GB a rank, want an eighth of them", got/1e9)
	}
}

func TestPriorRefuses(t *testing.T) {
	t.Parallel()
	m := readModel(t, "llama-3.1-8b")
	for _, gpu := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := sglang.NewPrior(m, layoutOf(sglang.Config{}), gpu, 0, sglang.Auto{}); err == nil || !strings.Contains(err.Error(), "GPU's memory") {
			t.Errorf("GPU of %v GiB: error %v", gpu, err)
		}
	}
}
