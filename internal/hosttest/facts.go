package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
)

func port(t *testing.T, f Fixture) {
	p := f.Helper(t, "listen")
	n, err := strconv.Atoi(FirstLine(t, p))
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.Reach(t.Context(), n)
	dials(t, e)
	e.Dial = nil
	want := host.Endpoint{Port: n, URL: fmt.Sprintf("http://127.0.0.1:%d", n), Listening: true, Owners: []int{p.ID().PID}}
	if diff := cmp.Diff(want, e); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	free, err := f.Reach(t.Context(), 0)
	if err != nil || free.Port == 0 || free.Port == n || free.Listening {
		t.Errorf("free port: %+v, %v", free, err)
	}
	Stop(t, p, 0)
	if e, err = f.Reach(t.Context(), n); e.Listening || e.Owners != nil || err != nil {
		t.Errorf("after the end: %+v, %v", e, err)
	}
	if _, err := f.Reach(t.Context(), 70000); err == nil {
		t.Error("port 70000 accepted")
	}
}

// dials makes a connection to a listening port, the way the endpoint says.
func dials(t *testing.T, e host.Endpoint) {
	t.Helper()
	dial := e.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	c, err := dial(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", e.Port))
	if err != nil {
		t.Error(err)
		return
	}
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("the listener said %q, %v", b, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func leaseExclusive(t *testing.T, f Fixture) {
	before := time.Now()
	release, err := f.Lease(t.Context(), "night one")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.open(t, f.Dir).Lease(t.Context(), "night two")
	if !errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), `"night one"`) || !saysSince(err, before) {
		t.Errorf("second lease: %v", err)
	}
	other, err := f.open(t, t.TempDir()).Lease(t.Context(), "elsewhere")
	if err != nil {
		t.Errorf("another host is blocked: %v", err)
	} else if err := other(); err != nil {
		t.Error(err)
	}
	for range 2 { // releasing twice is harmless
		if err := release(); err != nil {
			t.Error(err)
		}
	}
	if release, err = f.Lease(t.Context(), "night two"); err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func usage(t *testing.T, f Fixture) {
	f.Helper(t, "sleep")
	u, err := f.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if u.At.IsZero() || u.MemTotal <= 0 || u.MemAvailable <= 0 || u.MemAvailable > u.MemTotal || u.OOMKills < 0 || u.Processes < 1 {
		t.Errorf("%+v", u)
	}
	if _, err := os.ReadFile("/proc/self/io"); (err == nil) != (u.DiskRead >= 0) {
		t.Errorf("%d bytes read from storage; /proc/self/io: %v", u.DiskRead, err)
	}
	if (len(u.GPUs) == 0) != (u.GPUNote != "") {
		t.Errorf("%d GPUs with the note %q", len(u.GPUs), u.GPUNote)
	}
}

func run(t *testing.T, f Fixture) {
	c := host.Command{LogPath: filepath.Join(t.TempDir(), "log")}
	for _, r := range []struct {
		script, want string
		code         int
	}{
		{"echo one; exit 3", "one\n", 3},
		{"echo two", "two\n", 0},
		{"head -c 5000 /dev/zero | tr '\\0' x; echo", strings.Repeat("x", 2047) + "\n", 0},
		{"exit 1", "", 1},
	} {
		c.Argv = []string{"sh", "-c", r.script}
		e, out, err := host.Run(t.Context(), f, c, patience)
		if e.Code != r.code || out != r.want || err != nil {
			t.Errorf("%s: %+v, %q, %v", r.script, e, out, err)
		}
	}
	if _, _, err := host.Run(t.Context(), f, host.Command{Argv: []string{"no-such-program"}}, 0); err == nil {
		t.Error("a missing program is no error")
	}
}

func runTooLong(t *testing.T, f Fixture) {
	if _, err := f.Usage(t.Context()); err != nil { // where a machine has to be waited for, that is over
		t.Fatal(err)
	}
	c := host.Command{Argv: []string{"sh", "-c", "echo slow; sleep 120 & sleep 120"}, LogPath: filepath.Join(t.TempDir(), "log")}
	begin := time.Now()
	e, out, err := host.Run(t.Context(), f, c, 2*time.Second) // in which a busy machine, too, has said "slow"
	if err == nil || !strings.Contains(err.Error(), "not done after 2s") || e.Signal != 9 || out != "slow\n" {
		t.Errorf("%+v, %q, %v", e, out, err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("user pressed Ctrl-C"))
	defer cancel()
	if _, _, err = host.Run(ctx, f, c, 0); err == nil || !strings.Contains(err.Error(), "Ctrl-C") {
		t.Errorf("cancelled: %v", err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("took %s", took)
	}
}
