package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// remote is a fixture whose agent can be killed.
func remote(t *testing.T) fixture {
	t.Helper()
	return fixture{hosttest.NewFixture(t, suite("remote"))}
}

// killAgents ends every serving agent of the folder the hard way, as a cut link with a timeout does, or a reboot of
// the login node.
func (f fixture) killAgents(t *testing.T) int {
	t.Helper()
	n := 0
	for _, pid := range agents(t, f.Dir, "serve") {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}

// agents lists the living agents of a folder that do what word says.
func agents(t *testing.T, dir, word string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(b), "\x00"+dir+"\x00"+word+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func TestProcessOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	f := remote(t)
	p := f.Shell(t, "echo one; while [ ! -e "+f.Dir+"/go ]; do sleep 0.02; done; echo two; exit 42")
	hosttest.FirstLine(t, p)
	done := p.Done() // being asked for while the link goes
	if n := f.killAgents(t); n != 1 {
		t.Fatalf("%d agents killed, want 1", n)
	}
	if b, err := p.Log(t.Context(), 0, 100); string(b) != "one\n" || err != nil {
		t.Errorf("log over a new link: %q, %v", b, err)
	}
	select {
	case <-done:
		t.Fatalf("a lost link is no end: %+v", p.Exit())
	default:
	}
	if f.killAgents(t) != 1 {
		t.Error("no new agent was started")
	}
	f.write(t, "go", "")
	if e := hosttest.Wait(t, p); e.Code != 42 || !e.Known || e.At.IsZero() {
		t.Errorf("%+v", e)
	}
	if b, err := p.Log(t.Context(), 0, 100); string(b) != "one\ntwo\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
}

// Another sgtune finds the process by what was stored of it, and learns how it ended while nobody looked.
func TestAttach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := newRemote(dir)
	p, err := first.Start(t.Context(), host.Command{Argv: []string{"sh", "-c", "echo out; sleep 0.2; exit 7"}})
	if err != nil {
		t.Fatal(err)
	}
	id := p.ID()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(400 * time.Millisecond)
	next := newRemote(dir)
	defer next.Close()
	q, err := next.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if e := hosttest.Wait(t, q); e.Code != 7 || !e.Known {
		t.Errorf("%+v", e)
	}
	if b, err := q.Log(t.Context(), 0, 100); string(b) != "out\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
	for _, other := range []host.ID{
		{BootID: id.BootID, PID: id.PID, StartTicks: id.StartTicks + 1},
		{BootID: "another", PID: id.PID, StartTicks: id.StartTicks},
	} {
		if _, err := next.Attach(t.Context(), other); !errors.Is(err, host.ErrNoProcess) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	// What is kept can be removed, and then it is gone.
	if err := q.(interface{ Forget(context.Context) error }).Forget(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := next.Attach(t.Context(), id); !errors.Is(err, host.ErrNoProcess) {
		t.Errorf("forgotten: %v", err)
	}
}

// A keeper that is killed takes the status with it, and nothing else.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	f := remote(t)
	p := f.Helper(t, "tree")
	hosttest.FirstLine(t, p)
	keepers := agents(t, f.Dir, "keep")
	if len(keepers) != 1 || syscall.Kill(keepers[0], syscall.SIGKILL) != nil {
		t.Fatalf("keepers %v", keepers)
	}
	list, err := f.Find(t.Context(), f.Marker)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d of 3 processes found, %v", len(list), err)
	}
	hosttest.Stop(t, p, 0)
	if e := hosttest.Wait(t, p); e.Known || e.Code != -1 {
		t.Errorf("%+v: nobody can know", e)
	}
	if list, err = f.Find(t.Context(), f.Marker); err != nil || len(list) != 0 {
		t.Errorf("%d left, %v", len(list), err)
	}
}

// Nothing that a cancelled start may have begun is left.
func TestCancelledStart(t *testing.T) {
	t.Parallel()
	f := remote(t)
	if _, err := f.Usage(t.Context()); err != nil { // connected
		t.Fatal(err)
	}
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Millisecond)
		p, err := f.Start(ctx, host.Command{Argv: []string{"sleep", "100"}, Marker: f.Marker})
		cancel()
		if err == nil {
			hosttest.Stop(t, p, 0)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d ms: %v", i*10, err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	if list, err := f.Find(t.Context(), f.Marker); err != nil || len(list) != 0 {
		t.Errorf("%d processes were left, %v", len(list), err)
	}
}

// The link drops again and again while something is asked of it: everything is started once.
func TestStartsOnce(t *testing.T) {
	t.Parallel()
	f := remote(t)
	if _, err := f.Usage(t.Context()); err != nil { // before the first connection nothing is repeated
		t.Fatal(err)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(70 * time.Millisecond):
				f.killAgents(t)
			}
		}
	}()
	for i := range 6 {
		file := filepath.Join(f.Dir, fmt.Sprint("started-", i))
		p := f.Shell(t, "echo x >>"+file)
		if e := hosttest.Wait(t, p); e.Code != 0 || !e.Known {
			t.Errorf("%+v", e)
		}
		if b, err := os.ReadFile(file); string(b) != "x\n" || err != nil {
			t.Errorf("start %d: %q, %v", i, b, err)
		}
	}
	close(quit)
	<-done
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		argv []string
		want string
	}{
		{"no program", []string{"no-such-program"}, "no-such-program"},
		{"ends at once", []string{"sh", "-c", "echo welcome; echo the node is down for repair >&2; exit 1"}, "the node is down for repair"},
		{"chatters for ever", []string{"yes"}, "no agent was heard"},
		{"another protocol", []string{"sh", "-c", `echo '{"program":"sgtune-agent serve","protocol":99}'`}, "protocol 99"},
	} {
		r := host.NewRemote(host.RemoteOptions{Link: host.CommandLink{Name: "box", Argv: c.argv}})
		begin := time.Now()
		_, err := r.Usage(t.Context())
		if !errors.Is(err, host.ErrUnreachable) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "box") {
			t.Errorf("%s: %v", c.name, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: told after %s", c.name, took)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A link that was there once is waited for, no longer than the patience.
func TestLinkGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	link := hosttest.AgentLink(dir)
	link.Argv = append([]string{"sh", "-c", "[ ! -e " + gone + ` ] && exec "$@"; echo no route to host >&2`, "sh"}, link.Argv...)
	r := host.NewRemote(host.RemoteOptions{Link: link, Patience: 400 * time.Millisecond})
	defer r.Close()
	if _, err := r.Usage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pid := range agents(t, dir, "serve") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := r.Usage(ctx); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("bounded by its context: %v", err)
	}
	_, err := r.Usage(t.Context())
	if !errors.Is(err, host.ErrUnreachable) || !strings.Contains(err.Error(), "the link has been down for") || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("after the patience: %v", err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Usage(t.Context()); err != nil {
		t.Errorf("back again: %v", err)
	}
}
