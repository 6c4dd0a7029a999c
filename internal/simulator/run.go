package simulator

import (
	"fmt"
	"math"
	"slices"

	"sgtune/sglang"
)

// Options shape one virtual-time launch. Zero values: profile kimi-8x96, no canary, 60 s of settling, 300 s measured.
type Options struct {
	Profile  string
	StartupS float64
	RAMBytes float64 // available host memory before launch; 0 = 440e9
	Canary   bool    // worst-case prefill first: the longest prompts, two full chunks a step
	SettleS  float64 // simulated seconds of load before the measured window
	MeasureS float64 // simulated seconds measured
	Fill     int     // prompt tokens to admit before the measured window (at least SettleS of load)

	// NoiseFree takes all chance out: the launch's own factors are 1 and steps take their mean time.
	// LaunchNoise is the relative standard deviation of launches among each other, 0 = the profile's.
	NoiseFree   bool
	LaunchNoise float64
}

// Result is what one launch showed. Memory is in GiB, times in simulated seconds.
type Result struct {
	Failure *Failure // nil when it lived
	Memory  sglang.Observation
	ReadyS  float64

	OutputTokS, RequestsS     float64
	MeanRunning, MeanResident float64 // running at once; tokens held per running request
	HitRatio                  float64 // cached / prompt tokens
	HostHitTokens             int
	Retractions, Retracted    int
	LowWaterGiB               float64 // least free memory of the smallest rank
	TTFTp50, TTFTp95          float64
	MaxStall, MeanStall       float64 // longest gap between two tokens of one request: largest, mean over requests
	Finished                  int
	EndS                      float64
}

// Run is a whole closed-loop launch in virtual time: the same model that sim-server paces, without HTTP. An
// error means a bad argument; a launch that dies is a Result with Failure.
func Run(cfg sglang.Config, w Workload, seed int64, opts Options) (Result, error) {
	if len(w.Rows) == 0 || w.Clients <= 0 {
		return Result{}, fmt.Errorf("run workload %q: no rows or no clients", w.Name)
	}
	v, err := Launch(cfg, seed, opts)
	if err != nil {
		return Result{}, err
	}
	res := Result{Failure: v.failure, Memory: v.Memory(), LowWaterGiB: v.l.b.AfterGraphGiB}
	if res.Failure != nil {
		return res, nil //nolint:nilerr // a launch that fails is a result
	}
	res.ReadyS = v.ready
	d := &driver{e: v.e, w: &w, seed: uint64(seed)}
	d.run(&res, opts)
	return res, nil
}

// driver is the closed loop: every finished request is replaced at once.
type driver struct {
	e    *Engine
	w    *Workload
	seed uint64
	next int

	measuring    bool
	from         float64
	ttft, stalls []float64
	finished     int
}

func (d *driver) submit(at float64) {
	k, pass := d.next%len(d.w.Rows), d.next/len(d.w.Rows)
	d.next++
	d.e.Submit(&Request{Prompt: d.w.prompt(k, pass, d.seed), MaxNew: d.w.Rows[k].Out, Arrival: at})
}

// until advances the loop to a time, or until stop says so.
func (d *driver) until(to float64, stop func() bool) {
	for d.e.failure == nil && d.e.now < to && !stop() {
		next := d.e.NextEvent()
		if math.IsInf(next, 1) {
			next = d.e.now
		}
		d.e.Advance(min(next, to))
		for _, r := range d.e.takeFinished() {
			if d.measuring && r.FirstAt >= d.from {
				d.ttft = append(d.ttft, r.FirstAt-r.Arrival)
				d.stalls = append(d.stalls, r.MaxGap)
			}
			if d.measuring {
				d.finished++
			}
			d.submit(d.e.now)
		}
		if next > to {
			return
		}
	}
}

func (d *driver) run(res *Result, opts Options) {
	settle, measure := opts.SettleS, opts.MeasureS
	if settle == 0 {
		settle = 60
	}
	if measure == 0 {
		measure = 300
	}
	e := d.e
	if opts.Canary {
		d.canary()
	}
	for range d.w.Clients {
		d.submit(e.now)
	}
	d.until(e.now+settle, func() bool { return false })
	d.until(e.now+3600, func() bool { return e.counters.PromptTokens >= opts.Fill })
	before := e.counters
	d.from, d.measuring = e.now, true
	d.until(d.from+measure, func() bool { return false })
	d.fold(res, before)
}

// canary prefills the workload's longest prompts until two full chunks were computed.
func (d *driver) canary() {
	longest := 0
	for i, r := range d.w.Rows {
		if r.In > d.w.Rows[longest].In {
			longest = i
		}
	}
	chunk := d.e.b.Chunk
	if chunk < 0 {
		chunk = d.e.b.maxPrefillTokens
	}
	n := 2*chunk/d.w.Rows[longest].In + 1
	for i := range n {
		d.e.Submit(&Request{Prompt: d.w.prompt(longest, 1000+i, d.seed), MaxNew: 8, Arrival: d.e.now})
	}
	for d.e.failure == nil && !d.e.Idle() {
		d.e.Advance(d.e.NextEvent())
	}
	d.e.takeFinished()
}

func (d *driver) fold(res *Result, before Counters) {
	e, c := d.e, d.e.counters
	res.Failure = e.failure
	res.EndS = e.now
	res.LowWaterGiB = e.freeGiB()
	res.Retractions, res.Retracted = c.Retractions, c.RetractedRequests
	if prompt := c.PromptTokens - before.PromptTokens; prompt > 0 {
		res.HitRatio = float64(c.CachedTokens-before.CachedTokens) / float64(prompt)
	}
	res.HostHitTokens = c.HostTokens - before.HostTokens
	span := e.now - d.from
	if span <= 0 {
		return
	}
	res.OutputTokS = float64(c.OutputTokens-before.OutputTokens) / span
	res.Finished = d.finished
	res.RequestsS = float64(d.finished) / span
	res.MeanRunning = (c.RunningS - before.RunningS) / span
	if res.MeanRunning > 0 {
		res.MeanResident = (c.UsedS - before.UsedS) / span / res.MeanRunning
	}
	slices.Sort(d.ttft)
	res.TTFTp50, res.TTFTp95 = nearestRank(d.ttft, 0.50), nearestRank(d.ttft, 0.95)
	for _, s := range d.stalls {
		res.MaxStall = math.Max(res.MaxStall, s)
		res.MeanStall += s / float64(len(d.stalls))
	}
}

func nearestRank(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}
