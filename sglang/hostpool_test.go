package sglang_test

import (
	"strings"
	"testing"

	"sgtune/sglang"
)

func versionOf(t *testing.T, text string) sglang.Version {
	t.Helper()
	v, err := sglang.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestOwnHostCheck: 449 GB of host RAM, eight ranks. Up to 0.5.18 each rank sees all of it.
func TestOwnHostCheck(t *testing.T) {
	t.Parallel()
	host := sglang.HostView{AvailableBytes: 449e9, Ranks: 8}
	for _, tt := range []struct {
		version string
		gb      float64
		passes  bool
	}{
		{"0.4.6.post5", 300, true},
		{"0.5.10", 300, true},
		{"0.5.18", 438, true},
		{"0.5.18", 439, false},
		{"0.5.20", 300, false},
		{"0.5.20", 54, true},
		{"0.5.20", 55, false},
		{"0.5.23", 54, true},
		{"0.5.23", 55, false},
		{"", 55, false},
	} {
		var v sglang.Version
		if tt.version != "" {
			v = versionOf(t, tt.version)
		}
		err := host.Check(v, tt.gb*sglang.GB)
		if (err == nil) != tt.passes {
			t.Errorf("%s, %.0f GB a rank: %v, want passes %v", tt.version, tt.gb, err, tt.passes)
		}
		if err != nil && !strings.Contains(err.Error(), "GB a rank") {
			t.Errorf("the message lacks its numbers: %v", err)
		}
	}
	inContainer := sglang.HostView{AvailableBytes: 449e9, CgroupBytes: 200e9, Ranks: 8}
	if inContainer.Check(versionOf(t, "0.5.23"), 30e9) == nil || inContainer.Check(versionOf(t, "0.5.20"), 30e9) != nil {
		t.Error("0.5.23 looks at the container's limit, 0.5.20 does not")
	}
}

func TestHostPoolByVersion(t *testing.T) {
	t.Parallel()
	size := sglang.Config{"hicache-size": 48.0}
	for _, tt := range []struct {
		name, model, version string
		flags                sglang.Config
		device, want         int
		extra                float64 // bytes a token beside the pool
	}{
		{"MLA by size", "kimi-k2.5", "0.5.23", size, 159277, 683061, 0},
		{"0.5.4 only floors", "kimi-k2.5", "0.5.4.post3", size, 159277, 683060, 0},
		{"whole pages and one more", "kimi-k2.5", "0.5.23", sglang.Config{"hicache-size": 48.0, "page-size": 64.0}, 159277, (683060/64 + 1) * 64, 0},
		{"by ratio", "kimi-k2.5", "0.5.23", sglang.Config{"enable-hierarchical-cache": true, "hicache-ratio": 3.0}, 100000, 300001, 0},
		{"by the default ratio", "kimi-k2.5", "0.5.23", sglang.Config{"enable-hierarchical-cache": true}, 100000, 200001, 0},
		{"off", "kimi-k2.5", "0.5.23", sglang.Config{}, 100000, 0, 0},
		{"size 0 is off", "kimi-k2.5", "0.5.23", sglang.Config{"hicache-size": 0.0, "enable-hierarchical-cache": true}, 100000, 0, 0},
		{"index rows beside", "deepseek-v3.2", "0.5.23", size, 100000, 48_000_000_000/70272 + 1, 61 * 132},
		{"index rows inside until 0.5.9", "deepseek-v3.2", "0.5.9", size, 100000, 48_000_000_000/78324 + 1, 0},
		{"draft layer beside", "deepseek-v3", "0.5.23", sglang.Config{"hicache-size": 48.0, "speculative-algorithm": "EAGLE"}, 100000, 48_000_000_000/70272 + 1, 1152},
	} {
		c := cellOf(t, tt.model, tt.version, tt.flags)
		got := c.HostPool(tt.flags, sglang.LayoutOf(tt.flags, versionOf(t, tt.version)), tt.device)
		if got.Tokens != tt.want || got.ExtraBytes != tt.extra*float64(tt.want) {
			t.Errorf("%s: %d tokens and %.0f bytes beside, want %d and %.0f", tt.name, got.Tokens, got.ExtraBytes, tt.want, tt.extra*float64(tt.want))
		}
		if got.Total() != got.Bytes+got.ExtraBytes {
			t.Errorf("%s: total %.0f", tt.name, got.Total())
		}
	}
}

func TestHostPoolTooSmall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version        string
		host           int
		small, refused bool
	}{
		{"0.5.12", 1000, true, true}, {"0.5.15", 1000, true, false}, {"0.5.12", 1001, false, false}, {"0.5.23", 0, false, false},
	} {
		small, refused := sglang.HostPoolTooSmall(versionOf(t, tt.version), tt.host, 1000)
		if small != tt.small || refused != tt.refused {
			t.Errorf("%+v: small %v, refused %v", tt, small, refused)
		}
	}
}
