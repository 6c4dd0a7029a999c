package nights_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSmokeScript runs test/gpu/smoke.sh, which is for a real GPU, with stand-ins for the three things that it needs:
// the simulated server for SGLang, fakenvml for the driver and scripts for nvidia-smi and for what takes the rest of
// the GPU's memory. So the script itself, and what it asks of sgtune, stay in order where no GPU is at hand.
func TestSmokeScript(t *testing.T) {
	fakeNVML(t, nvmlLibrary(t))
	describe(t, "count = 1\n")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nvidia-smi": "echo 143771, GPU-fa4e0000-0000-0000-0000-000000000000\n",
		"ballast":    "echo held; exec sleep 60\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "../gpu/smoke.sh", "any")
	cmd.Env = append(environ(t),
		"PATH="+dir+":"+os.Getenv("PATH"), "SGTUNE="+program, "SMOKE_BALLAST="+filepath.Join(dir, "ballast"), "SMOKE_FRACTION=0.85",
		"SMOKE_SERVER="+program+" sim-server --sim-profile llama8b-1x24 --sim-time-scale 100 --sim-startup 20",
		"SMOKE_OOM=--sim-fault prefill_oom:400", "SMOKE_WINDOW=500ms", "SMOKE_MAX=1500ms")
	var seen strings.Builder
	cmd.Stdout, cmd.Stderr = &seen, &seen
	err := cmd.Run()
	_, table, found := strings.Cut(seen.String(), "s in all\n")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if err != nil || !found || len(lines) != 7 || strings.Contains(table, "FAILED") || !strings.Contains(table, "gpu_oom / prefill") {
		t.Errorf("%v\n%s", err, seen.String())
	}
	t.Log("\n" + table)
}
