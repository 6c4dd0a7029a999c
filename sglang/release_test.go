package sglang_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

// version parses a version of a test's table.
func version(t *testing.T, text string) sglang.Version {
	t.Helper()
	if text == "" {
		return sglang.Version{}
	}
	v, err := sglang.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFlagsOfNearestRelease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0.5.23": "0.5.23", "0.5.24rc1": "0.5.23", "1.0": "0.5.23", "": "0.5.23", "0.5.22": "0.5.20", "0.5.19": "0.5.18",
		"0.5.3": "0.5.3.post3", "0.5.3rc0": "0.5.2", "0.5.6.post2+cu124": "0.5.6.post2", "0.5.13": "0.5.12", "0.4.5": "0.4.6.post5", "0.3": "0.4.6.post5",
	} {
		flags, at := sglang.FlagsOf(version(t, text))
		if at.String() != want {
			t.Errorf("FlagsOf(%q) has the flags of %s, want those of %s", text, at, want)
		}
		if !flags.Has("mem-fraction-static") {
			t.Errorf("FlagsOf(%q) lacks mem-fraction-static", text)
		}
	}
}

// The facts are those of the reference page on launch flags.
func TestFlagsOfFacts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version, flag string
		absent        bool
		def           any
		choices       string // choices that must be there; a leading - says that it must not
		deprecated    bool
	}{
		{version: "0.4.6.post5", flag: "hicache-write-policy", def: "write_through_selective"},
		{version: "0.4.6.post5", flag: "hicache-io-backend", absent: true},
		{version: "0.4.6.post5", flag: "cuda-graph-max-bs"},
		{version: "0.4.6.post5", flag: "cuda-graph-max-bs-decode", absent: true},
		{version: "0.4.6.post5", flag: "kv-cache-dtype", def: "auto", choices: "fp8_e5m2 fp8_e4m3 -bf16"},
		{version: "0.4.6.post5", flag: "schedule-policy", def: "fcfs", choices: "lpm -lof -priority"},
		{version: "0.4.6.post5", flag: "config", absent: true},
		{version: "0.4.6.post5", flag: "enable-ep-moe", def: false},
		{version: "0.5.2", flag: "schedule-policy", def: "fcfs", choices: "lof -priority"},
		{version: "0.5.2", flag: "hicache-write-policy", def: "write_through"},
		{version: "0.5.3.post3", flag: "kv-cache-dtype", def: "auto", choices: "fp8_e5m2 fp8_e4m3 -bf16"},
		{version: "0.5.3.post3", flag: "enable-ep-moe", deprecated: true},
		{version: "0.5.9", flag: "kv-cache-dtype", def: "auto", choices: "bf16 bfloat16 fp4_e2m1 -nvfp4"},
		{version: "0.5.9", flag: "hicache-mem-layout", def: "layer_first"},
		{version: "0.5.9", flag: "admin-api-key"},
		{version: "0.5.9", flag: "schedule-policy", def: "fcfs", choices: "routing-key -hrrn"},
		{version: "0.5.6.post2", flag: "admin-api-key", absent: true},
		{version: "0.5.15", flag: "cuda-graph-max-bs", deprecated: true},
		{version: "0.5.15", flag: "cuda-graph-max-bs-decode"},
		{version: "0.5.15", flag: "hicache-ratio", def: 2.0},
		{version: "0.5.15", flag: "hicache-mem-layout", def: "page_first"},
		{version: "0.5.20", flag: "cuda-graph-max-bs", absent: true},
		{version: "0.5.23", flag: "kv-cache-dtype", def: "auto", choices: "bf16 nvfp4 mxfp8 fp4_mx_block16 -fp4_e2m1"},
		{version: "0.5.23", flag: "schedule-policy", def: "fcfs", choices: "hrrn shortest-prefill-first"},
		{version: "0.5.23", flag: "hicache-ratio"},
		{version: "0.5.23", flag: "hicache-host-memory-fraction"},
		{version: "0.5.20", flag: "hicache-host-memory-fraction", absent: true},
		{version: "0.5.23", flag: "enable-dp-attention", def: false, deprecated: true},
		{version: "0.5.23", flag: "disable-cuda-graph", def: false, deprecated: true},
		{version: "0.5.23", flag: "watchdog-timeout", def: 300.0},
		{version: "0.5.23", flag: "decode-log-interval", def: 40.0},
		{version: "0.5.23", flag: "max-prefill-tokens", def: 16384.0},
		{version: "0.5.23", flag: "port", def: 30000.0},
		{version: "0.5.23", flag: "host", def: "127.0.0.1"},
		{version: "0.5.23", flag: "radix-eviction-policy", def: "lru", choices: "lru lfu slru priority tlru"},
	} {
		v := version(t, tt.version)
		flags, _ := sglang.FlagsOf(v)
		flag, ok := flags[tt.flag]
		if ok == tt.absent {
			t.Errorf("%s in %s: present %v, want %v", tt.flag, tt.version, ok, !tt.absent)
			continue
		}
		if d := cmp.Diff(tt.def, flag.Default); d != "" && tt.flag != "hicache-host-memory-fraction" {
			t.Errorf("default of %s in %s -want +got:\n%s", tt.flag, tt.version, d)
		}
		if flag.Deprecated != tt.deprecated {
			t.Errorf("%s in %s: deprecated %v, want %v", tt.flag, tt.version, flag.Deprecated, tt.deprecated)
		}
		for _, c := range strings.Fields(tt.choices) {
			name, not := strings.CutPrefix(c, "-")
			if slices.Contains(flag.Choices, name) == not {
				t.Errorf("%s in %s: choices %v, want %s", tt.flag, tt.version, flag.Choices, c)
			}
		}
		if got, known := sglang.DefaultOf(tt.flag, v); known != ok || !cmp.Equal(got, flag.Default) {
			t.Errorf("DefaultOf(%s, %s) = %v, %v", tt.flag, tt.version, got, known)
		}
	}
}

