package host

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestShareOfOthers: what others did is the machine's work without that of the trial, sgtune and the kernel.
func TestShareOfOthers(t *testing.T) {
	t.Parallel()
	const mb = 1_000_000
	look := func(busy, storage int64, list ...labour) machineLook {
		m := machineLook{processes: map[procKey]labour{}, busy: busy, storage: storage}
		for i, l := range list {
			if l.name != "" {
				m.processes[procKey{pid: i + 10}] = l
			}
		}
		return m
	}
	trial := func(ticks, children int64) labour {
		return labour{side: sideTrial, name: "sglang", ticks: ticks, childTicks: children}
	}
	small := func(ticks int64) labour { return labour{name: "worker", ticks: ticks} }
	for _, c := range []struct {
		name        string
		before, now machineLook
		want        share
	}{
		{"the first look", machineLook{}, look(100, 0, trial(5, 0)), share{-1, nil, -1, -1}},
		{"the trial alone", look(1000, 0, trial(5, 0)), look(1400, 0, trial(405, 0)), share{0, nil, 0, 0}},
		{
			"many small ones", look(1000, 0, trial(5, 0), small(7), small(7), small(7)), look(1400, 0, trial(305, 0), small(37), small(47), small(37)),
			share{0.5, []GuardCrowd{{"worker", 3, 0.5}}, 0, 0},
		},
		{"too short-lived to be seen", look(1000, 0, trial(5, 0)), look(1400, 0, trial(305, 0)), share{0.5, nil, 0, 0}},
		{
			"a child of the trial ends and is waited for", look(1000, 0, trial(5, 0), labour{side: sideTrial, name: "nvcc", parent: 10, ticks: 100}), look(1400, 0, trial(5, 500)),
			share{0, nil, 0, 0},
		},
		{
			"an orphan of the trial ends", look(1000, 0, trial(5, 0), labour{side: sideTrial, name: "worker", parent: 1, ticks: 100}), look(1400, 0, trial(305, 0)),
			share{-1, nil, -1, -1},
		},
		{
			"sgtune, its children, and the kernel",
			look(1000, 0, trial(5, 0), labour{side: sideOwn, name: "sgtune", ticks: 10}, labour{side: sideSystem, name: "kworker", ticks: 20, childTicks: 1}),
			look(1400, 0, trial(105, 0), labour{side: sideOwn, name: "sgtune", ticks: 110, childTicks: 50}, labour{side: sideSystem, name: "kworker", ticks: 70, childTicks: 9000}),
			share{0.5, nil, 0, 0},
		},
		{
			"a big one is none of a crowd", look(1000, 0, trial(5, 0), small(0)), look(1400, 0, trial(105, 0), small(300)),
			share{1.5, nil, 0, 0},
		},
		{
			"disks and pages", look(0, 100*mb, labour{side: sideTrial, name: "a", faults: 1, childFaults: 2, storage: 30 * mb}),
			look(0, 900*mb, labour{side: sideTrial, name: "a", faults: 601, childFaults: 202, storage: 230 * mb}),
			share{0, nil, 400, 300 * mb},
		},
		{
			"what the trial read cannot be asked", look(0, 100*mb, labour{side: sideTrial, name: "a", storage: -1}), look(0, 900*mb, labour{side: sideTrial, name: "a", storage: -1}),
			share{0, nil, 0, -1},
		},
		{"the machine does not tell", look(-1, -1, trial(5, 0)), look(-1, -1, trial(105, 0)), share{-1, nil, 0, -1}},
	} {
		if d := cmp.Diff(c.want, c.now.since(c.before, 2), cmp.AllowUnexported(share{})); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, d)
		}
	}
}

// TestManySmallStrangers: twenty real processes that each take 1% or 2% of a core are nobody worth naming, but together
// they are seen.
func TestManySmallStrangers(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{StateDir: t.TempDir()})
	trial, err := l.Start(t.Context(), Command{Argv: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trial.Stop(context.Background(), 0) })
	w := &procWatch{host: l, id: trial.ID()}
	const many = 20
	for range many {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.2; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	var s GuardSample
	for range 10 {
		w.look(t.Context(), time.Now(), &s)
		time.Sleep(time.Second)
		s = GuardSample{}
		w.look(t.Context(), time.Now(), &s)
		for _, c := range s.Crowd {
			if c.Name == "sh" && c.Processes >= many/2 && s.OtherCores >= c.Cores/2 && s.OurProcesses == 1 {
				return
			}
		}
	}
	t.Errorf("%+v", s)
}

// TestOwnWorkIsNoStranger: this very program is not among the others, however much it does.
func TestOwnWorkIsNoStranger(t *testing.T) {
	t.Parallel()
	w := &procWatch{host: NewLocal(LocalOptions{StateDir: t.TempDir()}), id: ID{PGID: 1 << 22}}
	all, err := scan()
	if err != nil {
		t.Fatal(err)
	}
	sideOf := w.sides(all)
	if got := sideOf(all[os.Getpid()]); got != sideSystem { // its ancestors, too: the guard was started from them
		t.Errorf("this process is on side %d", got)
	}
	for _, c := range []struct {
		s    procStat
		want side
	}{
		{procStat{pid: 1 << 21, comm: "sshd-session", ticks: 9}, sideOwn},
		{procStat{pid: 1 << 21, comm: "kworker/0:1", flags: kernelThread}, sideSystem},
		{procStat{pid: 1 << 21, comm: "cc1", ticks: 9}, sideOther},
	} {
		if got := sideOf(c.s); got != c.want {
			t.Errorf("%s is on side %d, want %d", c.s, got, c.want)
		}
	}
}
