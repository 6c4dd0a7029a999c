package hosts

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sgtuneProgram is the built sgtune, with the agent in it that the other tests use: nothing of the tree is written.
var sgtuneProgram = sync.OnceValues(func() (string, error) {
	program := bed("sgtune")
	sum, err := embedAgent()
	if err != nil {
		return "", err
	}
	for _, build := range [][]string{
		{"-overlay", bed("overlay.json"), "-o", program, "sgtune/cmd/sgtune"},
		{"-o", filepath.Join(bed("gpu"), "nvidia-smi"), "sgtune/test/fakesmi"},
	} {
		cmd := exec.Command("go", append([]string{"build"}, build...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", build[len(build)-1], err, out)
		}
	}
	out, err := exec.Command(program, "version").Output()
	if err == nil && !strings.Contains(string(out), sum[:12]) {
		err = fmt.Errorf("sgtune holds another agent than %s: %s", sum, out)
	}
	return program, err
})

// embedAgent writes the files of internal/agent/bin and the overlay that puts them there.
func embedAgent() (sum string, err error) {
	b, sum, err := agent(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	name := "sgtune-agent-linux-" + runtime.GOARCH
	bin, err := filepath.Abs("../../internal/agent/bin")
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(bin, name+".gz"): bed(name + ".gz"), filepath.Join(bin, "SHA256SUMS"): bed("SHA256SUMS"),
	}})
	return sum, errors.Join(err,
		os.WriteFile(bed(name+".gz"), packed.Bytes(), 0o600),
		os.WriteFile(bed("SHA256SUMS"), []byte(sum+"  "+name+"\n"), 0o600),
		os.WriteFile(bed("overlay.json"), overlay, 0o600),
		os.MkdirAll(filepath.Join(bed("gpu"), "claims"), 0o700),
	)
}

// night is one study and what belongs to it: all of it lies below dir, whose name no process and no other file has.
type night struct {
	t       *testing.T
	program string
	name    string
	dir     string
	tries   int // runs of the program so far
}

// newNight writes the study file; edit changes its text.
func newNight(t *testing.T, name, address string, edit func(string) string) *night {
	t.Helper()
	need(t)
	program, err := sgtuneProgram()
	if err != nil {
		t.Fatal(err)
	}
	n := &night{t: t, program: program, name: name, dir: bed("n-" + name)}
	rows, err := filepath.Abs("../../examples/quickstart.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("@NAME", name, "@PROGRAM", program, "@ADDRESS", address, "@CONFIG", bed("config"), "@WORK", n.work(),
		"@CLAIMS", filepath.Join(bed("gpu"), "claims"), "@ROWS", rows).Replace(nightStudy)
	if edit != nil {
		text = edit(text)
	}
	if err := errors.Join(os.MkdirAll(n.path("run"), 0o700), os.WriteFile(n.path("study.yaml"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			n.tell()
		}
		n.sweep()
		_ = os.RemoveAll(n.dir)
	})
	return n
}

func (n *night) path(name string) string { return filepath.Join(n.dir, name) }

// work is the folder of the agent on the host.
func (n *night) work() string { return filepath.Join(n.dir, "work") }

func (n *night) db() string { return n.path("sgtune.db") }

// command is one run of the program, its output in a file of its own.
func (n *night) command(args ...string) (*exec.Cmd, string) {
	n.t.Helper()
	n.tries++
	out := n.path(fmt.Sprintf("out-%d", n.tries))
	f, err := os.Create(out)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = f.Close() })
	cmd := exec.Command(n.program, args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+n.path("run"), "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr = f, f
	return cmd, out
}

// tuning is a running `sgtune tune`.
type tuning struct {
	cmd   *exec.Cmd
	out   string
	ended chan struct{}
	code  int // valid once ended is closed
}

// start begins or continues the study.
func (n *night) start() *tuning {
	n.t.Helper()
	cmd, out := n.command("tune", n.path("study.yaml"), "--db", n.db(), "--web", "off")
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	r := &tuning{cmd: cmd, out: out, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		_ = cmd.Wait() // its status is read below
		r.code = cmd.ProcessState.ExitCode()
	}()
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-r.ended
	})
	return r
}

// finish waits for the end; a study without a clear winner ends with 1.
func (n *night) finish(r *tuning) {
	n.t.Helper()
	n.await(r, 10*time.Minute)
	if r.code != 0 && r.code != 1 {
		n.t.Fatalf("exit %d\n%s", r.code, n.text(r))
	}
}

func (n *night) await(r *tuning, limit time.Duration) {
	n.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(limit):
		n.t.Fatalf("not over after %s\n%s", limit, n.text(r))
	}
}

// kill is kill -9 of the program; false when it had ended before.
func (r *tuning) kill() bool {
	select {
	case <-r.ended:
		return false
	default:
	}
	_ = r.cmd.Process.Signal(syscall.SIGKILL)
	<-r.ended
	return true
}

func (n *night) text(r *tuning) string {
	b, _ := os.ReadFile(r.out)
	return string(b)
}

// tell prints what a person would ask for after a failure.
func (n *night) tell() {
	for i := range n.tries {
		b, _ := os.ReadFile(n.path(fmt.Sprintf("out-%d", i+1)))
		if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) { // of show
			continue
		}
		n.t.Logf("%s, run %d:\n%s", n.name, i+1, b)
	}
}

// left is what of the study is still there: processes that carry its marker or name its folder, sockets, runs and the lease on
// the host, claims on the pretended GPUs.
func (n *night) left() []string {
	var found []string
	for pid, what := range n.processes() {
		found = append(found, fmt.Sprintf("process %d: %.300s", pid, what))
	}
	for _, pattern := range []string{n.path("run/sgtune/*"), n.work() + "/run/*", n.work() + "/lease/*", bed("gpu") + "/claims/*", bed("state") + "/sgtune/lease/*"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			found = append(found, strings.TrimPrefix(file, os.Getenv(bedEnv)+"/"))
		}
	}
	return found
}

// processes are those that carry the study's marker or were told of its folder.
func (n *night) processes() map[int]string {
	found := map[int]string{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		var pid int
		_, _ = fmt.Sscanf(filepath.Base(folder), "%d", &pid)
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if pid != os.Getpid() && len(line) > 0 && // a zombie has none
			(bytes.Contains(line, []byte(n.dir+"/")) || bytes.Contains(env, []byte("SGTUNE_TRIAL="+n.name+"/")) || bytes.Contains(env, []byte("="+n.path("run")))) {
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return found
}

// sweep ends what a failed test has left.
func (n *night) sweep() {
	for pid := range n.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// nothingLeft fails when something of the study is still there a moment after its end.
func (n *night) nothingLeft() {
	n.t.Helper()
	var found []string
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if found = n.left(); len(found) == 0 {
			return
		}
	}
	n.t.Errorf("left behind:\n%s", strings.Join(found, "\n"))
}
