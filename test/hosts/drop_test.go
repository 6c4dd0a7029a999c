package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// do runs a verb of the testbed.
func do(t *testing.T, verb string) {
	t.Helper()
	if err := testbed(verb); err != nil {
		t.Fatal(err)
	}
}

// The tests of this file cut connections of everybody, so none of them runs beside another.

// killClients kills our ends of the links, control masters included.
func killClients(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(b), "ssh") || !strings.Contains(string(b), "/c"+strconv.Itoa(os.Getpid())+"-") {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	if n == 0 {
		t.Error("there was no client to kill")
	}
}

// The load generator starts over the same kind of link, beside the server.
func TestOpenReplay(t *testing.T) {
	f := fixture(t, "gpu-via-jump")
	c, err := f.Host.(*host.Remote).Open(t.Context(), "replay")
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `{"hello":{"program":"sgtune-agent","protocol":2,`) {
		t.Errorf("%q, %v", line, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A server is asked through the forward before and after the link was lost.
func TestForward(t *testing.T) {
	for _, kind := range []string{"gpu-host", "gpu-via-jump"} {
		t.Run(kind, func(t *testing.T) {
			f := fixture(t, kind)
			p := f.Helper(t, "http")
			port, err := strconv.Atoi(hosttest.FirstLine(t, p))
			if err != nil {
				t.Fatal(err)
			}
			e, err := f.Reach(t.Context(), port)
			if err != nil || !e.Listening || e.Dial == nil {
				t.Fatalf("%+v, %v", e, err)
			}
			for _, upset := range []func(){func() {}, func() { do(t, "drop") }, func() { killClients(t) }} {
				upset()
				// What is under way when the link goes is lost; what is asked after that is not.
				eventually(t, "an answer through the forward", 20*time.Second, func() bool { return well(t, e) })
				if _, err := f.Usage(t.Context()); err != nil { // the session is back as well
					t.Error(err)
				}
			}
		})
	}
}

// well asks the server once, on a connection of its own.
func well(t *testing.T, e host.Endpoint) bool {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: e.Dial, DisableKeepAlives: true}, Timeout: 20 * time.Second}
	r, err := client.Get(e.URL + "/health")
	if err != nil {
		t.Log(err)
		return false
	}
	b, err := io.ReadAll(r.Body)
	if r.StatusCode != 200 || string(b) != "well" || err != nil {
		t.Errorf("%s, %q, %v", r.Status, b, err)
	}
	return r.Body.Close() == nil
}

// A lease outlives a dropped link, and is lost to another one only after the patience.
func TestLeaseOutlivesTheLink(t *testing.T) {
	need(t)
	dir := t.TempDir()
	link, err := host.NewSSH(options("gpu-host", dir))
	if err != nil {
		t.Fatal(err)
	}
	const patience = 4 * time.Second
	first := host.NewRemote(host.RemoteOptions{Link: link, Patience: patience})
	defer first.Close()
	release, err := first.Lease(t.Context(), "study one")
	if err != nil {
		t.Fatal(err)
	}
	second := newRemote(options("gpu-host", dir))
	defer second.Close()
	refused := func(when string) {
		t.Helper()
		_, err := second.Lease(t.Context(), "study two")
		if !errors.Is(err, host.ErrLeased) {
			t.Fatalf("%s: %v", when, err)
		}
		oneLine(t, err, `"study one"`, fmt.Sprintf("pid %d of ", os.Getpid()), "since ", "loses the host after 4s of silence")
	}
	refused("at once")
	do(t, "drop")
	refused("after a drop")
	time.Sleep(patience + time.Second) // it is heard again, so it keeps the lease
	refused("later")

	// A sgtune on the machine itself is refused, too, by the same lease.
	_, err = host.NewLocal(host.LocalOptions{StateDir: filepath.Join(dir, "sgtune")}).Lease(t.Context(), "local study")
	if !errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), `"study one"`) {
		t.Errorf("on the machine itself: %v", err)
	}

	// Now it is silent for longer. Who comes then gets the host, and the first is told when it wants to start.
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	refused("just closed")
	var taken func() error
	eventually(t, "the lease is free after the silence", patience+10*time.Second, func() bool {
		taken, err = second.Lease(t.Context(), "study two")
		return err == nil
	})
	_ = release() // in vain: closed
	if err := taken(); err != nil {
		t.Error(err)
	}
}

// Nothing of a link stays: no socket, no agent, no master.
func TestNothingStays(t *testing.T) {
	need(t)
	o := options("gpu-host", t.TempDir())
	o.Work = t.TempDir()
	r := newRemote(o)
	p, err := r.Start(t.Context(), host.Command{Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Wait(t, p)
	release, err := r.Lease(t.Context(), "study")
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if n, err := r.Clean(t.Context(), false); n != 1 || err != nil {
		t.Errorf("%d runs removed, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"run", "lease"} {
		if list, err := os.ReadDir(filepath.Join(o.Work, dir)); err != nil || len(list) != 0 {
			t.Errorf("%s holds %v, %v", dir, list, err)
		}
	}
	eventually(t, "no process of ours is left", 5*time.Second, func() bool {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), o.Work) {
				return false
			}
		}
		return true
	})
}
