package nights_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// TestGuardKilledUnderLoad: kill -9 of the real guard while a level is measured: the trial tells it within seconds, another
// guard goes on with the evidence, and the measurement stands.
func TestGuardKilledUnderLoad(t *testing.T) {
	fakeNVML(t, nvmlLibrary(t))
	r, tr := nvmlTrial(t, 10*time.Second, "")
	loaded(r, tr)
	clock, ok := r.Clock.(*host.Clock)
	if !ok {
		t.Fatalf("%T", r.Clock)
	}
	r.Host = host.NewLocal(host.LocalOptions{StateDir: t.TempDir(), Clock: clock, Guard: []string{program, "guard", "--job"}})
	r.Guard = &host.GuardLimits{Grace: 30 * time.Second}
	var once sync.Once
	var mu sync.Mutex
	var killed, told time.Time
	r.Progress = func(p trial.Progress) {
		if p.Step == trial.StepMeasure {
			once.Do(func() {
				mu.Lock()
				defer mu.Unlock()
				killed = time.Now()
				for _, pid := range lockHolders(t, r.Scratch) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
		}
	}
	r.Notice = func(kind, text string) {
		mu.Lock()
		defer mu.Unlock()
		if kind == "guard" && strings.Contains(text, "has died; another one watches it now") {
			told = time.Now()
		}
	}
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if killed.IsZero() || told.IsZero() || told.Sub(killed) > 10*time.Second { // 1 or 2 on an idle machine
		t.Errorf("killed at %s, told at %s", killed, told)
	}
	t.Logf("another guard after %s", told.Sub(killed))
	if tr.State != trial.Complete && tr.Verdict.Cause != "client_limited" {
		t.Errorf("%s, %s / %s: %s", tr.State, tr.Verdict.Outcome, tr.Verdict.Cause, tr.Verdict.Text)
	}
	if left := lockHolders(t, r.Scratch); len(left) > 0 {
		t.Errorf("guards left: %v", left)
	}
}

// lockHolders lists the guards that have their files in a folder.
func lockHolders(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Error(err)
	}
	var pids []int
	for _, file := range files {
		to, err := os.Readlink(file)
		if err != nil || !strings.HasPrefix(to, dir+"/") || !strings.HasSuffix(to, ".guard/lock") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
