package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sgtune/host"
)

func graceful(t *testing.T, f Fixture) {
	p := f.Shell(t, `trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done`)
	FirstLine(t, p)
	Stop(t, p, time.Hour)
	if e := Wait(t, p); e.Code != 5 || e.Signal != 0 {
		t.Errorf("%+v, want exit status 5", e)
	}
	b, err := p.Log(t.Context(), 0, 100)
	if string(b) != "ready\nbye\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
}

// stopTree also proves that zombies count as gone: the children are never waited for.
func stopTree(t *testing.T, f Fixture) {
	p := f.Helper(t, "tree")
	pids := treePIDs(t, p)
	if list, err := f.Find(t.Context(), f.Marker); err != nil || len(list) != 3 {
		t.Errorf("found %d of 3, %v", len(list), err)
	}
	begin := time.Now()
	Stop(t, p, 0)
	recovered(t, begin)
	if left := living(append(pids, p.ID().PID)...); len(left) > 0 {
		t.Errorf("left alive: %v", left)
	}
	if e := Wait(t, p); e.Signal != 9 || e.OOMKilled {
		t.Errorf("%+v", e)
	}
	if list, err := f.Find(t.Context(), f.Marker); err != nil || len(list) != 0 {
		t.Errorf("found %d afterwards, %v", len(list), err)
	}
}

func treePIDs(t *testing.T, p host.Process) []int {
	t.Helper()
	var pids []int
	if err := json.Unmarshal([]byte(FirstLine(t, p)), &pids); err != nil {
		t.Fatal(err)
	}
	if alive := living(pids...); len(alive) != 2 {
		t.Fatalf("%v live, want 2 of %v", alive, pids)
	}
	return pids
}

func termIgnored(t *testing.T, f Fixture) {
	p := f.Helper(t, "stubborn")
	FirstLine(t, p)
	begin := time.Now()
	Stop(t, p, 300*time.Millisecond)
	recovered(t, begin.Add(300*time.Millisecond))
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("killed after %s, before the grace was over", took)
	}
	if e := Wait(t, p); e.Signal != 9 {
		t.Errorf("%+v, want signal 9", e)
	}
}

func orphans(t *testing.T, f Fixture) {
	p := f.Helper(t, "orphans")
	if e := Wait(t, p); e.Code != 0 {
		t.Fatalf("%+v", e)
	}
	pids := treePIDs(t, p)
	Stop(t, p, time.Hour) // nobody to ask nicely: no waiting
	if left := living(pids...); len(left) > 0 {
		t.Errorf("left alive: %v", left)
	}
}

func deadController(t *testing.T, f Fixture) {
	cmd := exec.Command(os.Args[0], f.Kind, f.Dir, filepath.Join(t.TempDir(), "log"), f.Marker)
	cmd.Env = append(os.Environ(), HelperEnv+"=controller")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := out.Read(b)
	pid, notNumber := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || notNumber != nil {
		t.Fatalf("controller said %q, %v", b[:n], err)
	}
	_, err = f.Lease(t.Context(), "second")
	if !errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), `"study of the dead" (pid `+strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("lease of a living holder: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	begin := time.Now()
	release, err := f.Lease(t.Context(), "second")
	if err != nil {
		t.Errorf("lease of a dead holder: %v", err)
	} else if err := release(); err != nil {
		t.Error(err)
	}
	list, err := f.Find(t.Context(), f.Marker)
	if err != nil || len(list) != 3 {
		t.Errorf("found %d of 3, %v", len(list), err)
	}
	var pids []int
	for _, p := range list {
		pids = append(pids, p.ID().PID)
		if a, ok := f.Host.(attacher); ok && p.ID().PID == pid { // by its stored identity, with all that is kept of it
			q, err := a.Attach(t.Context(), p.ID())
			if err != nil {
				t.Fatal(err)
			}
			p = q
			treePIDs(t, p)
		}
		Stop(t, p, 0)
		if e := Wait(t, p); f.Kept && p.ID().PID == pid && (!e.Known || e.Signal != 9) {
			t.Errorf("the server of the dead: %+v", e)
		}
	}
	recovered(t, begin)
	if !slices.Contains(pids, pid) {
		t.Errorf("%d is not among %v", pid, pids)
	}
	if left := living(pids...); len(left) > 0 {
		t.Errorf("left alive: %v", left)
	}
}

func stopBounded(t *testing.T, f Fixture) {
	p := f.Helper(t, "sleep")
	FirstLine(t, p)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	err := p.Stop(over, time.Hour) // nil if the kill was faster than the look at what is left
	if took := time.Since(begin); took > patience {
		t.Errorf("took %s", took)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v: want the cause", err)
	}
	if e := Wait(t, p); e.Signal != 9 {
		t.Errorf("not even killed: %+v", e)
	}
}

func stopTwice(t *testing.T, f Fixture) {
	p := f.Helper(t, "stubborn")
	FirstLine(t, p)
	first := make(chan struct{})
	go func() {
		defer close(first)
		Stop(t, p, time.Hour) // the second one, in a hurry, ends this too
	}()
	time.Sleep(20 * time.Millisecond)
	Stop(t, p, 0)
	<-first
	Stop(t, p, 0)
}