func TestReleaseTable(t *testing.T) {
	t.Parallel()
	all := sglang.Releases()
	if len(all) != 16 || all[0].String() != "0.4.6.post5" || all[15].String() != "0.5.23" {
		t.Fatalf("releases %v", all)
	}
	// Counted by each release's own parser, without --help.
	for text, want := range map[string]int{"0.4.6.post5": 145, "0.5.2": 210, "0.5.9": 331, "0.5.23": 531} {
		flags, _ := sglang.FlagsOf(version(t, text))
		options := map[string]bool{}
		for _, f := range flags {
			options[f.Canonical] = true
		}
		if len(options) != want {
			t.Errorf("%s has %d options in the table, its parser has %d", text, len(options), want)
		}
	}
	for _, v := range all {
		flags, _ := sglang.FlagsOf(v)
		for name, f := range flags {
			if f.Name != name || f.Canonical == "" || f.Form == "" || f.TakesValue != (f.Form != sglang.FormBool && f.Form != sglang.FormSwitch && f.Form != sglang.FormConst && f.Form != sglang.FormNothing) {
				t.Errorf("%s of %s: %+v", name, v, f)
			}
			if text, ok := f.Default.(string); ok && f.Choices != nil && text != "" && !flags.Accepts(name, text) {
				t.Errorf("%s of %s: default %q is not among its choices %v", name, v, text, f.Choices)
			}
		}
	}
}

// Every choice of any release is one of the knob's, so that a study written for any version is read;
// and none is invented.
func TestKnobChoicesAreThoseOfTheReleases(t *testing.T) {
	t.Parallel()
	for _, k := range sglang.Knobs() {
		if k.Kind != sglang.KindChoice {
			continue
		}
		all := map[string]bool{}
		for _, v := range sglang.Releases() {
			flags, _ := sglang.FlagsOf(v)
			for _, c := range flags[k.Name].Choices {
				all[c] = true
				if !slices.Contains(k.Choices, c) {
					t.Errorf("%s: %s has choice %s, which the knob table lacks", k.Name, v, c)
				}
			}
		}
		for _, c := range k.Choices {
			if !all[c] {
				t.Errorf("%s: no release has choice %s", k.Name, c)
			}
		}
	}
}

func TestKnobDefaultsAreThoseOfTheNewest(t *testing.T) {
	t.Parallel()
	for _, k := range sglang.Knobs() {
		value, ok := sglang.DefaultOf(k.Name, sglang.Version{})
		if !ok || value == nil {
			continue // gone, or chosen when the server starts
		}
		if d := cmp.Diff(value, k.Default); d != "" {
			t.Errorf("default of %s: the newest release -, the knob table +\n%s", k.Name, d)
		}
	}
}
