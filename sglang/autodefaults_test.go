package sglang_test

import (
	"math"
	"testing"

	"sgtune/sglang"
)

// TestAutoDefaults: figures worked by hand from reference 1.5.
func TestAutoDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		in              sglang.AutoInput
		fraction        float64
		chunk, graphMax int
	}{
		// 512 + 1.5 x 8192 + 1024 + 2 x 512 = 14848 MiB.
		{"founding GPUs, 0.5.9", sglang.AutoInput{Version: versionOf(t, "0.5.9"), GPUMiB: 97871, TP: 8, MLA: true}, 0.848, 8192, 512},
		// and 1536 for MLA prefill graphs.
		{"founding GPUs, 0.5.23", sglang.AutoInput{GPUMiB: 97871, TP: 8, MLA: true}, 0.833, 8192, 512},
		// 512 + 12288 + 128 + 512 + 8 x 58 prefill graphs = 13904.
		{"H100, one GPU", sglang.AutoInput{GPUMiB: 81559, TP: 1}, 0.830, 8192, 256},
		{"small chunk: at least 10 GiB", sglang.AutoInput{Version: versionOf(t, "0.5.9"), GPUMiB: 81559, TP: 1, Chunk: 2048}, 0.874, 2048, 256},
		{"speculation, 0.5.9", sglang.AutoInput{Version: versionOf(t, "0.5.9"), GPUMiB: 97871, TP: 8, Draft: "EAGLE"}, 0.827, 8192, 512},
		// 13312 + 3 x 512 x 8 + 1.5 x 512 x 8 + ... : DP attention.
		{"DP attention, 0.5.9", sglang.AutoInput{Version: versionOf(t, "0.5.9"), GPUMiB: 143771, TP: 8, DP: 8, DPAttention: true}, 0.769, 8192, 512},
		{"graphs at most the running requests", sglang.AutoInput{GPUMiB: 81559, TP: 8, MaxRunning: 64}, 0.823, 8192, 64},
		{"small GPU", sglang.AutoInput{GPUMiB: 15360, TP: 1}, 0.735, 2048, 8},
		{"24 GiB", sglang.AutoInput{GPUMiB: 24564, TP: 1}, 0.704, 4096, 48},
		{"24 GiB, 0.5.9", sglang.AutoInput{Version: versionOf(t, "0.5.9"), GPUMiB: 24564, TP: 1}, 0.847, 2048, 24},
		{"B200", sglang.AutoInput{Version: versionOf(t, "0.5.9"), GPUMiB: 183359, TP: 8}, 0.852, 16384, 512},
		{"0.5.2 by table: 9.5 + 4 GiB", sglang.AutoInput{Version: versionOf(t, "0.5.2"), GPUMiB: 81559, TP: 8}, 0.831, 8192, 512},
		{"0.4.6 by ranks", sglang.AutoInput{Version: versionOf(t, "0.4.6.post5"), GPUMiB: 81559, TP: 8}, 0.81, 8192, 512},
		{"unknown GPU", sglang.AutoInput{TP: 1}, 0.95, 4096, 160},
		{"unknown GPU, 0.5.9", sglang.AutoInput{Version: versionOf(t, "0.5.9"), TP: 1}, 0.88, 4096, 160},
	} {
		got := sglang.AutoDefaults(tt.in)
		if math.Abs(got.Fraction-tt.fraction) > 0.0005 || got.Chunk != tt.chunk || got.GraphMax != tt.graphMax {
			t.Errorf("%s: %+v, want %.3f, %d, %d", tt.name, got, tt.fraction, tt.chunk, tt.graphMax)
		}
	}
}
