package trial_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/freeport"
)

const gib = int64(1) << 30

// fakeHost is a host in memory: each process is a main and a child with a real HTTP server on
// loopback. It keeps what was done to it.
type fakeHost struct {
	clock  *host.Clock
	script script
	gpus   bool

	mu     sync.Mutex
	living map[int]*fakePart // by pid
	pid    int
	held   int64 // GPU bytes that outlive their process
	events []string
	port   net.Listener // somebody else's
	lost   bool         // the host cannot be read
	free   func() int   // a port for a server
	oom    int64
	read   int64 // bytes from storage
}

// script is how a fake server behaves.
type script struct {
	log       string        // printed at once
	load      time.Duration // real time until the HTTP server is there and the ready lines come
	dies      string        // printed instead of the ready lines; then the process ends
	exit      host.Exit
	silent    bool // never becomes ready, prints nothing more
	noReady   bool // no ready line
	health    int  // status of /health, 0 = 200
	noToken   bool
	hangAfter int    // generations answered; the rest and /health hang
	oomAfter  int    // generations answered; then oom is printed and the process dies
	oom       string // what it prints
	deaf      bool   // ignores SIGTERM
	sticky    bool   // GPU memory stays
	immortal  bool   // the child survives SIGKILL
	squats    bool   // the port stays taken
	refusals  int    // times /flush_cache answers 400
	kernelOOM bool   // dying raises the kernel's counter

	body     string        // body of /health
	lies     bool          // /health says 200 while it hangs
	old      bool          // as 0.4.x: /health is always 200, /health_generate tests something
	stalls   time.Duration // /health hangs so long from the HTTP start on; with old /health_generate
	tokens   time.Duration // no token so long from the HTTP start on
	ticks    string        // printed every 20 ms of real time while it loads, and while no token comes
	pauses   time.Duration // under load: from the 60th generation on nothing comes for so long, then all goes on
	failing  int           // one in so many streamed requests is answered with 500
	late     time.Duration // the ready line comes so long after the HTTP start
	diskRead bool          // its reads from storage grow
	version  string        // what /server_info says, "" = nothing is there

	refuseAfter int // flushes that are done; the later ones answer 400
}

func newFakeHost(t *testing.T, s script) *fakeHost {
	t.Helper()
	h := &fakeHost{clock: host.NewClock(time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC), 200), script: s, gpus: true, living: map[int]*fakePart{}, pid: 1000}
	h.free = func() int { return freeport.For(t) }
	t.Cleanup(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, p := range h.living {
			p.server.close()
		}
		if h.port != nil {
			h.port.Close()
		}
	})
	return h
}

func (h *fakeHost) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, fmt.Sprintf(format, args...))
}

func (h *fakeHost) happened() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

func (h *fakeHost) alive() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.living)
}

// fakePart is one process: a main with its server, or a child.
type fakePart struct {
	h      *fakeHost
	id     host.ID
	main   *fakePart // nil for the main itself
	server *fakeServer
	done   chan struct{}
	exit   host.Exit

	mu  sync.Mutex
	log []byte
}

func (h *fakeHost) Start(ctx context.Context, c host.Command) (host.Process, error) {
	if c.Argv[0] == "missing" {
		return nil, errors.New("start missing: executable file not found")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.LogPath, nil, 0o600); err != nil {
		return nil, err
	}
	port := ""
	for i, w := range c.Argv {
		if w == "--port" {
			port = c.Argv[i+1]
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, "start "+strings.Join(c.Argv, " "))
	main := h.part(c, nil)
	h.part(c, main)
	main.server = &fakeServer{h: h, part: main, script: h.script, port: port}
	main.print(h.script.log)
	main.server.start()
	return main, nil
}

// part adds a process; mu is held.
func (h *fakeHost) part(c host.Command, main *fakePart) *fakePart {
	h.pid++
	p := &fakePart{h: h, main: main, done: make(chan struct{}), id: host.ID{BootID: "boot", PID: h.pid, PGID: h.pid, StartTicks: uint64(h.pid), Marker: c.Marker, Argv: c.Argv}}
	if main != nil {
		p.id.PGID, p.server = main.id.PID, main.server
	}
	h.living[p.id.PID] = p
	return p
}

func (p *fakePart) print(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, text...)
}

