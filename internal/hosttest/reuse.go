package hosttest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// nextPID has the kernel give the next process of this pid namespace a number.
func nextPID(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", fmt.Append(nil, pid-1), 0); err != nil {
		t.Fatal(err)
	}
}

// tick is the resolution of a process's start time. A number that is used twice within one tick is one process to
// everybody: no pid comes round so soon outside of a test.
const tick = 10 * time.Millisecond

// reuse starts a stranger, who leads a group and a session and carries no marker, with a number that was used before.
func reuse(t *testing.T, pid int) {
	t.Helper()
	time.Sleep(2 * tick)
	for range 200 {
		nextPID(t, pid)
		cmd := exec.Command("sleep", "120")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			t.Cleanup(func() { kill(cmd) })
			return
		}
		kill(cmd)
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("number %d is not free", pid)
}

// pidReused gives the number of an ended server, and then that of a killed sgtune, to strangers. Whichever way one
// comes to the server, they live; and the lease is no stranger's.
func pidReused(t *testing.T, f Fixture) {
	if _, err := f.Usage(t.Context()); err != nil { // what takes numbers by the way has them
		t.Fatal(err)
	}
	nextPID(t, 9000)
	p := f.Shell(t, "echo up; while [ ! -e "+f.Dir+"/go ]; do sleep 0.02; done; exit 5")
	FirstLine(t, p)
	pid := p.ID().PID
	list, err := f.Find(t.Context(), f.Marker)
	if err != nil || len(list) == 0 {
		t.Fatalf("%d found, %v", len(list), err)
	}
	put(t, f.Dir, "go", "")
	if e := Wait(t, p); e.Code != 5 || !e.Known {
		t.Errorf("%+v", e)
	}
	eventually(t, "nothing of it is left", func() bool { return syscall.Kill(-pid, 0) != nil })
	reuse(t, pid)
	begin := time.Now()
	all := append([]host.Process{p}, list[:1]...)
	if a, ok := f.Host.(attacher); ok {
		q, err := a.Attach(t.Context(), p.ID())
		if err != nil {
			t.Fatal(err)
		}
		if e := Wait(t, q); e.Code != 5 || !e.Known {
			t.Errorf("attached: %+v", e)
		}
		all = append(all, q)
	}
	for i, q := range all {
		Stop(t, q, 0)
		Stop(t, q, time.Hour)
		if len(living(pid)) != 1 {
			t.Fatalf("way %d: the stranger was killed", i)
		}
	}
	if again, err := f.Find(t.Context(), f.Marker); err != nil || len(again) != 0 {
		t.Errorf("found %d, %v", len(again), err)
	}
	recovered(t, begin)

	nextPID(t, 15000)
	other := anotherTuner(t, f)
	kill(other)
	reuse(t, other.Process.Pid)
	release, err := f.Lease(t.Context(), "night after")
	if err != nil {
		t.Fatalf("the lease of a sgtune whose number is another's: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if len(living(other.Process.Pid)) != 1 {
		t.Error("the stranger was taken for a sgtune")
	}
}
