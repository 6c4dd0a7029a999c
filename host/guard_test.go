package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// guardScript is a trial, a machine and a clock in one goroutine: at every Sleep time passes and the script goes on.
type guardScript struct {
	root    fstest.MapFS
	now     time.Time
	at      map[time.Duration]func(*guardScript) // what happens when, counted from the start
	start   time.Time
	looks   int
	verdict string // what lay on disk at the first kill
	path    string

	living, strays bool
	stubborn       bool // ignores SIGTERM
	did            []string
	killError      error
}

func newGuardScript(t *testing.T) *guardScript {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &guardScript{root: tree(nil), now: start, start: start, living: true, path: filepath.Join(t.TempDir(), "guard.json"), at: map[time.Duration]func(*guardScript){}}
	s.file("proc/vmstat", vmstatText)
	s.available(20 << 30)
	return s
}

func (s *guardScript) file(name, text string) { s.root[name] = &fstest.MapFile{Data: []byte(text)} }

func (s *guardScript) available(bytes int64) { s.meminfo(bytes, 0) }

func (s *guardScript) meminfo(available, swapUsed int64) {
	s.file("proc/meminfo", fmt.Sprintf("MemTotal: %d kB\nMemAvailable: %d kB\nCached: 7 kB\nSwapTotal: %d kB\nSwapFree: %d kB\n",
		24<<20, available>>10, 8<<20, 8<<20-swapUsed>>10))
}

func (s *guardScript) Now() time.Time { return s.now }

func (s *guardScript) Sleep(ctx context.Context, d time.Duration) error {
	if s.looks++; s.looks > 100_000 {
		return errors.New("the script never ends")
	}
	from := s.now.Sub(s.start)
	s.now = s.now.Add(d)
	for at, do := range s.at {
		if at > from && at <= s.now.Sub(s.start) {
			do(s)
		}
	}
	return context.Cause(ctx)
}

func (s *guardScript) alive() bool                         { return s.living }
func (s *guardScript) left(context.Context) (bool, error)  { return s.living || s.strays, nil }
func (s *guardScript) protect(context.Context, bool) error { return nil }

func (s *guardScript) terminate() error {
	s.did = append(s.did, "TERM at "+s.now.Sub(s.start).Truncate(time.Second).String())
	s.living = s.living && s.stubborn
	return nil
}

func (s *guardScript) kill(context.Context) error {
	s.did = append(s.did, "KILL at "+s.now.Sub(s.start).Truncate(time.Second).String())
	if v, err := ReadGuardVerdict(s.path); err == nil {
		s.verdict = string(v.Reason)
	}
	s.living, s.strays = false, false
	return s.killError
}

const guardV1 = "sys/fs/cgroup/memory/job/"

