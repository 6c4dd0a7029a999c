package benchmark

import (
	"errors"
	"fmt"
	"time"
)

// Options is one load level: closed loop at a fixed number of clients.
type Options struct {
	Clock        Clock         // nil = RealClock
	Concurrency  int           // clients
	Warmup       time.Duration // shortest warm-up left out of the measured part; the steady rule may lengthen it
	Window       time.Duration // length of one window, 0 = 10 s
	Cap          time.Duration // the measured part ends here at the latest, after whole windows; the warm-up is at most as long again; 0 = no cap
	Target       float64       // half-width of the 95% interval of throughput that ends the level early, 0.03; 0 = run to the cap
	Requests     int           // stop after so many requests were sent, 0 = no limit
	PromptTokens int64         // stop once the server has prefilled so many prompt tokens (fill), 0 = no limit
	Drain        time.Duration // how long requests in flight at the end may take before they are cut, 0 = 60 s
	Timeout      time.Duration // longest time for one request, 0 = none (the level's end cuts it)
	SLO          SLO           // what a request must meet to count in Report.GoodputS
	// Prune is asked after each window with the windows' output tok/s since the warm-up; true ends the
	// level (Report.Pruned).
	Prune func(windows []float64) bool
	// Window callback for live progress; may be nil.
	OnWindow func(w Window)
	// CPUShare is asked once, at the end, for the share of its cores the client used; nil = this
	// process's own CPU over GOMAXPROCS cores during the measured part.
	CPUShare func() float64
}

// SLO are the limits of one request; a zero limit is none.
type SLO struct {
	TTFT, TPOT time.Duration
}

// met reports whether a complete request kept the limits.
func (s SLO) met(q Request) bool {
	late := s.TTFT > 0 && q.TTFT > s.TTFT
	slow := s.TPOT > 0 && q.Output > 1 && (q.E2E-q.TTFT)/time.Duration(q.Output-1) > s.TPOT
	return !late && !slow
}

const (
	defaultWindow = 10 * time.Second
	defaultDrain  = 60 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	if o.Clock == nil {
		o.Clock = RealClock()
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.Drain <= 0 {
		o.Drain = defaultDrain
	}
	switch {
	case o.Concurrency < 1:
		return o, fmt.Errorf("%d clients: a load level needs at least one", o.Concurrency)
	case o.Cap <= 0 && o.Requests <= 0 && o.PromptTokens <= 0:
		return o, errors.New("a load level needs an end: a cap, a number of requests or of prompt tokens")
	case o.Target < 0:
		return o, fmt.Errorf("interval target %g: cannot be negative", o.Target)
	}
	return o, nil
}

// windows is how many whole windows fit under the cap, 0 = no limit.
func (o Options) windows() int {
	if o.Cap <= 0 {
		return 0
	}
	return max(1, int(o.Cap/o.Window))
}

// warmupWindows is how many windows begin before the warm-up ends.
func (o Options) warmupWindows() int {
	return int((o.Warmup + o.Window - 1) / o.Window)
}
