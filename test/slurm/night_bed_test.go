package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nightStudy is a small study of six points that a grid walks through, of which one is the best beyond doubt: the nodes' clock
// is real, and a busy machine is noisy. For the clock's sake the server is told to be fast. The budget has room for launches
// that a kill wastes.
const nightStudy = `study: @NAME
server:
  command: [@PROGRAM, sim-server, --sim-profile, kimi-8x96, --sim-time-scale, "25", --sim-seed, "7", --sim-startup, "10"]
  model: /models/Kimi-K2.5
  flags: {tp-size: 8, trust-remote-code: true}
  baseline: {max-running-requests: 4}
host:
  kind: slurm
  partition: gpu
  gres: "gpu:h200:8"
  memory: 4GB
  time_limit: 20m
  work_dir: @WORK
  tuner_gone: 2m
  parallel: 2
sampler: grid
space:
  max-running-requests: {values: [2, 3, 4, 6, 8, 40]}
workload:
  file: rows.jsonl
  load: {concurrency: [48], target: 0.1%} # so that a level lasts as long as it may
measure: {window: 250ms, max: @MAX, canary: 500ms, fill: off}
budget: {trials: 16}
confirm: {launches: 3}
`

// night is one study and what belongs to it: all of it lies below dir, whose name no process and no other file has.
type night struct {
	t         *testing.T
	name, dir string
	program   string
	tries     int // runs of the program so far
}

// newNight writes the study file. longest is how long a load level may last.
func newNight(t *testing.T, name, longest string) *night {
	t.Helper()
	need(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	n := &night{t: t, name: name, dir: bed("n-" + name), program: path}
	text := strings.NewReplacer("@NAME", name, "@PROGRAM", path, "@WORK", n.path("work"), "@MAX", longest).Replace(nightStudy)
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for i := range 600 { // mostly decoded, so that how many run at once is what counts
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 128, "output_length": 160, "hash_ids": [%d]}`+"\n", 100*i, i)
	}
	if err := os.WriteFile(n.path("rows.jsonl"), []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.path("study.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			n.tell()
		}
		for _, id := range n.jobs() {
			_ = exec.Command("scancel", id).Run() // of a failed test
		}
		_ = os.RemoveAll(n.dir)
	})
	return n
}

func (n *night) path(name string) string { return filepath.Join(n.dir, name) }

// command is one run of the program, its output in a file of its own. Each study has its own lease of the login node, so
// that several run at once.
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
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+n.path("state"), "NO_COLOR=1")
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
	cmd, out := n.command("tune", n.path("study.yaml"), "--db", n.path("sgtune.db"), "--web", "off")
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

// finish waits for the end with that exit status.
func (n *night) finish(r *tuning, want int) {
	n.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(10 * time.Minute):
		n.t.Fatal("not over after 10 minutes")
	}
	if r.code != want {
		n.t.Fatalf("exit %d, want %d", r.code, want)
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

// tell prints what a person would ask for after a failure.
func (n *night) tell() {
	for i := range n.tries {
		b, _ := os.ReadFile(n.path(fmt.Sprintf("out-%d", i+1)))
		if !bytes.HasPrefix(b, []byte("{")) { // of show
			n.t.Logf("%s, run %d:\n%s", n.name, i+1, b)
		}
	}
}

// shown is what the tests read of sgtune show --json.
type shown struct {
	State   string `json:"state"`
	Verdict struct {
		Answer string         `json:"answer"`
		Low    *float64       `json:"gain_low"`
		High   *float64       `json:"gain_high"`
		Config map[string]any `json:"config"`
	} `json:"verdict"`
	Trials []json.RawMessage `json:"trials"`
	rows   []row
}

type row struct {
	Number  int    `json:"number"`
	State   string `json:"state"`
	Outcome string `json:"outcome"`
	Cause   string `json:"cause"`
}

// show reads the database as another program does; the zero value where there is no study in it yet.
func (n *night) show() shown {
	n.t.Helper()
	cmd, out := n.command("show", n.name, "--db", n.path("sgtune.db"), "--json")
	if cmd.Run() != nil {
		return shown{}
	}
	b, err := os.ReadFile(out)
	if err != nil {
		n.t.Fatal(err)
	}
	var s shown
	if err := json.Unmarshal(b, &s); err != nil {
		n.t.Fatalf("show --json: %v\n%s", err, b)
	}
	for _, raw := range s.Trials {
		var r row
		if err := json.Unmarshal(raw, &r); err != nil {
			n.t.Fatal(err)
		}
		s.rows = append(s.rows, r)
	}
	return s
}

// finished are the rows of trials that have ended, by number.
func (s shown) finished() map[int]string {
	rows := map[int]string{}
	for i, r := range s.rows {
		if r.State != "running" && r.State != "waiting" {
			rows[r.Number] = string(s.Trials[i])
		}
	}
	return rows
}

// jobs are the numbers of the study's jobs that have not ended.
func (n *night) jobs() []string { return n.jobsOf("") }

// jobsOf is jobs for those whose name goes on after the study's in that way.
func (n *night) jobsOf(rest string) []string {
	out, err := exec.Command("squeue", "-h", "-o", "%i %j").Output()
	if err != nil {
		return nil
	}
	var ids []string
	for line := range strings.Lines(string(out)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "sgtune-"+n.name+"."+rest) {
			ids = append(ids, id)
		}
	}
	return ids
}

// nothingLeft fails when something of the study is still there a moment after its end: jobs, processes, runs, the lease.
func (n *night) nothingLeft() {
	n.t.Helper()
	var found []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if found = n.left(); len(found) == 0 {
			return
		}
	}
	n.t.Errorf("left behind:\n%s", strings.Join(found, "\n"))
}

func (n *night) left() []string {
	var found []string
	for _, id := range n.jobs() {
		found = append(found, "job "+id)
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if filepath.Base(folder) != fmt.Sprint(os.Getpid()) && len(line) > 0 && // a zombie has none
			(bytes.Contains(line, []byte(n.dir+"/")) || bytes.Contains(env, []byte("SGTUNE_TRIAL="+n.name+"."))) {
			found = append(found, fmt.Sprintf("process %s: %.300q", filepath.Base(folder), line))
		}
	}
	for _, kind := range []string{"run", "job", "lease"} {
		files, _ := filepath.Glob(n.path("work/" + kind + "/*"))
		found = append(found, files...)
	}
	return found
}
