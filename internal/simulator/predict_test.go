package simulator

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"sgtune/sglang"
)

// TestPredictionsOfSimulatedLaunches: one simulated start-up log tells the KV pool of every other
// fraction and dtype, within what its two decimals hide, and its own exactly.
func TestPredictionsOfSimulatedLaunches(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "sglang", "testdata", "config", "kimi-k2.5.json"))
	if err != nil {
		t.Fatal(err)
	}
	kimi, err := sglang.ParseModelConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	layout := func(dtype string) sglang.Layout {
		return sglang.LayoutOf(sglang.Config{"tp-size": 8.0, "kv-cache-dtype": dtype}, sglang.Version{})
	}
	for _, observed := range []float64{0.80, 0.85, 0.90} {
		log := sized(t, "--mem-fraction-static", fmt.Sprint(observed)).observation()
		alone, err := sglang.Calibrate(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, dtype := range []string{"bf16", "fp8_e4m3"} {
			model, err := sglang.CalibrateModel(log, &kimi, layout("bf16"), layout(dtype))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []float64{0.78, 0.80, 0.85, 0.88, 0.90, 0.93} {
				b := sized(t, "--mem-fraction-static", fmt.Sprint(f), "--kv-cache-dtype", dtype).b
				want := float64(b.Tokens)
				// T is printed to half a hundredth of a GiB, and the observed pool is exact to a token.
				hidden := math.Ceil(0.005*math.Abs(f-observed)*sglang.GiB/float64(b.CellBytes)) + 2
				cfg := sglang.Config{"mem-fraction-static": f, "kv-cache-dtype": dtype}
				for name, c := range map[string]sglang.Calibration{"log": alone, "log and model": model} {
					p := c.Predict(cfg)
					if math.Abs(p.Tokens.Mid-want) > hidden || !p.Tokens.Contains(want) {
						t.Errorf("%s of %.2f, %.2f %s: %+v, want %.0f within %.0f", name, observed, f, dtype, p.Tokens, want, hidden)
					}
					if f == observed && dtype == "bf16" && p.Tokens.Mid != want {
						t.Errorf("%s of %.2f: %.0f tokens for itself, want %.0f", name, observed, p.Tokens.Mid, want)
					}
					if math.Abs(p.FreeAfterGraphGiB.Mid-b.AfterGraphGiB) > 0.02 {
						t.Errorf("%s of %.2f: %.2f GiB free at %.2f, want %.2f", name, observed, p.FreeAfterGraphGiB.Mid, f, b.AfterGraphGiB)
					}
				}
			}
		}
	}
}
