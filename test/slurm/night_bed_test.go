package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/internal/hosttest"
)

// program is the built sgtune, with the agent in it that the other tests use.
var program = sync.OnceValues(func() (string, error) {
	path := bed("sgtune")
	return path, hosttest.BuildSgtune("../..", path, os.Getenv(agentEnv))
})

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

// night is a study whose trials are jobs.
type night struct{ *hosttest.Study }

// newNight writes the study file. longest is how long a load level may last. Each study has its own lease of the login node,
// so that several run at once.
func newNight(t *testing.T, name, longest string) *night {
	t.Helper()
	need(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := bed("n-" + name)
	n := &night{hosttest.NewStudy(t, hosttest.Study{Name: name, Dir: dir, Program: path, Env: []string{"XDG_STATE_HOME=" + filepath.Join(dir, "state")}})}
	t.Cleanup(func() {
		for _, id := range n.jobs() {
			_ = exec.Command("scancel", id).Run() // of a failed test
		}
	})
	var rows strings.Builder
	for i := range 600 { // mostly decoded, so that how many run at once is what counts
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 128, "output_length": 160, "hash_ids": [%d]}`+"\n", 100*i, i)
	}
	n.Write("rows.jsonl", rows.String())
	n.Write("study.yaml", strings.NewReplacer("@NAME", name, "@PROGRAM", path, "@WORK", n.Path("work"), "@MAX", longest).Replace(nightStudy))
	return n
}

// finish waits for the end with that exit status.
func (n *night) finish(r *hosttest.Tuning, want int) {
	n.T.Helper()
	if n.Await(r, 10*time.Minute); r.Code != want {
		n.T.Fatalf("exit %d, want %d", r.Code, want)
	}
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
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "sgtune-"+n.Name+"."+rest) {
			ids = append(ids, id)
		}
	}
	return ids
}

// nothingLeft fails when something of the study is still there: jobs, processes, runs, the lease.
func (n *night) nothingLeft() {
	n.T.Helper()
	n.NothingLeft(func() []string {
		var found []string
		for _, id := range n.jobs() {
			found = append(found, "job "+id)
		}
		for pid, what := range n.Processes() {
			found = append(found, fmt.Sprintf("process %d: %.300s", pid, what))
		}
		for _, kind := range []string{"run", "job", "lease"} {
			files, _ := filepath.Glob(n.Path("work/" + kind + "/*"))
			found = append(found, files...)
		}
		return found
	})
}
