package simulator

import "sgtune/sglang"

// Virtual is one launch in virtual time under a load of the caller's own: Run's model without Run's closed
// loop. It is not safe for concurrent use. Times are simulated seconds from process start.
type Virtual struct {
	l       *launch
	e       *Engine
	failure *Failure
	ready   float64
}

// Launch sizes and starts one launch. An error means a bad argument or a combination that SGLang refuses
// (*RefusedError); a start that dies is a Virtual whose Failure says why, and takes no load.
func Launch(cfg sglang.Config, seed int64, opts Options) (*Virtual, error) {
	l, err := newLaunch(cfg, uint64(seed), opts)
	if err != nil {
		return nil, err
	}
	v := &Virtual{l: l, failure: l.b.startFailure}
	if v.failure == nil {
		ram := opts.RAMBytes
		if ram == 0 {
			ram = defaultRAM
		}
		v.failure = l.d.hostRefusal(&l.s, &l.b, ram-l.p.RuntimeGB*1e9*float64(l.s.TP))
	}
	v.ready = l.timeline().end(v.failure)
	if v.failure != nil {
		return v, nil //nolint:nilerr // a launch that fails is a result
	}
	if opts.LaunchNoise > 0 {
		l.p.NoiseRun = opts.LaunchNoise
	}
	if opts.NoiseFree {
		l.p.NoiseRun, l.p.NoiseStep = 0, 0
	}
	v.e = newEngine(&l.p, &l.s, &l.b, uint64(seed), v.ready)
	if opts.NoiseFree {
		v.e.frag = 1
	}
	return v, nil
}

// end is when a start is over: ready, or where it dies.
func (s start) end(failure *Failure) float64 {
	for _, e := range s.entries {
		if failure != nil && (e.mark == markFail || e.mark == markHostCheck && failure.Phase == sglang.PhaseHostPool) {
			return e.at
		}
	}
	return s.ready
}

// Failure is what ended the launch, nil while it lives.
func (v *Virtual) Failure() *Failure {
	if v.failure == nil && v.e != nil {
		return v.e.failure
	}
	return v.failure
}

// Memory is what the start-up log says of memory, as far as the start got.
func (v *Virtual) Memory() sglang.Observation { return v.l.observation() }

// Ready is when the server was ready, of a start that died when it died.
func (v *Virtual) Ready() float64 { return v.ready }

// Now is the simulated time.
func (v *Virtual) Now() float64 {
	if v.e == nil {
		return v.ready
	}
	return v.e.now
}

// FreeGiB is the free GPU memory of the smallest rank now: peaks stay reserved, so it is the low-water mark too.
func (v *Virtual) FreeGiB() float64 {
	if v.e == nil {
		return max(v.l.b.AfterGraphGiB, 0)
	}
	return v.e.freeGiB()
}

// OwnRAM is the host memory of all ranks beside the host pools, bytes.
func (v *Virtual) OwnRAM() float64 { return v.l.p.RuntimeGB * 1e9 * float64(v.l.s.TP) }

// Counters are the engine's so far.
func (v *Virtual) Counters() Counters { return v.e.counters }

// Submit queues a request at a time that was reached, and returns it.
func (v *Virtual) Submit(p Prompt, out int, at float64) *Request {
	r := &Request{Prompt: p, MaxNew: out, Arrival: at}
	v.e.Submit(r)
	return r
}

// Advance goes on to the end of the next step or to a time, whichever comes first, and returns the time
// reached. Requests that ended on the way are Done.
func (v *Virtual) Advance(to float64) (reached float64) {
	if v.e.step.kind == stepNone {
		v.e.Advance(v.e.now) // choose the next step
	}
	reached = min(v.e.NextEvent(), to)
	v.e.Advance(reached)
	v.e.finished = v.e.finished[:0]
	return reached
}

// Idle reports that nothing runs and nothing waits.
func (v *Virtual) Idle() bool { return v.e.Idle() }

// Flush aborts every request and empties both tiers of the cache.
func (v *Virtual) Flush() {
	v.Abort()
	v.e.cache.flush()
}

// Abort ends every request at once.
func (v *Virtual) Abort() {
	v.e.abort(func(*Request) bool { return true })
	v.e.takeFinished()
}

// Prompt is the prompt of row k in a pass over the rows: equal rows, passes and salts make equal prompts, and
// what rows share they share within a pass.
func (w *Workload) Prompt(k, pass int, salt uint64) Prompt { return w.prompt(k, pass, salt) }
