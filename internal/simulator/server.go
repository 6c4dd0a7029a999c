package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sgtune/sglang"
)

// state is what /health goes by.
type state int32

const (
	stateLoading state = iota
	stateStarting
	stateReady
	stateDraining
)

// server is one sim-server process after its arguments were accepted.
type server struct {
	l      *launch
	clock  pacedClock
	log    *logWriter
	access io.Writer
	claims *claims
	child  *child
	state  atomic.Int32
	readyS atomic.Value // float64: simulated time of readiness

	mu      sync.Mutex // guards the engine, frozen, streams and what book counts
	eng     *Engine
	frozen  bool
	streams []*stream
	wake    chan struct{}
	book    *book // nil without --enable-metrics

	ids  atomic.Int64
	info []byte
}

// Main runs sim-server: it speaks one version of SGLang (--sim-version) on the command line, in the log (standard error), over HTTP and
// in how it dies. The result is the exit status; a simulated crash kills the whole process with SIGKILL as
// SGLang does, so call it only from a process of its own.
func Main(ctx context.Context, args []string, stdout io.Writer) int {
	start := time.Now()
	if len(args) > 0 && args[0] == "--sim-child" {
		return childMain(ctx, os.Stdin)
	}
	a, err := ParseArgs(args)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		fmt.Fprint(os.Stderr, refusalTraceback(err))
		return 1
	} else if err != nil {
		d, badVersion := dialectOf(args)
		if badVersion != nil {
			d = newestDialect()
		}
		fmt.Fprintf(os.Stderr, "%s\n%v\n", d.usageText(), err)
		return 2
	}
	if a.help {
		_, _ = fmt.Fprintln(stdout, a.d.helpText())
		return 0
	}
	l, err := a.launch()
	if err != nil {
		fmt.Fprint(os.Stderr, refusalTraceback(err))
		return 1
	}
	// Until it is ready a real server has no handler: SIGTERM ends the main process at once.
	signal.Reset(syscall.SIGTERM, syscall.SIGINT)
	if l.s.Sim.Faults.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	s := &server{
		l: l, clock: pacedClock{start, l.s.Sim.TimeScale}, access: stdout,
		log: newLogWriter(l.d, os.Stderr, start), wake: make(chan struct{}, 1),
	}
	s.readyS.Store(0.0)
	if l.s.Metrics {
		s.book = newBook(l.d)
	}
	return s.run(ctx)
}

func (s *server) run(ctx context.Context) int {
	c, err := startChild(&s.l.s.Sim.Faults)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.child = c
	s.claims = openClaims(c.pid(), s.l.s.TP, &s.l.s.Sim.Faults)
	ctx, cancel := context.WithCancel(ctx)
	exits := make(chan func() int, 1)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	for _, e := range s.l.timeline().entries {
		if err := s.waitStart(ctx, e.at); err != nil {
			return s.lostChild()
		}
		if e.mark == markBind {
			ln, code := s.bind(ctx, e.at)
			if ln == nil {
				return code
			}
			wg.Go(func() { s.serve(ctx, ln) })
			wg.Go(func() {
				if f := s.pace(ctx); f != nil {
					exits <- func() int { return s.crash(ctx, f) }
				}
			})
		}
		if code, done := s.play(ctx, e); done {
			return code
		}
	}
	return s.serveUntilEnd(ctx, exits)
}

// waitStart waits for a moment of the start; an error means that the child died or ctx ended.
func (s *server) waitStart(ctx context.Context, at float64) error {
	d := s.clock.real(at - s.clock.now())
	if d < tick {
		return ctx.Err()
	}
	s.log.flush()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.child.done:
		return errChildDied
	}
}

var errChildDied = errors.New("scheduler child died")

