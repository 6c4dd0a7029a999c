package nights_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// TestStrangerOnAGPU: the guard beside a local trial reads the GPUs through go-nvml into the trial's evidence; a process
// of somebody else's that comes to a GPU while a level is measured makes the trial void. One that was there before does not.
func TestStrangerOnAGPU(t *testing.T) {
	library := nvmlLibrary(t)
	for _, late := range []bool{true, false} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			fakeNVML(t, library)
			r, tr, want := besideStranger(t, late)
			// On a machine that other tests keep busy the load generator may come too late; that is no stranger's doing.
			for range 4 {
				if tr.Verdict.Cause != "client_limited" {
					break
				}
				r, tr, want = besideStranger(t, late)
			}
			if strings.Contains(tr.Void, want) != late { // a busy machine may make it void for its CPUs, too
				t.Errorf("void %q, %s / %s: %s", tr.Void, tr.State, tr.Verdict.Outcome, tr.Verdict.Text)
			}
			if tr.State != trial.Complete || tr.Release != trial.ReleaseVerified {
				t.Errorf("%s, %s, %s", tr.State, tr.Release, tr.Verdict.Text)
			}
			gpuFacts(t, filepath.Join(r.Files, tr.Dir, "guard.jsonl"))
		})
	}
}

// besideStranger runs a trial while another process holds memory of a GPU, from the measured level on when it comes late.
// want names that process.
func besideStranger(t *testing.T, late bool) (r *trial.Runner, tr *trial.Trial, want string) {
	t.Helper()
	stranger := exec.CommandContext(t.Context(), "sleep", "120")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	// Less than MemorySlack: the launch is admitted, and the host is clean afterwards.
	held := eightCards + fmt.Sprintf("gpu.4.proc.%d = 200 sticky\n", stranger.Process.Pid)
	describe(t, map[bool]string{true: eightCards, false: held}[late])
	r, tr = nvmlTrial(t, 10*time.Second, "")
	loaded(r, tr)
	clock, ok := r.Clock.(*host.Clock)
	if !ok {
		t.Fatalf("%T", r.Clock)
	}
	gpus := &host.GPUFacts{NVML: &host.Probe{Argv: []string{program, "nvml-probe"}}, SMI: &host.SMI{Program: "no-such-nvidia-smi"}}
	r.Host = host.NewLocal(host.LocalOptions{StateDir: t.TempDir(), GPUs: gpus.Read, Clock: clock, Guard: []string{program, "guard", "--job"}})
	r.Guard = &host.GuardLimits{Grace: 30 * time.Second}
	var once sync.Once
	r.Progress = func(p trial.Progress) {
		if p.Step == trial.StepMeasure {
			once.Do(func() { describe(t, held) })
		}
	}
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	return r, tr, fmt.Sprintf("pid %d (sleep) on GPU 4", stranger.Process.Pid)
}

// gpuFacts looks for everything that evidence of the GPUs is to hold, under load.
func gpuFacts(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, whole := 0, 0
	for line := range bytes.Lines(b) {
		var s host.GuardSample
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines++
		if len(s.GPUs) != 8 {
			continue
		}
		g := s.GPUs[0]
		if g.Used > 40<<30 && g.PowerWatts.Value > 100 && g.SMClockMHz.Known && g.MemoryClockMHz.Known && g.TemperatureC.Known && g.Throttle.Known && g.UncorrectedECC.Known && len(g.Processes) == 1 && s.PageCache > 0 && s.BusyCores >= 0 {
			whole++
		}
	}
	if whole < 3 {
		t.Errorf("%d of %d samples tell memory, power, clocks, throttling and ECC of a GPU under load: %.600s", whole, lines, b)
	}
}
