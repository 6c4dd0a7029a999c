//go:build cgo

package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// buildNVML compiles the stand-in NVIDIA library, with changes to its text if wanted.
func buildNVML(t *testing.T, replace ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, err := os.ReadFile(filepath.Join("..", "test", "fakenvml", "fakenvml.c"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(source))
	file, lib := filepath.Join(dir, "fakenvml.c"), filepath.Join(dir, "libnvidia-ml.so.1")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-O1", "-o", lib, file, "-lpthread")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return lib
}

// nvml is a machine whose readings come from a state file and a folder of claims.
type nvml struct {
	state, claims string
	probe         *host.Probe
}

func newNVML(t *testing.T, lib, state string) nvml {
	t.Helper()
	n := nvml{state: filepath.Join(t.TempDir(), "state"), claims: t.TempDir()}
	n.set(t, state)
	n.probe = &host.Probe{Timeout: 20 * time.Second, Argv: []string{
		"env", "FAKENVML_STATE=" + n.state, "FAKENVML_CLAIMS=" + n.claims, "SGTUNE_NVML_LIBRARY=" + lib,
		hosttest.HelperEnv + "=probe", os.Args[0],
	}}
	return n
}

func (n nvml) set(t *testing.T, state string) {
	t.Helper()
	if err := os.WriteFile(n.state, []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (n nvml) claim(t *testing.T, gpu, pid int, text string) string {
	t.Helper()
	path := filepath.Join(n.claims, fmt.Sprintf("%d-%d", gpu, pid))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (n nvml) usage(t *testing.T) host.Usage {
	t.Helper()
	u, err := host.NewLocal(host.LocalOptions{StateDir: t.TempDir(), GPUs: n.probe.Read}).Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestNVML(t *testing.T) {
	t.Parallel()
	lib := buildNVML(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, string)
	}{
		{"identity", nvmlIdentity},
		{"memory released, sticky and ghost", nvmlMemory},
		{"same answers as the simulated host", nvmlAgrees},
		{"no library", nvmlNone},
		{"driver missing, GPU lost, no GPU", nvmlTroubles},
		{"hung driver", nvmlHung},
		{"old driver", nvmlOld},
		{"probe that crashes", nvmlCrash},
		{"facts", nvmlFacts},
		{"faults", nvmlFaults},
		{"judgements", nvmlJudgements},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, lib)
		})
	}
}

func nvmlIdentity(t *testing.T, lib string) {
	n := newNVML(t, lib, "count = 2\ngpu.*.name = NVIDIA RTX PRO\ngpu.1.total_mib = 97871\ngpu.1.uuid = GPU-x\ngpu.1.used_mib = 5\n")
	u := n.usage(t)
	want := []host.GPU{
		{Index: 0, UUID: "GPU-fa4e0000-0000-0000-0000-000000000000", Name: "NVIDIA RTX PRO", Total: 143771 * mib},
		{Index: 1, UUID: "GPU-x", Name: "NVIDIA RTX PRO", Total: 97871 * mib, Used: 5 * mib},
	}
	for i := range u.GPUs {
		u.GPUs[i] = host.GPU{Index: u.GPUs[i].Index, UUID: u.GPUs[i].UUID, Name: u.GPUs[i].Name, Total: u.GPUs[i].Total, Used: u.GPUs[i].Used}
	}
	if diff := cmp.Diff(want, u.GPUs); diff != "" || u.GPUNote != "" {
		t.Errorf("note %q (-want +got)\n%s", u.GPUNote, diff)
	}
}

func nvmlMemory(t *testing.T, lib string) {
	n := newNVML(t, lib, "count = 3\n")
	f := newFixture(newHost("local", t.TempDir()), "local", "")
	p := f.Shell(t, "echo ok; sleep 60")
	hosttest.FirstLine(t, p)
	pid := p.ID().PID
	n.claim(t, 0, pid, "1000")
	sticky := n.claim(t, 1, pid, "2000 sticky")
	ghost := n.claim(t, 2, pid, "3000 ghost")
	held := func(n int64, name string) []host.GPUProcess {
		return []host.GPUProcess{{PID: pid, Used: n * mib, Name: name}}
	}
	compareGPUs(t, "while it lives", []host.GPU{
		{Used: 1000 * mib, Processes: held(1000, "sh")}, {Used: 2000 * mib, Processes: held(2000, "sh")}, {Used: 3000 * mib},
	}, n.usage(t))
	hosttest.Stop(t, p, 0)
	compareGPUs(t, "killed", []host.GPU{{}, {Used: 2000 * mib, Processes: held(2000, "")}, {Used: 3000 * mib}}, n.usage(t))
	for _, path := range []string{sticky, ghost} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	compareGPUs(t, "freed", []host.GPU{{}, {}, {}}, n.usage(t))
}

// The simulated host and NVML read one folder; files that are no claims disturb neither.
func nvmlAgrees(t *testing.T, lib string) {
	n := newNVML(t, lib, "count = 4\ngpu.*.total_mib = 97871\n")
	f := newFixture(host.NewSimulated(host.SimulatedOptions{Dir: n.claims, GPUs: 4}), "simulated", n.claims)
	p := f.Shell(t, `cd "$FAKENVML_CLAIMS"; for g in 0 1 2; do echo ${g}00.5 >$g-$$; done; echo 12 >ram-$$; echo 3 >oom_kills; echo ok; sleep 60`)
	hosttest.FirstLine(t, p)
	n.claim(t, 1, 999999, "40 sticky")
	n.claim(t, 2, 999999, "50 ghost")
	n.claim(t, 3, 999999, "60 live")
	n.claim(t, 3, 999998, "7 sticky extra words")
	var got, want []host.GPU
	got = n.usage(t).GPUs
	sim, err := f.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range sim.GPUs {
		g.Used -= 600 * mib // the idle part, which NVML does not count as used
		real := got[i]      // the simulated host tells memory only
		real.Used, real.Processes, real.Total, real.Index = g.Used, g.Processes, g.Total, g.Index
		g = real
		want = append(want, g)
	}
	if diff := cmp.Diff(want[:3], got[:3], cmp.Transformer("sorted", func(p []host.GPUProcess) map[int]int64 {
		m := map[int]int64{}
		for _, x := range p {
			m[x.PID] = x.Used
		}
		return m
	})); diff != "" {
		t.Errorf("(-simulated +NVML)\n%s", diff)
	}
	if len(got[3].Processes) != 1 || len(want[3].Processes) != 1 {
		t.Errorf("GPU 3: NVML lists %v, simulated %v", got[3].Processes, want[3].Processes)
	}
}

func nvmlNone(t *testing.T, _ string) {
	n := newNVML(t, filepath.Join(t.TempDir(), "libnvidia-ml.so.1"), "")
	for range 2 {
		if u := n.usage(t); len(u.GPUs) != 0 || u.GPUNote != "no GPU facts: NVIDIA library not found" {
			t.Errorf("%+v", u)
		}
		n.probe.Argv = []string{"/no/such/probe"} // the verdict is remembered: nothing is run again
	}
}

func nvmlTroubles(t *testing.T, lib string) {
	for _, c := range []struct{ name, state, want string }{
		{"driver not loaded", "init_error = 9", "the NVIDIA driver cannot be used: initialise NVML: "},
		{"GPU lost", "count = 8\ngpu.5.error = 15", "GPU 5: open: the GPU is lost: "},
		{"reset required", "count = 2\ngpu.1.error = 16", "GPU 1: read name: the GPU is lost: "},
		{"none", "count = 0", "the NVIDIA driver lists no GPU"},
	} {
		u := newNVML(t, lib, c.state).usage(t)
		if len(u.GPUs) != 0 || !strings.HasPrefix(u.GPUNote, "no GPU facts: "+c.want) {
			t.Errorf("%s: %d GPUs, note %q", c.name, len(u.GPUs), u.GPUNote)
		}
	}
	n := newNVML(t, lib, "gpu.0.error = 15") // a GPU may come back, so this is asked again
	if u := n.usage(t); u.GPUNote == "" {
		t.Error("lost GPU has readings")
	}
	n.set(t, "")
	if u := n.usage(t); len(u.GPUs) != 1 {
		t.Errorf("after it came back: %+v", u)
	}
}

func nvmlHung(t *testing.T, lib string) {
	n := newNVML(t, lib, "delay_ms = 60000")
	n.probe.Timeout = 500 * time.Millisecond
	begin := time.Now()
	u := n.usage(t)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if len(u.GPUs) != 0 || u.GPUNote != "no GPU facts: the NVIDIA driver did not answer within 500ms" {
		t.Errorf("%+v", u)
	}
}

// A function that the library lacks would end the process without a chance to recover; one that is needed: nvmlFaults.
func nvmlOld(t *testing.T, _ string) {
	n := newNVML(t, buildNVML(t, "nvmlDeviceGetMemoryInfo_v2", "lacksMemory", "nvmlDeviceGetGraphicsRunningProcesses", "lacksGraphics"),
		"gpu.0.used_mib = 100\n")
	if u := n.usage(t); len(u.GPUs) != 1 || u.GPUs[0].Used != 712*mib { // version 1 counts the reserved part
		t.Errorf("%+v", u)
	}
}

func nvmlCrash(t *testing.T, _ string) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"sh", "-c", "echo symbol lookup error >&2; exit 127"}, "the GPU probe failed: exit status 127: symbol lookup error"},
		{[]string{"sh", "-c", "kill -9 $$"}, "the GPU probe failed: signal: killed: "},
		{[]string{"echo", "hello"}, "the GPU probe printed no reading: "},
		{[]string{"/no/such/probe"}, "start the GPU probe: "},
		{[]string{"no-such-probe"}, "start the GPU probe no-such-probe: "},
		{nil, "no probe program given"},
	} {
		p := &host.Probe{Argv: c.argv}
		if gpus, note := p.Read(t.Context()); gpus != nil || !strings.HasPrefix(note, "no GPU facts: "+c.want) {
			t.Errorf("%q: %v, %q", c.argv, gpus, note)
		}
	}
}