// play does one moment of the start; done means that the process ends with code.
func (s *server) play(ctx context.Context, e entry) (code int, done bool) {
	switch {
	case e.raw:
		s.log.raw(e.text)
	case e.perRank != nil:
		for _, r := range s.l.sortedRanks(uint64(e.at)) {
			s.log.line(e.at, r, "%s", e.perRank(r))
		}
	case e.text != "":
		rank := -1
		if e.rank0 {
			rank = 0
		}
		s.log.line(e.at, rank, "%s", e.text)
	}
	if e.freeGiB > 0 && (!e.raw || s.claims.stale()) {
		s.claims.setGPU(&s.l.p, &s.l.b, e.freeGiB)
	}
	own := s.l.p.RuntimeGB * 1e9 * float64(s.l.s.TP)
	if e.hostGB > 0 {
		// Up to 0.5.18 each rank's request is checked alone: together they may take more than there is.
		if own+e.hostGB*1e9 > availableRAM(s.claims) {
			return s.dieLoading(ctx, e.at, kernelKill(sglang.PhaseHostPool)), true
		}
		s.claims.setRAM(own + e.hostGB*1e9)
	}
	switch e.mark {
	case markHostCheck:
		available := availableRAM(s.claims) - own
		if s.l.d.release >= r0523 {
			s.eachRank(e.at, "HiCache memory headroom: host %.1f GiB, cgroup 8589934586.0 GiB", (available-hostReserve)/gib)
		}
		if f := s.l.d.hostRefusal(&s.l.s, &s.l.b, available); f != nil {
			return s.dieLoading(ctx, e.at, f), true
		}
	case markReady:
		s.ready(e.at)
	case markFail:
		return s.dieLoading(ctx, e.at, e.failure), true
	case markHang:
		s.log.flush()
		select {
		case <-ctx.Done():
		case <-s.child.done:
		}
		return s.lostChild(), true
	case markNone, markPinned, markBind:
		if e.freeGiB > 0 && s.claims.ram == 0 {
			s.claims.setRAM(own)
		}
	}
	return 0, false
}

func (s *server) eachRank(at float64, format string, a ...any) {
	for _, r := range s.l.sortedRanks(uint64(at) + 7) {
		s.log.line(at, r, format, a...)
	}
}

// bind opens the port, only now, as SGLang does; a taken port ends the process.
func (s *server) bind(ctx context.Context, at float64) (net.Listener, int) {
	for _, text := range []string{fmt.Sprintf("INFO:     Started server process [%d]", os.Getpid()), "INFO:     Waiting for application startup.", "INFO:     Application startup complete."} {
		s.log.line(at, -1, "%s", text)
	}
	addr := net.JoinHostPort(s.l.s.Host, fmt.Sprint(s.l.s.Port))
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err == nil && s.l.s.Sim.Faults.PortTaken {
		_ = ln.Close()
		err = syscall.EADDRINUSE
	}
	if err != nil {
		s.log.line(at, -1, "ERROR:    [Errno 98] error while attempting to bind on address ('%s', %d): address already in use", s.l.s.Host, s.l.s.Port)
		s.log.line(at, -1, "INFO:     Waiting for application shutdown.")
		s.log.line(at, -1, "INFO:     Application shutdown complete.")
		s.quit()
		return nil, 1
	}
	s.state.Store(int32(stateStarting))
	s.eng = newEngine(&s.l.p, &s.l.s, &s.l.b, launchSeed(s.l.s.Sim.Seed), at)
	s.eng.observer = s.log
	s.info = s.l.infoJSON()
	s.log.line(at, -1, "INFO:     Uvicorn running on http://%s (Press CTRL+C to quit)", addr)
	info := "/model_info"
	if s.l.d.release < r0510 {
		info = "/get_model_info"
	}
	s.log.line(at, -1, "INFO:     127.0.0.1:43679 - \"GET %s HTTP/1.1\" 200 OK", info)
	if !s.l.s.SkipWarmup {
		s.eng.Submit(&Request{ID: "warmup", Prompt: NewPrompt([]uint32{1, 2, 3, 4, 5, 6, 7}), MaxNew: 8, Arrival: at})
	}
	s.log.flush()
	return ln, 0
}

func (s *server) ready(at float64) {
	f := &s.l.s.Sim.Faults
	s.mu.Lock()
	s.eng.Advance(at) // the warm-up is over, however late the pace loop is
	s.eng.failAfter, s.eng.extraMS = at+f.PrefillOOMAt, 1000*f.LongPrefillS
	s.mu.Unlock()
	s.child.arm()
	s.readyS.Store(at)
	s.state.Store(int32(stateReady))
	s.log.line(at, -1, "INFO:     127.0.0.1:49431 - \"POST /generate HTTP/1.1\" 200 OK")
	if !f.NoReadyLine {
		s.log.line(at, -1, "The server is fired up and ready to roll!")
	}
	s.log.flush()
}

func (s *server) serve(ctx context.Context, ln net.Listener) {
	h := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	_ = h.Serve(ln) // ends by Close; a listener that breaks looks like a dead server, which is the truth
}
