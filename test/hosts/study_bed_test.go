package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sgtune/internal/hosttest"
)

// sgtuneProgram is the built sgtune, with the agent in it that the other tests use, beside a pretended nvidia-smi.
var sgtuneProgram = sync.OnceValues(func() (string, error) {
	program := bed("sgtune")
	if err := hosttest.BuildSgtune("../..", program, os.Getenv(agentEnv)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(bed("gpu"), "claims"), 0o700); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bed("gpu"), "nvidia-smi"), "sgtune/test/fakesmi").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build fakesmi: %w: %s", err, out)
	}
	_, sum, err := agent("")
	if err != nil {
		return "", err
	}
	out, err := exec.Command(program, "version").Output()
	if err == nil && !strings.Contains(string(out), sum[:12]) {
		err = fmt.Errorf("sgtune holds another agent than %s: %s", sum, out)
	}
	return program, err
})

// nightStudy is the quickstart, cut to six points that a grid walks through, on a host of the testbed. The host's clock is
// real, so the server is told to be fast. Its RAM is real too, so there is no hierarchical cache.
const nightStudy = `study: @NAME
server:
  command: [@PROGRAM, sim-server, --sim-profile, kimi-8x96, --sim-time-scale, "60", --sim-seed, "7", --sim-startup, "30"]
  model: /models/Kimi-K2.5
  flags: {tp-size: 8, trust-remote-code: true}
  baseline: {mem-fraction-static: 0.79, chunked-prefill-size: 512}
  env: {FAKENVML_CLAIMS: @CLAIMS}
host:
  kind: ssh
  address: @ADDRESS
  ssh_config: @CONFIG
  work_dir: @WORK
  tuner_gone: 2m
sampler: grid
space:
  mem-fraction-static: {values: [0.79, 0.80, 0.90]}
  chunked-prefill-size: {values: [512, 8192]}
workload:
  file: @ROWS
  load: {concurrency: [48]}
measure: {window: 400ms, max: 1600ms, canary: 400ms, fill: off}
budget: {trials: 7}
confirm: {launches: 3}
`

// night is a study on a host of the testbed.
type night struct{ *hosttest.Study }

// newNight writes the study file; edit changes its text.
func newNight(t *testing.T, name, address string, edit func(string) string) *night {
	t.Helper()
	need(t)
	program, err := sgtuneProgram()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := filepath.Abs("../../examples/quickstart.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := bed("n-" + name)
	n := &night{hosttest.NewStudy(t, hosttest.Study{Name: name, Dir: dir, Program: program, Env: []string{"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run")}})}
	t.Cleanup(n.sweep)
	text := strings.NewReplacer("@NAME", name, "@PROGRAM", program, "@ADDRESS", address, "@CONFIG", bed("config"), "@WORK", n.work(),
		"@CLAIMS", filepath.Join(bed("gpu"), "claims"), "@ROWS", rows).Replace(nightStudy)
	if edit != nil {
		text = edit(text)
	}
	if err := os.MkdirAll(n.Path("run"), 0o700); err != nil {
		t.Fatal(err)
	}
	n.Write("study.yaml", text)
	return n
}

// work is the folder of the agent on the host.
func (n *night) work() string { return n.Path("work") }

// finish waits for the end; a study without a clear winner ends with 1.
func (n *night) finish(r *hosttest.Tuning) {
	n.T.Helper()
	n.Await(r, 10*time.Minute)
	if r.Code != 0 && r.Code != 1 {
		n.T.Fatalf("exit %d\n%s", r.Code, r.Text())
	}
}

// nothingLeft fails when something of the study is still there: processes that carry its marker or name its folder, sockets,
// runs and the lease on the host, claims on the pretended GPUs.
func (n *night) nothingLeft() {
	n.T.Helper()
	n.NothingLeft(func() []string {
		var found []string
		for pid, what := range n.processes() {
			found = append(found, fmt.Sprintf("process %d: %.300s", pid, what))
		}
		for _, pattern := range []string{n.Path("run/sgtune/*"), n.work() + "/run/*", n.work() + "/lease/*", bed("gpu") + "/claims/*", bed("state") + "/sgtune/lease/*"} {
			files, _ := filepath.Glob(pattern)
			for _, file := range files {
				found = append(found, strings.TrimPrefix(file, os.Getenv(bedEnv)+"/"))
			}
		}
		return found
	})
}

// processes are those that carry the study's marker or were told of its folder.
func (n *night) processes() map[int]string { return n.Processes("=" + n.Path("run")) }

// sweep ends what a failed test has left.
func (n *night) sweep() {
	for pid := range n.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