func TestGuardDecides(t *testing.T) {
	t.Parallel()
	v1 := func(s *guardScript, usage int64) {
		s.file("proc/77/cgroup", "4:memory:/job\n0::/\n")
		s.file("proc/self/mountinfo", mountsV1)
		s.file(guardV1+"memory.limit_in_bytes", fmt.Sprint(int64(8<<30)))
		s.file(guardV1+"memory.usage_in_bytes", fmt.Sprint(usage))
		s.file(guardV1+"memory.stat", "total_inactive_file 1073741824\ntotal_active_file 0\n")
		s.file(guardV1+"memory.oom_control", "oom_kill 4\n")
	}
	for _, c := range []struct {
		name   string
		opts   GuardOptions
		set    func(t *testing.T, s *guardScript, o *GuardOptions)
		reason GuardReason
		did    []string
		detail string
	}{
		{"ends by itself", GuardOptions{}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			s.at[3*time.Second] = func(s *guardScript) { s.living = false }
		}, GuardOver, nil, "nothing"},
		{"its main process ends, children stay until the time is up", GuardOptions{TimeLimit: 20 * time.Second, Grace: time.Minute}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			s.at[3*time.Second] = func(s *guardScript) { s.living, s.strays = false, true }
		}, GuardTimeLimit, []string{"KILL at 20s"}, "its limit is 20s"},
		{"memory of the machine", GuardOptions{MinFree: 2 << 30}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			s.at[10*time.Second] = func(s *guardScript) { s.available(2<<30 - 1<<20) }
		}, GuardMemory, []string{"KILL at 10s"}, "MemAvailable of the machine is 2.15 GB, below the line of 2.15 GB"},
		{"just above the line", GuardOptions{MinFree: 2 << 30, TimeLimit: 20 * time.Second}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			s.at[10*time.Second] = func(s *guardScript) { s.available(2 << 30) }
		}, GuardTimeLimit, []string{"KILL at 20s"}, "limit"},
		{"the line of its own choice", GuardOptions{}, func(_ *testing.T, s *guardScript, _ *GuardOptions) { // 5% of 24 GiB
			s.at[10*time.Second] = func(s *guardScript) { s.available(24<<30/20 - 4096) }
		}, GuardMemory, []string{"KILL at 10s"}, "below the line of 1.29 GB"},
		{"no watch wanted", GuardOptions{MinFree: -1, TimeLimit: 20 * time.Second}, func(_ *testing.T, s *guardScript, _ *GuardOptions) { s.available(0) }, GuardTimeLimit, []string{"KILL at 20s"}, ""},
		{"cgroup, version 1, page cache is free", GuardOptions{MinFree: 2 << 30}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			v1(s, 6<<30)
			s.at[10*time.Second] = func(s *guardScript) { v1(s, 7<<30) } // 1 GiB of it is cache: exactly the line
			s.at[20*time.Second] = func(s *guardScript) { v1(s, 7<<30+4096) }
		}, GuardCgroup, []string{"KILL at 20s"}, "limit of 8.59 GB of cgroup /sys/fs/cgroup/memory/job is 2.15 GB"},
		{"cgroup, version 2, a limit that comes later", GuardOptions{MinFree: 2 << 30}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			s.file("proc/77/cgroup", "0::/a/b\n")
			s.file("proc/self/mountinfo", mountsV2)
			s.file("sys/fs/cgroup/a/memory.current", fmt.Sprint(int64(3<<30)))
			s.at[9*time.Second] = func(s *guardScript) { s.file("sys/fs/cgroup/a/memory.max", fmt.Sprint(int64(4<<30))) }
		}, GuardCgroup, []string{"KILL at 9s"}, "cgroup /sys/fs/cgroup/a "},
		{"swap", GuardOptions{MinFree: 1 << 30, SwapGrowth: 1 << 30}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			s.meminfo(20<<30, 3<<30) // was in use before
			s.at[10*time.Second] = func(s *guardScript) { s.meminfo(20<<30, 4<<30) }
			s.at[20*time.Second] = func(s *guardScript) { s.meminfo(20<<30, 4<<30+4096) }
		}, GuardSwap, []string{"KILL at 20s"}, "1.07 GB of swap"},
		{"time limit, ends when asked", GuardOptions{TimeLimit: time.Hour, Grace: 30 * time.Second}, nil, GuardTimeLimit, []string{"TERM at 1h0m0s", "KILL at 1h0m0s"}, "ran for 1h0m0s"},
		{"time limit, ignores SIGTERM", GuardOptions{TimeLimit: time.Hour, Grace: 30 * time.Second}, func(_ *testing.T, s *guardScript, _ *GuardOptions) { s.stubborn = true }, GuardTimeLimit, []string{"TERM at 1h0m0s", "KILL at 1h0m30s"}, ""},
		{"memory runs out while it ends: killed at once, the first cause stays", GuardOptions{TimeLimit: time.Hour, Grace: 30 * time.Second}, func(_ *testing.T, s *guardScript, _ *GuardOptions) {
			s.stubborn = true
			s.at[time.Hour+5*time.Second] = func(s *guardScript) { s.available(0) }
		}, GuardTimeLimit, []string{"TERM at 1h0m0s", "KILL at 1h0m5s"}, ""},
		{"tuner gone", GuardOptions{Absence: 10 * time.Minute}, func(t *testing.T, s *guardScript, o *GuardOptions) {
			o.Heartbeat = filepath.Join(t.TempDir(), "beat")
			s.at[5*time.Minute] = func(*guardScript) { // the file's clock is another machine's
				if err := errors.Join(TouchHeartbeat(o.Heartbeat), os.Chtimes(o.Heartbeat, time.Unix(9, 0), time.Unix(9, 0))); err != nil {
					t.Error(err)
				}
			}
			s.at[8*time.Minute] = func(*guardScript) { // a file that is gone is silence
				if err := os.Remove(o.Heartbeat); err != nil {
					t.Error(err)
				}
			}
		}, GuardTunerGone, []string{"KILL at 15m1s"}, "no heartbeat of the tuner for 10m1s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newGuardScript(t)
			c.opts.ID, c.opts.Verdict = ID{PID: 77, PGID: 77, Marker: "m"}, s.path
			if c.set != nil {
				c.set(t, s, &c.opts)
			}
			g := newGuard(c.opts, s.root, s, s)
			g.haste = verdictLeisure // a disk that is slow in a test run is not what is tested
			v, err := g.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if v.Reason != c.reason || !strings.Contains(v.Detail, c.detail) || v.Forced != (c.did != nil) {
				t.Errorf("%s, %q, forced %v; want %s, %q", v.Reason, v.Detail, v.Forced, c.reason, c.detail)
			}
			if d := cmp.Diff(c.did, s.did); d != "" {
				t.Error(d)
			}
			if c.did != nil && s.verdict != string(c.reason) {
				t.Errorf("verdict on disk before the kill: %q", s.verdict)
			}
			if stored, err := ReadGuardVerdict(s.path); err != nil || !cmp.Equal(stored, v) {
				t.Errorf("stored: %v %s", err, cmp.Diff(stored, v))
			}
		})
	}
}

