package sglang_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestArgv(t *testing.T) {
	t.Parallel()
	server := sglang.Server{
		Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "/models/My Model",
		Flags: sglang.Config{"tp-size": 8.0, "trust-remote-code": true, "mem-fraction-static": 0.8},
		Env:   map[string]string{"NCCL_IB_DISABLE": "1", "NCCL_ALGO": "Tree"},
	}
	knobs := sglang.Config{
		"mem-fraction-static": 0.88, "hicache-size": 48.0, "enable-mixed-chunk": false, "env.NCCL_ALGO": "Ring",
		"cuda-graph-bs-decode": []any{1.0, 2.0, 4.0}, "max-total-tokens": 150000.0,
	}
	want := []string{
		"python3", "-m", "sglang.launch_server", "--model-path", "/models/My Model", "--cuda-graph-bs-decode", "1", "2", "4",
		"--enable-hierarchical-cache", "--hicache-size", "48", "--max-total-tokens", "150000", "--mem-fraction-static", "0.88",
		"--tp-size", "8", "--trust-remote-code",
	}
	if d := cmp.Diff(want, server.Argv(knobs)); d != "" {
		t.Errorf("argv -want +got:\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"NCCL_IB_DISABLE": "1", "NCCL_ALGO": "Ring"}, server.Environ(knobs)); d != "" {
		t.Errorf("environment -want +got:\n%s", d)
	}
	if server.Env["NCCL_ALGO"] != "Tree" {
		t.Error("Environ changed the fixed environment")
	}
}

func TestHicacheWords(t *testing.T) {
	t.Parallel()
	if got := sglang.FlagWords(sglang.Config{"hicache-size": 0.0}); len(got) != 0 {
		t.Errorf("hicache-size 0 gave %v, want the cache off", got)
	}
	got := sglang.FlagWords(sglang.Config{"hicache-size": 16.0, "enable-hierarchical-cache": true})
	if d := cmp.Diff([]string{"--enable-hierarchical-cache", "--hicache-size", "16"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestConfigKey(t *testing.T) {
	t.Parallel()
	a := sglang.Config{"b": 1.0, "a": "x", "c": []any{1.0, true}}
	b := sglang.Config{"c": []any{1.0, true}, "a": "x", "b": 1.0}
	if a.Key() != b.Key() {
		t.Errorf("equal configurations, keys %s and %s", a.Key(), b.Key())
	}
	b["b"] = "1"
	if a.Key() == b.Key() {
		t.Error("a number and a text have the same key")
	}
	var back sglang.Config
	if err := json.Unmarshal([]byte(a.Key()), &back); err != nil || back.Key() != a.Key() {
		t.Errorf("key does not survive JSON: %v, %s", err, back.Key())
	}
	c := a.Clone()
	c["b"] = 2.0
	if a["b"] != 1.0 {
		t.Error("Clone shares its map")
	}
}
