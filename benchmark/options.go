package benchmark

import (
	"errors"
	"fmt"
	"time"
)

// Options is one load level: a closed loop at a fixed number of clients, or an open loop (Arrivals).
type Options struct {
	Clock           Clock         // nil = RealClock
	Endpoint        string        // where requests go, "" = EndpointGenerate
	Model           string        // name in requests to OpenAI's endpoints, "" = "default"
	ContinuousUsage bool          // ask OpenAI's endpoints for usage in every event (SGLang and vLLM know how): tokens are then booked when they come, however many an event carries
	Concurrency     int           // clients of the closed loop
	Arrivals        *Arrivals     // when requests are due, whoever is still waiting; nil = closed loop
	Ramp            time.Duration // clients of a closed loop start evenly spread over this; it counts as warm-up
	Warmup          time.Duration // shortest warm-up left out of the measured part; the steady rule may lengthen it
	WarmupRequests  int           // so many requests are sent, and answered, before the level begins
	WarmupFeed      Feed          // where those come from, nil = the level's own feed
	Window          time.Duration // length of one window, 0 = 10 s
	Cap             time.Duration // the measured part ends here at the latest, after whole windows; the warm-up is at most as long again; 0 = no cap
	Target          float64       // half-width of the 95% interval of throughput that ends the level early, 0.03; 0 = run to the cap
	Requests        int           // stop after so many requests were sent, later turns of conversations included; 0 = no limit
	Starts          int           // begin so many rows or conversations at most, and go on with those begun: clients that find none leave; 0 = no limit
	PromptTokens    int64         // stop once the server has prefilled so many prompt tokens (fill), 0 = no limit
	// Drain is how long requests in flight at the end may take before they are cut, 0 = 60 s. Where nothing
	// but Requests ends the level, all of them are wanted: there it is how long nothing at all may arrive.
	Drain   time.Duration
	Timeout time.Duration // longest time for one try of a request, 0 = none (the level's end cuts it)
	Retries int           // further tries after one that failed (not after wrong_tokens); latency counts from the first
	SLO     SLO           // what a request must meet to count in Report.GoodputS
	// Prune is asked after each window with the output tok/s of all windows so far, in scaled time of all but
	// the newest; true ends the level (Report.Pruned).
	Prune func(windows []float64) bool
	// Window callback for live progress; may be nil.
	OnWindow func(w Window)
	// CPUShare is asked once, at the end, for the share of its cores the client used; nil = this
	// process's own CPU over its GOMAXPROCS cores during the measured part.
	CPUShare func() float64
}

// Arrivals is an open loop: requests are due by an absolute schedule from the level's start, whether or not
// the server keeps up, and latency counts from the time they were due.
type Arrivals struct {
	Process     string  // ArrivalsPoisson, ArrivalsGamma, ArrivalsConstant or ArrivalsRecorded
	Rate        float64 // requests/s of host time; recorded times have their own
	Burstiness  float64 // gamma: shape of the gaps, 1/CV²; 1 = Poisson, below it bursts, above it regular; 0 = 1
	Speed       float64 // recorded: 2 = twice as fast; 0 = 1
	Spread      bool    // recorded: requests of one stamp are spread evenly up to the next stamp
	Seed        uint64  // the same seed draws the same schedule
	MaxInFlight int     // no more than this at once: the request waits, its latency grows and it counts as late; 0 = no limit
}

// Arrival processes.
const (
	ArrivalsPoisson  = "poisson"
	ArrivalsGamma    = "gamma"
	ArrivalsConstant = "constant"
	ArrivalsRecorded = "recorded"
)

// SLO are the limits of one request; a zero limit is none.
type SLO struct {
	TTFT, TPOT, E2E time.Duration
}

// met reports whether a complete request kept the limits.
func (s SLO) met(ttft, e2e time.Duration, output int) bool {
	late := s.TTFT > 0 && ttft > s.TTFT
	slow := s.TPOT > 0 && output > 1 && (e2e-ttft)/time.Duration(output-1) > s.TPOT
	long := s.E2E > 0 && e2e > s.E2E
	return !late && !slow && !long
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
	if o.Arrivals != nil {
		a, err := o.Arrivals.withDefaults()
		if err != nil {
			return o, err
		}
		o.Arrivals = &a
	}
	switch {
	case o.Concurrency < 1 && o.Arrivals == nil:
		return o, fmt.Errorf("%d clients: a load level needs at least one", o.Concurrency)
	case o.Cap <= 0 && o.Requests <= 0 && o.PromptTokens <= 0:
		return o, errors.New("a load level needs an end: a cap, a number of requests or of prompt tokens")
	case o.Target < 0:
		return o, fmt.Errorf("interval target %g: cannot be negative", o.Target)
	case o.Starts < 0:
		return o, fmt.Errorf("%d starts: cannot be negative", o.Starts)
	case o.Retries < 0:
		return o, fmt.Errorf("%d retries: cannot be negative", o.Retries)
	case o.Ramp < 0:
		return o, fmt.Errorf("ramp %v: cannot be negative", o.Ramp)
	}
	return o, nil
}

func (a Arrivals) withDefaults() (Arrivals, error) {
	if a.Burstiness == 0 {
		a.Burstiness = 1
	}
	if a.Speed == 0 {
		a.Speed = 1
	}
	switch a.Process {
	case ArrivalsPoisson, ArrivalsGamma, ArrivalsConstant:
		if !(a.Rate > 0) || a.Rate > 1e6 {
			return a, fmt.Errorf("arrival rate %g requests/s: it must be above 0 and at most 1e6", a.Rate)
		}
	case ArrivalsRecorded:
	default:
		return a, fmt.Errorf("no arrival process is called %q; there are %s, %s, %s and %s",
			a.Process, ArrivalsPoisson, ArrivalsGamma, ArrivalsConstant, ArrivalsRecorded)
	}
	switch {
	case !(a.Burstiness > 0) || a.Burstiness > 1e6:
		return a, fmt.Errorf("burstiness %g: it must be above 0 and at most 1e6", a.Burstiness)
	case !(a.Speed > 0) || a.Speed > 1e9:
		return a, fmt.Errorf("speed %g of recorded arrivals: it must be above 0", a.Speed)
	case a.MaxInFlight < 0:
		return a, fmt.Errorf("at most %d requests in flight: cannot be negative", a.MaxInFlight)
	}
	return a, nil
}

// clients is how many of them the level begins with.
func (o Options) clients() int {
	n := o.Concurrency
	if o.Arrivals != nil {
		n = o.Arrivals.ahead()
	}
	if o.Requests > 0 {
		n = min(n, o.Requests) // the others would find nothing to send
	}
	if o.Starts > 0 {
		n = min(n, o.Starts)
	}
	return n
}

// counted reports whether the level's end is a number of requests or prompt tokens: all of them are measured
// then, and no part of its own is.
func (o Options) counted() bool { return o.Requests > 0 || o.PromptTokens > 0 }

// windows is how many whole windows fit under the cap, 0 = no limit.
func (o Options) windows() int {
	if o.Cap <= 0 {
		return 0
	}
	return max(1, int(o.Cap/o.Window))
}

// warmupWindows is how many windows begin before the warm-up and the ramp end.
func (o Options) warmupWindows() int {
	return int((max(o.Warmup, o.Ramp) + o.Window - 1) / o.Window)
}
