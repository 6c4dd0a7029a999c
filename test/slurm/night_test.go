package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// trial makes the host of a trial and gives its node back at the end.
func trial(t *testing.T, change func(*host.SlurmOptions)) *host.Slurm {
	t.Helper()
	need(t)
	o := options(t.TempDir())
	if change != nil {
		change(&o)
	}
	s, err := host.NewSlurm(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (ending{s}).Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func shell(t *testing.T, h host.Host, script string) host.Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := h.Start(ctx, host.Command{Argv: []string{"sh", "-c", script}, Marker: hosttest.NewMarker()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func scontrol(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
	return string(out)
}

// A job that is cancelled from outside: its server had TERM, its end is known, and the job says it was not the trial.
func TestCancelled(t *testing.T) {
	s := trial(t, nil)
	p := shell(t, s, "trap 'echo got TERM; exit 5' TERM; echo up; while :; do sleep 0.05; done")
	hosttest.FirstLine(t, p)
	scontrol(t, "scancel", s.Job().ID)
	if e := hosttest.Wait(t, p); e.Code != 5 || !e.Known {
		t.Errorf("%+v", e)
	}
	eventually(t, "the job is seen to have ended", time.Minute, func() bool { return s.Job().Cause() == host.SlurmCancelled })
	if b, err := p.Log(t.Context(), 0, 100); !strings.Contains(string(b), "got TERM\n") || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
	var over *host.SlurmEndError
	if _, err := s.Usage(t.Context()); !errors.As(err, &over) || over.Job.Cause() != host.SlurmCancelled {
		t.Errorf("usage of a node that is not ours: %v", err)
	}
	if list, err := s.Find(t.Context(), p.ID().Marker); err != nil || len(list) != 0 {
		t.Errorf("%d left, %v", len(list), err)
	}
	hosttest.Stop(t, p, time.Second)
}

// The limit of the job's memory is told apart from a crash.
func TestMemoryLimit(t *testing.T) {
	s := trial(t, func(o *host.SlurmOptions) { o.Request.Memory = 150 << 20 })
	if _, err := os.Stat("/sys/fs/cgroup/memory/tasks"); err != nil {
		t.Skip("no memory limits without cgroups of version 1")
	}
	p := shell(t, s, "echo up; exec tail /dev/zero")
	if e := hosttest.Wait(t, p); e.Signal != int(syscall.SIGKILL) || !e.OOMKilled {
		t.Errorf("%+v: not told that memory ran out", e)
	}
	if err := s.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Job().Cause() != host.SlurmMemory {
		t.Errorf("%+v", s.Job())
	}
}

// sgtune is killed between sbatch and its own record: the next one finds job, process and log by the name alone.
func TestFoundByName(t *testing.T) {
	dir := t.TempDir()
	s := trial(t, func(o *host.SlurmOptions) { *o = options(dir) })
	p := shell(t, s, "echo up; sleep 60")
	hosttest.FirstLine(t, p)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	next := trial(t, func(o *host.SlurmOptions) { *o = options(dir) })
	list, err := next.Find(t.Context(), p.ID().Marker)
	if err != nil || len(list) == 0 || next.Job().ID != s.Job().ID {
		t.Fatalf("%d found in job %s, which was %s; %v", len(list), next.Job().ID, s.Job().ID, err)
	}
	if b, err := list[0].Log(t.Context(), 0, 100); string(b) != "up\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
	for _, q := range list {
		hosttest.Stop(t, q, 0)
	}
}

// lostAnswer takes the answer of the first sbatch away, as a controller that is slow does.
type lostAnswer struct {
	host.SlurmHere
	submitted *int
}

func (l lostAnswer) RunCommand(ctx context.Context, argv []string, stdin string) (string, int, error) {
	output, status, err := l.SlurmHere.RunCommand(ctx, argv, stdin)
	if argv[0] == "sbatch" {
		*l.submitted++
		return "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", 1, nil
	}
	return output, status, err
}

func TestLostAnswer(t *testing.T) {
	submitted := 0
	s := trial(t, func(o *host.SlurmOptions) { o.Login = lostAnswer{host.SlurmHere{}, &submitted} })
	p := shell(t, s, "exit 7")
	if e := hosttest.Wait(t, p); e.Code != 7 || !e.Known || submitted != 1 {
		t.Errorf("%+v after %d calls of sbatch", e, submitted)
	}
}

// Two trials at once have GPUs and ports of their own, and each is reached by its own way.
func TestTwoAtOnce(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 for a server")
	}
	seen := map[string]bool{}
	for i := range 2 {
		s := trial(t, func(o *host.SlurmOptions) { o.Request.Gres = "gpu:h200:4" })
		e, err := s.Reach(t.Context(), 0)
		if err != nil || e.Dial == nil {
			t.Fatalf("%+v, %v", e, err)
		}
		p := shell(t, s, fmt.Sprintf(`cd %s && echo "$CUDA_VISIBLE_DEVICES $SLURMD_NODENAME" >who && exec %s -m http.server --bind 127.0.0.1 %d`, t.TempDir(), python, e.Port))
		defer hosttest.Stop(t, p, 0)
		eventually(t, "the server listens", time.Minute, func() bool {
			e, err = s.Reach(t.Context(), e.Port)
			return err == nil && e.Listening
		})
		client := &http.Client{Transport: &http.Transport{DialContext: e.Dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
		answer, err := client.Get(e.URL + "/who")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		who := strings.TrimSpace(string(b))
		if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != 200 || strings.Count(who, ",") != 3 || seen[who] {
			t.Errorf("trial %d: %d %q, %v; before %v", i, answer.StatusCode, who, err, seen)
		}
		seen[who] = true
	}
}

// steps are the processes of srun that reach a job.
func steps(t *testing.T, id string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(b), "srun\x00--jobid="+id+"\x00") {
			pid, err := strconv.Atoi(strings.Split(file, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// killSteps takes the way to the node of a job away. A step's second process may have followed the first.
func killSteps(t *testing.T, id string) {
	t.Helper()
	pids := steps(t, id)
	if len(pids) == 0 {
		t.Error("no step")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
}

// The link to the node drops, and with it the step: what was started lives on, because it belongs to the batch script.
func TestDroppedStep(t *testing.T) {
	s := trial(t, nil)
	goOn := filepath.Join(t.TempDir(), "go")
	p := shell(t, s, "echo one; while [ ! -e "+goOn+" ]; do sleep 0.1; done; echo two; exit 9")
	hosttest.FirstLine(t, p)
	done := p.Done()
	killSteps(t, s.Job().ID)
	if b, err := p.Log(t.Context(), 0, 100); string(b) != "one\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
	select {
	case <-done:
		t.Fatalf("a lost link is no end: %+v", p.Exit())
	default:
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := hosttest.Wait(t, p); e.Code != 9 || !e.Known {
		t.Errorf("%+v", e)
	}
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// The controller is down for a while: nothing has failed by that.
func TestControllerDown(t *testing.T) {
	s := trial(t, nil)
	p := shell(t, s, "echo up; while [ ! -e "+t.TempDir()+"/x ]; do sleep 0.1; done")
	hosttest.FirstLine(t, p)
	stopController(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := (host.SlurmCLI{Runner: host.SlurmHere{}}).Job(ctx, s.Job()); !errors.Is(err, host.ErrSlurmUnclear) {
		t.Errorf("asked a controller that is down: %v", err)
	}
	select {
	case <-p.Done():
		t.Errorf("a controller that is down is no end: %+v", p.Exit())
	default:
	}
	if err := testbed("start"); err != nil {
		t.Fatal(err)
	}
	hosttest.Stop(t, p, 0)
	if e := hosttest.Wait(t, p); e.Signal != int(syscall.SIGKILL) || !e.Known || e.OOMKilled {
		t.Errorf("%+v", e)
	}
}

// A job that gets no node is told with Slurm's reason, and goes away when it is not wanted any more.
func TestWaits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var reasons []string
	s := trial(t, func(o *host.SlurmOptions) {
		o.Waiting = func(j host.SlurmJob) {
			if reasons = append(reasons, j.State+" "+j.Reason); j.Reason != "" {
				cancel()
			}
		}
	})
	scontrol(t, "scontrol", "update", "NodeName=ALL", "State=DRAIN", "Reason=test")
	defer scontrol(t, "scontrol", "update", "NodeName=ALL", "State=RESUME")
	_, err := s.Start(ctx, host.Command{Argv: []string{"true"}})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waits in the queue") || len(reasons) == 0 {
		t.Errorf("%v; heard %q", err, reasons)
	}
	if err := s.End(t.Context()); err != nil || s.Job().Cause() != host.SlurmCancelled {
		t.Errorf("%+v, %v", s.Job(), err)
	}
}

// What no node of the site has is refused at once, in Slurm's words.
func TestRefused(t *testing.T) {
	s := trial(t, func(o *host.SlurmOptions) { o.Request.Gres = "gpu:h200:9" })
	_, err := s.Start(t.Context(), host.Command{Argv: []string{"true"}})
	if !errors.Is(err, host.ErrSlurmRefused) || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

// Slurm loses a node whose processes run on: that is said, and not taken for a clean end. Last, for the node's sake.
func TestZNodeLost(t *testing.T) {
	s := trial(t, nil)
	p := shell(t, s, "echo up; sleep 30")
	hosttest.FirstLine(t, p)
	node := s.Job().Node
	scontrol(t, "scontrol", "update", "NodeName="+node, "State=DOWN", "Reason=test")
	defer func() {
		_ = exec.Command("scontrol", "update", "NodeName="+node, "State=RESUME").Run() // it may have come back by itself
	}()
	hosttest.Wait(t, p)
	if s.Job().Cause() != host.SlurmNodeLost {
		t.Fatalf("%+v", s.Job())
	}
	if _, err := s.Find(t.Context(), p.ID().Marker); err == nil || !strings.Contains(err.Error(), "may be left on "+node) {
		t.Errorf("not said: %v", err)
	}
}

// A sgtune that is gone for longer than the study allows: the job ends itself, and the server had TERM.
func TestSilence(t *testing.T) {
	o := options(t.TempDir())
	o.Patience = 8 * time.Second // the agent is heard each five
	s := trial(t, func(p *host.SlurmOptions) { *p = o })
	term := filepath.Join(t.TempDir(), "term")
	hosttest.FirstLine(t, shell(t, s, "trap 'echo >"+term+"; exit 5' TERM; echo up; while :; do sleep 0.05; done"))
	id := s.Job()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job ends", 90*time.Second, func() bool {
		j, err := (host.SlurmCLI{Runner: host.SlurmHere{}}).Job(t.Context(), id)
		return err == nil && j.Cause() == host.SlurmDone
	})
	if _, err := os.Stat(term); err != nil {
		t.Errorf("no TERM: %v", err)
	}
}