func TestGuardTellsWhatWouldNotDie(t *testing.T) {
	t.Parallel()
	s := newGuardScript(t)
	s.killError = errors.New("77 is stuck in its driver")
	s.at[time.Second] = func(s *guardScript) { s.available(0) }
	v, err := newGuard(GuardOptions{ID: ID{PID: 77}, Verdict: filepath.Join(t.TempDir(), "no", "folder")}, s.root, s, s).Run(t.Context())
	if err == nil || v.Reason != GuardMemory || !strings.Contains(v.KillProblem, "stuck") || len(s.did) != 1 {
		t.Errorf("%v %+v %q", err, v, s.did)
	}
	if !strings.Contains(err.Error(), "write guard's verdict") {
		t.Errorf("error %v does not tell that the verdict could not be written", err)
	}
}

func TestGuardCancelled(t *testing.T) {
	t.Parallel()
	s := newGuardScript(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.at[time.Second] = func(*guardScript) { cancel() }
	v, err := newGuard(GuardOptions{ID: ID{PID: 77}}, s.root, s, s).Run(ctx)
	if err != nil || v.Reason != GuardCancelled || s.did != nil || v.Reason.Killed() {
		t.Errorf("%v %+v %q", err, v, s.did)
	}
}

func TestNextLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		above int64
		want  time.Duration
	}{
		{-1, 5 * time.Millisecond}, {0, 5 * time.Millisecond}, {80e6, 5 * time.Millisecond}, {1.6e9, 100 * time.Millisecond}, {4e9, 250 * time.Millisecond}, {1 << 60, 250 * time.Millisecond},
	} {
		if got := nextLook(c.above); got != c.want {
			t.Errorf("%d bytes above the line: %s, want %s", c.above, got, c.want)
		}
	}
}
