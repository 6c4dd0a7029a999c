package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// Way is how a test upsets what lies between sgtune and a host. Its functions may disturb every user of the way: their
// cells run in a process of their own.
type Way struct {
	// Cut takes the way away, connections included, until mend is called.
	Cut func(t *testing.T, f Fixture) (mend func())
	// Away is how long it is cut for.
	Away time.Duration
	// Restart ends the server on the way, connections included where it has them, and starts it again.
	Restart func(t *testing.T, f Fixture)
}

// CutAgentLink is Way.Cut for hosts over an AgentLink.
func CutAgentLink(t *testing.T, f Fixture) (mend func()) {
	t.Helper()
	put(t, f.Dir, cutFile, "")
	for _, pid := range agents(t, f.Dir) {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasSuffix(string(b), "\x00serve\x00") {
			_ = syscall.Kill(pid, syscall.SIGKILL) // keepers and holders are no part of the link
		}
	}
	return func() {
		if err := os.Remove(filepath.Join(f.Dir, cutFile)); err != nil {
			t.Error(err)
		}
	}
}

// numbers prints a number each 20 ms and ends by itself after some seconds with status 33.
func numbers(n int) string {
	return fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); sleep 0.02; done; exit 33`, n)
}

// whole checks that a log of numbers has no hole, and nothing twice.
func whole(t *testing.T, log []byte, n int) {
	t.Helper()
	var want bytes.Buffer
	for i := range n {
		fmt.Fprintln(&want, i)
	}
	if !bytes.Equal(want.Bytes(), log) {
		t.Errorf("the log has %d bytes, want %d: %.200q", len(log), want.Len(), log)
	}
}

// follow reads what is new of a log until the process has ended and all of it was read.
func follow(t *testing.T, p host.Process, log []byte) []byte {
	t.Helper()
	done := p.Done()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		over := closed(done)
		b, err := p.Log(t.Context(), int64(len(log)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, b...)
		if over && len(b) == 0 {
			return log
		}
		if time.Now().After(end) {
			t.Fatal("the log has no end")
		}
	}
}

// linkDropped has one process end while the link is down: its status is the true one all the same. The lease is kept.
func linkDropped(t *testing.T, f Fixture) {
	release, err := f.Lease(t.Context(), "night one")
	if err != nil {
		t.Fatal(err)
	}
	stays := f.Helper(t, "sleep")
	ends := f.Shell(t, `i=0; while [ ! -e `+f.Dir+`/go ]; do echo $i; i=$((i+1)); sleep 0.02; done; exit 33`)
	FirstLine(t, ends)
	FirstLine(t, stays)
	doneEnds, doneStays := ends.Done(), stays.Done()
	mend := f.Way.Cut(t, f)
	down := time.Now()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
	defer cancel()
	if _, err := f.Usage(ctx); err == nil {
		t.Error("the link is not down")
	}
	if took := time.Since(down); took > patience/2 {
		t.Errorf("a question was held up for %s", took)
	}
	put(t, f.Dir, "go", "")
	time.Sleep(time.Until(down.Add(f.Way.Away)))
	if closed(doneEnds) || closed(doneStays) {
		t.Error("no link is no end")
	}
	mend()
	begin := time.Now()
	if _, err := f.Usage(t.Context()); err != nil {
		t.Error(err)
	}
	recovered(t, begin)
	if _, err := f.open(t, f.Dir).Lease(t.Context(), "night two"); !errors.Is(err, host.ErrLeased) {
		t.Errorf("the lease after a cut link: %v", err)
	}
	log := follow(t, ends, nil)
	whole(t, log, bytes.Count(log, []byte("\n")))
	if e := Wait(t, ends); e.Code != 33 || !e.Known {
		t.Errorf("%+v", e)
	}
	if closed(doneStays) {
		t.Errorf("the server ended: %+v", stays.Exit())
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// serverRestarted follows a log over the restart, and then starts something.
func serverRestarted(t *testing.T, f Fixture) {
	const lines = 150
	release, err := f.Lease(t.Context(), "night one")
	if err != nil {
		t.Fatal(err)
	}
	p := f.Shell(t, numbers(lines))
	FirstLine(t, p)
	f.Way.Restart(t, f)
	begin := time.Now()
	q := f.Shell(t, "exit 4")
	recovered(t, begin)
	if e := Wait(t, q); e.Code != 4 || !e.Known {
		t.Errorf("started after the restart: %+v", e)
	}
	whole(t, follow(t, p, nil), lines)
	if e := Wait(t, p); e.Code != 33 || !e.Known {
		t.Errorf("%+v", e)
	}
	if _, err := f.open(t, f.Dir).Lease(t.Context(), "night two"); !errors.Is(err, host.ErrLeased) {
		t.Errorf("the lease after the restart: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
