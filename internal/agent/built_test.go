package agent_test

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/internal/agent"
)

// mostBytes bounds an unpacked agent: it is copied to a host before the first trial there.
const mostBytes = 12 << 20

// makeAgents builds the agents as `make build` does, into a folder of the test.
func makeAgents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("make", "-C", "../..", "agent", "AGENT_DIR="+dir)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make agent: %v\n%s", err, out)
	}
	return dir
}

func unpacked(t *testing.T, dir, arch string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "sgtune-agent-linux-"+arch+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestBuiltAgents builds what sgtune embeds and proves what it says of it: static, small, the same bytes from the
// same tree; and the one for this machine measures as benchmark.Run does.
func TestBuiltAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the agents, a minute on a cold cache: make test-rest runs it")
	}
	t.Parallel()
	first, second := makeAgents(t), makeAgents(t)
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, arch := range agent.Archs() {
		program := unpacked(t, first, arch)
		if !bytes.Equal(program, unpacked(t, second, arch)) {
			t.Errorf("%s: two builds differ", arch)
		}
		if len(program) > mostBytes {
			t.Errorf("%s: %d bytes, more than %d", arch, len(program), mostBytes)
		}
		file, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Fatal(err)
		}
		if file.Machine != machines[arch] {
			t.Errorf("%s: built for %v", arch, file.Machine)
		}
		for _, p := range file.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s: not static, it has %v", arch, p.Type)
			}
		}
	}
	for _, name := range []string{"SHA256SUMS", "sgtune-agent-linux-amd64.gz", "sgtune-agent-linux-arm64.gz"} {
		a, errA := os.ReadFile(filepath.Join(first, name))
		b, errB := os.ReadFile(filepath.Join(second, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: two builds differ (%v, %v)", name, errA, errB)
		}
	}
	if runtime.GOOS == "linux" {
		replays(t, unpacked(t, first, runtime.GOARCH))
	}
}

// replays runs a level through the program and without it.
func replays(t *testing.T, program []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sgtune-agent")
	if err := os.WriteFile(file, program, 0o700); err != nil {
		t.Fatal(err)
	}
	told, err := exec.Command(file, "version").Output()
	if err != nil || !strings.HasPrefix(string(told), "sgtune-agent ") {
		t.Errorf("version: %q, %v", told, err)
	}
	path := workloadFile(t, 50)
	opts := benchmark.Options{Concurrency: 8, Requests: 400, Window: 200 * time.Millisecond}
	servers := [2]*fakeServer{{pace: time.Millisecond}, {pace: time.Millisecond}}
	want, wantSamples := direct(t, servers[0].start(t), path, opts)
	cmd, conn := process(t, file, "replay")
	var got []benchmark.Request
	report, err := agent.Run(t.Context(), conn, newJob(servers[1].start(t), path, opts), agent.Callbacks{
		Each: func(q benchmark.Request) { got = append(got, q) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	if d := cmp.Diff(counts(want), counts(report)); d != "" {
		t.Errorf("counts: %s", d)
	}
	if d := cmp.Diff(samplesOf(wantSamples), samplesOf(got)); d != "" {
		t.Errorf("requests: %s", d)
	}
}
