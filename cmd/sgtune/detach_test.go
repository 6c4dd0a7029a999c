package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sgtune/store"
	"sgtune/tuner"
)

// tty is a pseudo-terminal; what is written to it is kept.
type tty struct {
	master *os.File
	slave  *os.File

	mu   sync.Mutex
	text bytes.Buffer
	gone chan struct{} // nobody reads any more
}

func newTTY(t *testing.T) *tty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("open a pseudo-terminal: %v", err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatalf("set up a pseudo-terminal: %v", err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("open a pseudo-terminal: %v", err)
	}
	s := &tty{master: master, slave: slave, gone: make(chan struct{})}
	go func() {
		defer close(s.gone)
		_, _ = io.Copy(s, master) // ends with the terminal
	}()
	return s
}

// Write implements io.Writer for what comes out of the terminal.
func (s *tty) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *tty) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.text.Bytes(), []byte(text))
}

// start runs this program on the terminal, as the leader of a session.
func (s *tty) start(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{
		Path: self, Args: append([]string{"sgtune"}, args...), Dir: dir, Stdin: s.slave, Stdout: s.slave, Stderr: s.slave,
		Env:         append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "GORACE=atexit_sleep_ms=0"),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.slave.Close(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// hangUp closes the terminal: the kernel sends SIGHUP to its session, and writes to it fail from now on.
func (s *tty) hangUp(t *testing.T) {
	t.Helper()
	if err := s.master.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.gone
}

// eventually waits up to limit for something to become true.
func eventually(t *testing.T, what string, limit time.Duration, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// tinyStudy is a folder with the study of the scripts.
func tinyStudy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/study")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// stateOf is a study's stored state, "" as long as there is none.
func stateOf(ctx context.Context, dir, study string) tuner.StudyState {
	db, err := store.OpenReadOnly(ctx, filepath.Join(dir, "sgtune.db"))
	if err != nil {
		return ""
	}
	defer func() { _ = db.Close() }()
	r, err := db.Study(ctx, study)
	if err != nil {
		return ""
	}
	return r.State
}

// A closed terminal ends no study, although its session gets SIGHUP and every line it prints fails.
func TestClosedTerminalStopsNothing(t *testing.T) {
	t.Parallel()
	oneStudy.Lock()
	defer oneStudy.Unlock()
	dir, s := tinyStudy(t), newTTY(t)
	cmd := s.start(t, dir, "tune", "tiny.yaml", "--trials", "1", "--web", "off")
	eventually(t, "the first launch", 20*time.Second, func() bool { return s.shows("trial 0, baseline") })
	s.hangUp(t)
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed { // not confirmed: one launch each
		t.Errorf("it ended with %v", err)
	}
	if state := stateOf(t.Context(), dir, "tiny"); state != tuner.StudyComplete {
		t.Errorf("the study is %q", state)
	}
}

// A detached study has a session of its own: the terminal it came from is closed, and it goes on.
func TestDetachedOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	oneStudy.Lock()
	defer oneStudy.Unlock()
	dir, s := tinyStudy(t), newTTY(t)
	cmd := s.start(t, dir, "tune", "tiny.yaml", "--trials", "1", "--web", "off", "--detach", "--json")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, s.text.String())
	}
	eventually(t, "its line", 5*time.Second, func() bool { return s.shows(`"kind":"detached"`) })
	var pid int
	if _, rest, ok := bytes.Cut(s.text.Bytes(), []byte(`"pid":`)); !ok {
		t.Fatalf("no pid in %s", s.text.String())
	} else if _, err := fmt.Sscan(string(rest), &pid); err != nil {
		t.Fatal(err)
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("session %d of process %d, %v", sid, pid, err)
	}
	s.hangUp(t)
	eventually(t, "the verdict", 60*time.Second, func() bool { return stateOf(t.Context(), dir, "tiny") == tuner.StudyComplete })
	eventually(t, "its end", 20*time.Second, func() bool { return ended(pid) })
}

// ended reports whether a process is gone or only waits to be collected.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(rest, []byte("Z"))
}
