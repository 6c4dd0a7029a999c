package hosts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

const (
	guardEaterEnv = "SGTUNE_GUARD_EATER" // makes the test binary take memory at 1 GB/s
	guardRun      = "SGTUNE_GUARD_RUNS"  // how many times, 20 when it is not set
	guardLimit    = 4_000_000_000        // of the memory cgroup
	guardLine     = 1_500_000_000        // that must stay free in it
	leastRate     = 0.9e9                // of a run that counts, bytes a second
)

// guardGroup is a memory cgroup of our own.
type guardGroup struct {
	dir string
	v2  bool
}

// newGuardGroup makes the group. Where that is not possible the test fails: there is no other proof.
func newGuardGroup(t *testing.T) guardGroup {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(g) < 3 || g[0] != "cgroup2" && (g[0] != "cgroup" || !slices.Contains(strings.Split(g[2], ","), "memory")) {
			continue
		}
		group := guardGroup{dir: filepath.Join(f[4], fmt.Sprintf("sgtune-guard-%d", os.Getpid())), v2: g[0] == "cgroup2"}
		if err := group.make(f[4]); err != nil {
			problems = append(problems, err.Error())
			_ = os.Remove(group.dir)
			continue
		}
		t.Cleanup(func() {
			for range 50 { // a group can be removed once its last process is collected
				if err = os.Remove(group.dir); err == nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Errorf("remove the cgroup: %v", err)
		})
		return group
	}
	t.Fatalf("no memory cgroup can be made here, so nothing is proven: %q", problems)
	return guardGroup{}
}

func (g guardGroup) make(top string) error {
	name := "memory.limit_in_bytes"
	if g.v2 {
		name = "memory.max"
		_ = os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+memory"), 0) // if not, the limit fails
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.dir, name), []byte(strconv.Itoa(guardLimit)), 0)
}

// number reads the first of the files that exists; key "" for a file that is one number.
func (g guardGroup) number(t *testing.T, key string, names ...string) int64 {
	t.Helper()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 0 && (key == "" || f[0] == key) {
				n, err := strconv.ParseInt(f[len(f)-1], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Fatalf("none of %q in %s", names, g.dir)
	return 0
}

func (g guardGroup) kills(t *testing.T) int64 {
	return g.number(t, "oom_kill", "memory.oom_control", "memory.events")
}

// eat starts the greedy server in the group and returns it with a function that lets it begin.
func (g guardGroup) eat(t *testing.T, marker string) (*exec.Cmd, func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), guardEaterEnv+"=1", host.MarkerEnv+"="+marker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	return cmd, func() { _ = stdin.Close() }
}

// TestGuardBeforeTheKernel: in a cgroup of 4 GB with the line at 1.5 GB a server that takes 1 GB/s is killed by the guard
// each time, and the kernel's counter stays 0; without the guard it rises. A run in which the machine was too busy to
// give the server that much is judged like the others, but proves too little: it is made up for by another one.
func TestGuardBeforeTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute and 4 GB")
	}
	score, err := os.ReadFile("/proc/self/oom_score_adj") // the guard lowers its own, and the programs of other tests would inherit it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile("/proc/self/oom_score_adj", score, 0) })
	runs := 20
	if n, err := strconv.Atoi(os.Getenv(guardRun)); err == nil {
		runs = n
	}
	group := newGuardGroup(t)
	pages := newStock(t)
	var took []time.Duration
	var rates []float64
	slow := 0
	for i := 0; len(rates) < runs; i++ {
		over, rate := guardOnce(t, group, pages, i)
		if took = append(took, over); rate >= leastRate {
			rates = append(rates, rate/1e9)
			continue
		}
		if slow++; slow > 2*runs {
			t.Fatalf("this machine is too busy: only %d of %d runs reached %.1f GB/s", len(rates), i+1, leastRate/1e9)
		}
	}
	slices.Sort(took)
	slices.Sort(rates)
	t.Logf("%d of %d runs killed by the guard, %d of them at %.2f GB/s (median; %.2f to %.2f) and %d slower; the kernel's counter is 0",
		len(took), len(took), runs, rates[runs/2], rates[0], rates[runs-1], slow)
	t.Logf("from the line to the last byte taken %s median, %s worst", took[len(took)/2], took[len(took)-1])

	cmd, begin := group.eat(t, "guard-control")
	begin()
	err = cmd.Wait()
	if n := group.kills(t); n == 0 {
		t.Errorf("control without a guard: the kernel's counter is 0 (%v), so the runs above prove nothing", err)
	}
}

// guardOnce returns how long the server went on after it had crossed the line, and how many bytes a second it took.
func guardOnce(t *testing.T, group guardGroup, pages *stock, i int) (over time.Duration, rate float64) {
	t.Helper()
	peak := "memory.max_usage_in_bytes"
	_ = os.WriteFile(filepath.Join(group.dir, peak), []byte("0"), 0) // version 1: counts anew
	cmd, begin := group.eat(t, fmt.Sprintf("guard-%d", i))
	verdict := filepath.Join(t.TempDir(), "guard.json")
	g, err := host.NewGuard(host.NewLocal(host.LocalOptions{}), host.GuardOptions{
		ID: host.ID{PID: cmd.Process.Pid, Marker: fmt.Sprintf("guard-%d", i)}, MinFree: guardLine,
		Verdict: verdict, Evidence: filepath.Join(t.TempDir(), "guard.jsonl"),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	var v host.GuardVerdict
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() { var err error; v, err = g.Run(ctx); ended <- err }()
	started := time.Now()
	begin()
	gone := pages.give(ctx, started)
	status := cmd.Wait()
	gone()
	if err := <-ended; err != nil {
		t.Errorf("run %d: %v", i, err)
	}
	if n := group.kills(t); n != 0 {
		t.Fatalf("run %d: the kernel killed %d times", i, n)
	}
	if v.Reason != host.GuardCgroup || status == nil || status.Error() != "signal: killed" {
		t.Fatalf("run %d: %s (%s), the server ended with %v", i, v.Reason, v.Detail, status)
	}
	if stored, err := host.ReadGuardVerdict(verdict); err != nil || stored.Reason != v.Reason || stored.Ended.IsZero() {
		t.Errorf("run %d: stored verdict %+v, %v", i, stored, err)
	}
	most := group.number(t, "", peak, "memory.peak")
	rate = (guardLimit - v.Figure) / v.At.Sub(started).Seconds()
	over = time.Duration(float64(most-(guardLimit-guardLine)) / rate * float64(time.Second))
	t.Logf("run %d: %.2f GB/s, decided at %.3f GB free, peak %.3f GB", i, rate/1e9, v.Figure/1e9, float64(most)/1e9)
	if over > 500*time.Millisecond {
		t.Errorf("run %d: the server went on for %s after the line", i, over)
	}
	return max(over, 0), rate
}
