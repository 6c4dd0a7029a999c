package nights_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

const eightCards = "count = 8\ngpu.*.total_mib = 97871\n"

// nvmlLibrary builds the stand-in for the NVIDIA library, with changes to its text if wanted.
func nvmlLibrary(t *testing.T, replace ...string) (library string) {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("../fakenvml/fakenvml.c")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "fakenvml.c")
	if err := os.WriteFile(source, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	library = filepath.Join(dir, "libnvidia-ml.so.1")
	cc := exec.Command("cc", "-std=c11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1", "-o", library, source, "-lpthread")
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("building fakenvml: %v\n%s", err, out)
	}
	return library
}

// describe says through the library how the cards are from now on.
func describe(t *testing.T, state string) {
	t.Helper()
	path := os.Getenv("FAKENVML_STATE")
	if err := os.WriteFile(path+".new", []byte(state), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Error(err)
	}
}

// fakeNVML makes the library's machine one of eight idle cards.
func fakeNVML(t *testing.T, library string) {
	t.Helper()
	dir := t.TempDir()
	state, claims := filepath.Join(dir, "state"), filepath.Join(dir, "claims")
	if err := os.Mkdir(claims, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SGTUNE_NVML_LIBRARY", library)
	t.Setenv("FAKENVML_STATE", state)
	t.Setenv("FAKENVML_CLAIMS", claims)
	describe(t, eightCards)
}

// rows stands for the store.
type rows struct{ last trial.Trial }

// SaveTrial implements trial.Saver.
func (r *rows) SaveTrial(_ context.Context, t *trial.Trial) error {
	r.last = *t
	return nil
}

// nvmlTrial is a trial of a simulated server on the local host, whose GPUs are read through go-nvml in sgtune's own
// probe within a time, and by nothing else.
func nvmlTrial(t *testing.T, within time.Duration, fault string) (*trial.Runner, *trial.Trial) {
	t.Helper()
	const scale = 100
	clock := host.NewClock(time.Now(), scale)
	gpus := &host.GPUFacts{NVML: &host.Probe{Argv: []string{program, "nvml-probe"}, Timeout: within}, SMI: &host.SMI{Program: "no-such-nvidia-smi"}}
	command := []string{program, "sim-server", "--sim-time-scale", fmt.Sprint(scale), "--sim-startup", "20"}
	if fault != "" {
		command = append(command, "--sim-fault", fault)
	}
	r := &trial.Runner{
		Host: host.NewLocal(host.LocalOptions{StateDir: t.TempDir(), GPUs: gpus.Read, Clock: clock}), Store: &rows{}, Clock: clock,
		Files: t.TempDir(), ReadyTimeout: 25 * time.Minute, Grace: 30 * time.Second,
		Server: sglang.Server{Command: command, Model: "any", Flags: sglang.Config{"tp-size": 8.0}},
		Score:  func([]trial.Level) (float64, int, bool) { return 0, 0, false },
	}
	return r, &trial.Trial{Study: "nvml", Number: 1, Config: sglang.Config{"mem-fraction-static": 0.85}, State: trial.Waiting, CreatedAt: clock.Now()}
}

// TestReclaimThroughNVML runs a server on the local host whose GPU memory is read through go-nvml in sgtune's own probe:
// memory that goes with the process is proven released; memory that stays, listed or not, is a dirty host.
func TestReclaimThroughNVML(t *testing.T) {
	library := nvmlLibrary(t)
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
			fakeNVML(t, library)
			r, tr := nvmlTrial(t, 5*time.Second, c.fault)
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

// TestFaultsThroughNVML: each fault of a driver, seen through go-nvml in sgtune's own probe, ends in its stated result,
// and sgtune lives to say so.
func TestFaultsThroughNVML(t *testing.T) {
	library := nvmlLibrary(t)
	for _, c := range []struct {
		name    string
		library string
		before  string // state of the cards before the launch
		during  string // and while the server starts, "" = as before
		within  time.Duration
		load    bool

		outcome trial.Outcome
		cause   string
		release trial.Release
		stops   bool   // the study
		text    string // of the verdict or of what was found
	}{
		{name: "MIG on", library: library, before: "gpu.3.mig = 1\n", outcome: trial.EnvFault, cause: "mig_on", release: trial.ReleaseVerified, stops: true, text: "GPU 3 (00000000:13:00.0) is split into instances"},
		{name: "ECC error", library: library, during: "gpu.5.ecc_uncorrected = 1\n", outcome: trial.EnvFault, cause: "ecc", release: trial.ReleaseVerified, stops: true, text: "GPU 5 (00000000:15:00.0) has had 1 memory error"},
		{name: "row remap pending", library: library, before: "gpu.0.remap_pending = 1\n", outcome: trial.EnvFault, cause: "ecc", release: trial.ReleaseVerified, stops: true, text: "waits for a reset"},
		{name: "GPU lost", library: library, during: "gpu.2.error = 15\n", outcome: trial.EnvFault, cause: "gpu_lost", release: trial.ReleaseUnverified, text: "GPU 2: open: the GPU is lost"},
		{name: "GPU lost before the launch", library: library, before: "gpu.2.error = 15\n", outcome: trial.EnvFault, cause: "gpu_lost", release: trial.ReleaseVerified, stops: true, text: "the GPU is lost"},
		{name: "throttling", library: library, before: "gpu.*.throttle = 0x44\n", load: true, outcome: trial.Degraded, cause: "throttled", release: trial.ReleaseVerified, text: "hw_thermal in 100%"},
		{name: "power limit", library: library, before: "gpu.*.throttle = 0x4\n", load: true, outcome: trial.OK, cause: "none", release: trial.ReleaseVerified, text: "the GPUs ran at their power limit"},
		{name: "hung call", library: library, before: "delay_ms = 60000\n", within: 300 * time.Millisecond, outcome: trial.OK, cause: "none", release: trial.ReleaseUnverified, text: "no GPU facts: the NVIDIA driver did not answer within 300ms"},
		{name: "driver missing", library: library, before: "init_error = 9\n", outcome: trial.OK, cause: "none", release: trial.ReleaseUnverified, text: "no GPU facts: the NVIDIA driver cannot be used: initialise NVML: Driver Not Loaded (NVML 9)"},
		{name: "missing library", library: filepath.Join(t.TempDir(), "libnvidia-ml.so.1"), outcome: trial.OK, cause: "none", release: trial.ReleaseUnverified, text: "no GPU facts: NVIDIA library not found; nvidia-smi is not installed or not in PATH"},
		{name: "missing symbol", library: nvmlLibrary(t, "nvmlDeviceGetUUID", "lacksUUID"), outcome: trial.OK, cause: "none", release: trial.ReleaseUnverified, text: "no GPU facts: the NVIDIA driver is too old: its library lacks nvmlDeviceGetUUID"},
		{name: "missing symbol that ends the probe", library: nvmlLibrary(t, "nvmlErrorString", "lacksWords"), before: "gpu.0.error = 3\n", outcome: trial.OK, cause: "none", release: trial.ReleaseUnverified, text: "no GPU facts: the GPU probe failed: exit status 127"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeNVML(t, c.library)
			describe(t, eightCards+c.before)
			r, tr := nvmlTrial(t, cmp.Or(c.within, 10*time.Second), "")
			if c.load {
				loaded(r, tr)
			}
			var once sync.Once
			r.Progress = func(p trial.Progress) {
				if c.during != "" && p.Step == trial.StepWait {
					once.Do(func() { describe(t, eightCards+c.during) })
				}
			}
			err := r.Run(t.Context(), tr)
			if errors.Is(err, trial.ErrUnfitHost) != c.stops || !c.stops && err != nil {
				t.Errorf("stops the study: %v, want %v", err, c.stops)
			}
			v := tr.Verdict
			if v.Outcome != c.outcome || v.Cause != c.cause || tr.Release != c.release {
				t.Errorf("%s / %s, release %q; want %s / %s, %q", v.Outcome, v.Cause, tr.Release, c.outcome, c.cause, c.release)
			}
			said := v.Text
			for _, f := range v.Findings {
				said += "; " + f.Text
			}
			if !strings.Contains(said, c.text) {
				t.Errorf("it says %q", said)
			}
			t.Logf("%s / %s, %s; %s", v.Outcome, v.Cause, tr.Release, said)
		})
	}
}

// loaded gives a trial a level to measure.
func loaded(r *trial.Runner, tr *trial.Trial) {
	var list []benchmark.Row
	for i := range 400 {
		list = append(list, benchmark.Row{Number: i, InputTokens: 512, OutputTokens: 64})
	}
	r.Load = trial.Load{
		Workload: benchmark.NewWorkload(list, 64), Levels: []int{4}, Window: 20 * time.Second, Cap: 2 * time.Minute, Warmup: 20 * time.Second, Salt: "nvml",
	}
	r.Score = func(levels []trial.Level) (float64, int, bool) {
		return levels[0].Report.OutputTokS, levels[0].Concurrency, true
	}
	tr.Plan = []int{4}
}

// TestCheckRefusesMIG asks the program the evening before.
func TestCheckRefusesMIG(t *testing.T) {
	fakeNVML(t, nvmlLibrary(t))
	describe(t, eightCards+"gpu.3.mig = 1\n")
	study := filepath.Join(t.TempDir(), "night.yaml")
	text := "study: mig\nserver: {model: any, command: [" + program + ", sim-server]}\nspace: {mem-fraction-static: [0.80, 0.85]}\nworkload: {file: w.jsonl, load: {concurrency: [4]}}\nbudget: {wall: 9h, trials: 4}\n"
	if err := os.WriteFile(study, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(study), "w.jsonl"), []byte(strings.Repeat(`{"prompt": "a b c d", "output_tokens": 8}`+"\n", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sgtune(t, "check", study, "--db", filepath.Join(t.TempDir(), "x.db"))
	last := r.stdout[strings.LastIndexByte(strings.TrimSpace(r.stdout), '\n')+1:]
	if !strings.HasPrefix(last, "Ready to leave alone: no, because ") || !strings.Contains(last, "GPU 3 (00000000:13:00.0) is split into instances (MIG)") {
		t.Errorf("exit %d, last line %q\n%s", r.code, last, r.stderr)
	}
}