func (p *fakePart) ID() host.ID           { return p.id }
func (p *fakePart) Done() <-chan struct{} { return p.done }
func (p *fakePart) Exit() host.Exit       { return p.exit }

func (p *fakePart) Log(_ context.Context, offset int64, limit int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.log[min(int64(len(p.log)), offset):]
	return slices.Clone(rest[:min(len(rest), limit)]), nil
}

// end takes the main process away, and its whole group when it was killed.
func (p *fakePart) end(exit host.Exit, group bool) {
	h := p.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid, q := range h.living {
		mine := q == p || group && q.id.PGID == p.id.PGID
		if !mine || q.main != nil && h.script.immortal {
			continue
		}
		delete(h.living, pid)
		q.exit = exit
		close(q.done)
	}
	if h.script.sticky {
		h.held = 72 * gib
	}
	if h.script.kernelOOM {
		h.oom++
		h.script.kernelOOM = false
	}
	if p.server != nil && !h.script.squats {
		p.server.close()
	}
}

func (p *fakePart) Stop(ctx context.Context, grace time.Duration) error {
	if grace > 0 && !p.h.script.deaf {
		p.h.note("term %d", p.id.PID)
		p.print("[2026-01-01 22:10:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n")
	} else if grace > 0 {
		p.h.note("term ignored")
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	p.h.note("kill group %d", p.id.PGID)
	p.end(host.Exit{Code: -1, Signal: 9, Known: true}, true)
	if p.h.script.immortal {
		return errors.New("still alive after SIGKILL")
	}
	return nil
}

func (h *fakeHost) Find(_ context.Context, marker string) ([]host.Process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []host.Process
	for _, p := range h.living {
		if marker == "" || p.id.Marker == marker {
			list = append(list, p)
		}
	}
	return list, nil
}

func (h *fakeHost) Usage(context.Context) (host.Usage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return host.Usage{}, errors.New("no route to host")
	}
	u := host.Usage{At: h.clock.Now(), MemTotal: 449e9, MemAvailable: 440e9, CgroupHeadroom: -1, OOMKills: h.oom, CgroupOOMKills: -1}
	if h.script.diskRead {
		h.read += 1 << 30
		u.DiskRead = h.read
	}
	if len(h.living) > 0 {
		u.MemAvailable -= 16e9
		if strings.Contains(h.script.log, "hierarchical KV host pool") {
			u.MemAvailable -= 384e9
		}
	}
	if !h.gpus {
		u.GPUNote = "no NVIDIA library"
		return u, nil
	}
	for i := range 2 {
		g := host.GPU{Index: i, UUID: "GPU-" + strconv.Itoa(i), Total: 96 * gib, Used: gib/2 + h.held}
		if len(h.living) > 0 {
			g.Used = 90*gib + int64(i)*gib
		}
		u.GPUs = append(u.GPUs, g)
	}
	return u, nil
}

func (h *fakeHost) Lease(context.Context, string) (func() error, error) {
	return func() error { return nil }, nil
}

func (h *fakeHost) Reach(_ context.Context, port int) (host.Endpoint, error) {
	if port == 0 {
		port = h.free()
	}
	e := host.Endpoint{Port: port, URL: "http://127.0.0.1:" + strconv.Itoa(port)}
	l, err := listen(port)
	if err != nil {
		e.Listening = true
		e.Owners = []int{4242}
		return e, nil
	}
	return e, l.Close()
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
}

// serve starts a server on a port of loopback that belongs to nobody's trial.
func serve(t *testing.T, h *fakeHost, port int) {
	t.Helper()
	p := &fakePart{h: h, done: make(chan struct{})}
	p.server = &fakeServer{h: h, part: p, script: h.script, port: strconv.Itoa(port)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.living) > 0 {
		return
	}
	h.living[1] = p
	p.server.start()
}
