package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sleeper is a living child of the test.
func sleeper(t *testing.T) procStat {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s, err := readStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lives(t *testing.T, s procStat) bool {
	t.Helper()
	got, err := readStat(s.pid)
	return err == nil && !got.gone() && got.startTicks == s.startTicks
}

// A pid that another process has by now is never signalled, whichever way we come to it.
func TestReusedPIDIsSpared(t *testing.T) {
	t.Parallel()
	stranger := sleeper(t)
	l := NewLocal(LocalOptions{StateDir: t.TempDir()})
	old := ID{BootID: l.boot, PID: stranger.pid, PGID: stranger.pid, StartTicks: stranger.startTicks - 1}
	ended := make(chan struct{})
	close(ended)
	for _, c := range []struct {
		name string
		stop func() error
	}{
		{"signal", func() error { return signal(old.PID, old.StartTicks, syscall.SIGKILL) }},
		{"found", func() error { return (&found{host: l, id: old}).Stop(t.Context(), time.Second) }},
		{"found after a reboot", func() error {
			id := old
			id.StartTicks, id.BootID = stranger.startTicks, "another boot"
			return (&found{host: l, id: id}).Stop(t.Context(), 0)
		}},
		{"started", func() error { return (&process{host: l, id: old, done: ended}).Stop(t.Context(), time.Second) }},
	} {
		if err := c.stop(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		pause(t.Context(), 20*time.Millisecond)
		if !lives(t, stranger) {
			t.Fatalf("%s: the stranger was killed", c.name)
		}
	}
	if err := signal(stranger.pid, stranger.startTicks, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	for range 200 {
		if !lives(t, stranger) {
			return
		}
		pause(t.Context(), 10*time.Millisecond)
	}
	t.Error("the right identity was not killed")
}

// Once its group was empty its number may belong to anybody.
func TestEmptyGroupIsForgotten(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{})
	p, err := l.Start(t.Context(), Command{Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	started := p.(*process)
	if !started.groupGone.Load() {
		t.Fatal("group not seen empty")
	}
	stranger := procStat{pid: 1 << 21, pgrp: started.id.PGID, session: started.id.PGID, state: 'S', threads: 1}
	if list := started.group(map[int]procStat{stranger.pid: stranger}); len(list) != 0 {
		t.Errorf("would kill %v", list)
	}
}

// Something that SIGKILL does not end (state D) must not hold sgtune up for ever.
func TestEndIsBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("reclaim took too long"))
	defer cancel()
	stuck := procStat{pid: 1 << 21, comm: "sglang::schedul", state: 'D', threads: 1}
	asked := 0
	err := end(ctx, "process group 7", func(context.Context) ([]procStat, error) { asked++; return []procStat{stuck}, nil })
	if err == nil || !strings.Contains(err.Error(), "2097152 (sglang::schedul, state D): reclaim took too long") {
		t.Error(err)
	}
	if asked < 3 || asked > 30 {
		t.Errorf("looked %d times in 100 ms", asked)
	}
}

// A process that was listed once is waited for, also when its environment, and so its marker, cannot be read any more.
func TestEndWaitsForTheDying(t *testing.T) {
	t.Parallel()
	dying := sleeper(t)
	wrong := dying
	wrong.startTicks++ // so that the signal does not reach it
	asked := 0
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	list := map[int]procStat{}
	if n := len(withDying([]procStat{dying}, list)) + len(withDying(nil, list)); n != 2 {
		t.Errorf("forgotten while it lives: %d", n)
	}
	if n := len(withDying([]procStat{wrong}, list)) + len(withDying(nil, list)); n != 1 {
		t.Errorf("another process of its pid is waited for: %d", n)
	}
	err := end(ctx, "x", func(context.Context) ([]procStat, error) {
		if asked++; asked == 1 {
			return []procStat{dying}, nil
		}
		return nil, nil
	})
	if err != nil || lives(t, dying) {
		t.Errorf("%v; lives: %v", err, lives(t, dying))
	}
}

// One empty listing is not enough: a fork can hide from it.
func TestEndLooksTwice(t *testing.T) {
	t.Parallel()
	answers := [][]procStat{{}, {{pid: 1 << 21, threads: 1}}, {}, {}}
	asked := 0
	err := end(t.Context(), "x", func(context.Context) ([]procStat, error) { asked++; return answers[asked-1], nil })
	if err != nil || asked != len(answers) {
		t.Errorf("looked %d times, want %d: %v", asked, len(answers), err)
	}
}

func TestOOMKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script  string
		before, after counters
		stop          bool
		want          bool
	}{
		{"kernel counter", "kill -9 $$", counters{4, 0}, counters{5, 0}, false, true},
		{"cgroup counter", "kill -9 $$", counters{-1, 2}, counters{-1, 3}, false, true},
		{"status passed on", "exit 137", counters{4, 0}, counters{5, 0}, false, true},
		{"somebody's kill -9", "kill -9 $$", counters{4, 0}, counters{4, 0}, false, false},
		{"counter unknown", "kill -9 $$", counters{-1, -1}, counters{-1, -1}, false, false},
		{"counter became known", "kill -9 $$", counters{-1, -1}, counters{9, 9}, false, false},
		{"another program's OOM", "exit 1", counters{4, 0}, counters{5, 0}, false, false},
		{"our own kill", "sleep 60", counters{4, 0}, counters{5, 0}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := NewLocal(LocalOptions{})
			asked := 0
			l.counters = func() counters {
				if asked++; asked == 1 {
					return c.before
				}
				return c.after
			}
			p, err := l.Start(t.Context(), Command{Argv: []string{"sh", "-c", c.script}})
			if err != nil {
				t.Fatal(err)
			}
			if c.stop {
				if err := p.Stop(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			<-p.Done()
			if got := p.Exit(); got.OOMKilled != c.want {
				t.Errorf("%+v, want OOMKilled %v", got, c.want)
			}
		})
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	tail := " 1 100 100 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4711 1 2 3"
	for _, c := range []struct {
		name, line, comm string
		gone             bool
	}{
		{"plain", "123 (python3) S" + tail, "python3", false},
		{"name with spaces and parentheses", "123 (a) R (b)) S" + tail, "a) R (b)", false},
		{"zombie with living threads", "123 (x) Z" + tail, "x", false},
		{"zombie", "123 (x) Z" + strings.Replace(tail, " 9 0 4711", " 1 0 4711", 1), "x", true},
		{"dead", "123 (x) X" + tail, "x", true},
	} {
		s, err := parseStat([]byte(c.line))
		if err != nil || s.comm != c.comm || s.gone() != c.gone || s.pid != 123 || s.ppid != 1 || s.pgrp != 100 || s.startTicks != 4711 {
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
	}
	for _, bad := range []string{"", "1 (x)", "1 x S 1", "1 (x) S 1 2", "a (x) S" + tail, "1 (x) SS" + tail} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q accepted as %+v", bad, s)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := []byte("A=1\x00SGTUNE_TRIAL_X=no\x00XSGTUNE_TRIAL=no\x00SGTUNE_TRIAL=s/7=b\x00B=SGTUNE_TRIAL=no\x00")
	if v, ok := envValue(env, MarkerEnv); v != "s/7=b" || !ok {
		t.Errorf("%q, %v", v, ok)
	}
	if v, ok := envValue(env[:20], MarkerEnv); ok {
		t.Errorf("found %q", v)
	}
	if erased(env) || erased(nil) || !erased(make([]byte, 50)) {
		t.Error("erased is wrong")
	}
}

func TestLineage(t *testing.T) {
	t.Parallel()
	all, err := scan()
	if err != nil {
		t.Fatal(err)
	}
	if line := lineage(all); !line[os.Getpid()] || !line[os.Getppid()] || line[sleeper(t).pid] {
		t.Errorf("%v", line)
	}
}
