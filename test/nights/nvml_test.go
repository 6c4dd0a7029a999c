package nights_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

// fakeNVML builds the stand-in for the NVIDIA library and describes eight idle cards.
func fakeNVML(t *testing.T) (library, claims string) {
	t.Helper()
	dir := t.TempDir()
	library, claims = filepath.Join(dir, "libnvidia-ml.so.1"), filepath.Join(dir, "claims")
	cc := exec.Command("cc", "-std=c11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1",
		"-o", library, "../fakenvml/fakenvml.c", "-lpthread")
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("building fakenvml: %v\n%s", err, out)
	}
	state := filepath.Join(dir, "state")
	if err := os.WriteFile(state, []byte("count = 8\ngpu.*.total_mib = 97871\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(claims, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SGTUNE_NVML_LIBRARY", library)
	t.Setenv("FAKENVML_STATE", state)
	t.Setenv("FAKENVML_CLAIMS", claims)
	return library, claims
}

// rows stands for the store.
type rows struct{ last trial.Trial }

// SaveTrial implements trial.Saver.
func (r *rows) SaveTrial(_ context.Context, t *trial.Trial) error {
	r.last = *t
	return nil
}

// TestReclaimThroughNVML runs a server on the local host whose GPU memory is read through go-nvml in sgtune's own probe:
// memory that goes with the process is proven released; memory that stays, listed or not, is a dirty host.
func TestReclaimThroughNVML(t *testing.T) {
	for _, c := range []struct {
		fault   string
		release trial.Release
		cause   string
	}{
		{"", trial.ReleaseVerified, ""},
		{"sticky", trial.ReleaseDirty, "memory_held"},
		{"ghost", trial.ReleaseDirty, "memory_held"},
	} {
		t.Run("memory "+c.fault, func(t *testing.T) {
			fakeNVML(t)
			const scale = 100
			clock := host.NewClock(time.Now(), scale)
			probe := &host.Probe{Argv: []string{program, "nvml-probe"}}
			h := host.NewLocal(host.LocalOptions{StateDir: t.TempDir(), GPUs: probe.Read, Clock: clock})
			command := []string{program, "sim-server", "--sim-time-scale", fmt.Sprint(scale), "--sim-startup", "20"}
			if c.fault != "" {
				command = append(command, "--sim-fault", c.fault)
			}
			r := &trial.Runner{
				Host: h, Store: &rows{}, Clock: clock, Files: t.TempDir(), ReadyTimeout: 25 * time.Minute, Grace: 30 * time.Second,
				Server: sglang.Server{Command: command, Model: "any", Flags: sglang.Config{"tp-size": 8.0}},
				Score:  func([]trial.Level) (float64, int, bool) { return 0, 0, false },
			}
			tr := &trial.Trial{Study: "nvml", Number: 1, Config: sglang.Config{"mem-fraction-static": 0.85}, State: trial.Waiting, CreatedAt: clock.Now()}
			err := r.Run(t.Context(), tr)
			if tr.Release != c.release {
				t.Errorf("release %q, want %q (%v; %s)", tr.Release, c.release, err, tr.Verdict.Text)
			}
			if c.release == trial.ReleaseDirty {
				if err == nil || tr.Verdict.Outcome != trial.DirtyHost || tr.Verdict.Cause != c.cause {
					t.Errorf("verdict %s / %s, error %v; want dirty_host / %s and an error", tr.Verdict.Outcome, tr.Verdict.Cause, err, c.cause)
				}
			} else if err != nil {
				t.Errorf("Run: %v", err)
			}
			if tr.Memory.Tokens == 0 || tr.Startup == 0 {
				t.Errorf("the server never came up: %s", tr.Verdict.Text)
			}
			t.Logf("%s; %s", tr.Release, tr.Verdict.Text)
		})
	}
}
