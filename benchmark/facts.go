package benchmark

import "math"

// facts is what all rows of a workload together say, gathered row by row in bounded memory.
type facts struct {
	input, output tokenCounts
	maxTokens     int // largest prompt + output
	requests      int // turns counted one by one
	texts         int // rows whose input is estimated
	open          int // rows whose output length is not the file's
	prefix        prefixTally
	gaps          gapTally
}

// gather goes through the rows once.
func gather(w *Workload) *facts {
	f := &facts{prefix: prefixTally{block: w.BlockTokens}}
	for _, r := range w.All() {
		f.add(r)
		if w.Timed && !r.Follows {
			f.gaps.add(r.At.Seconds())
		}
	}
	return f
}

func (f *facts) add(r Row) {
	input := r.Input()
	f.input.add(input)
	f.output.add(r.OutputTokens)
	f.maxTokens = max(f.maxTokens, input+r.OutputTokens)
	f.requests += r.Requests()
	if r.InputTokens == 0 {
		f.texts++
	}
	if r.Open {
		f.open++
	}
	f.prefix.add(r.HashIDs, input)
}

// gapTally gathers the gaps between arrivals, in whatever unit it is given.
type gapTally struct {
	n           int // arrivals
	first, last float64
	mean, m2    float64 // of the gaps: Welford's running mean and sum of squared deviations
}

func (g *gapTally) add(at float64) {
	g.n++
	if g.n == 1 {
		g.first, g.last = at, at
		return
	}
	gap := at - g.last
	g.last = at
	delta := gap - g.mean
	g.mean += delta / float64(g.n-1)
	g.m2 += delta * (gap - g.mean)
}

// rate is (arrivals-1)/duration, 0 when all arrive at once.
func (g *gapTally) rate() float64 {
	if g.last <= g.first {
		return 0
	}
	return float64(g.n-1) / (g.last - g.first)
}

// variation is the population standard deviation of the gaps over their mean; ok is false without a
// gap that is more than nothing.
func (g *gapTally) variation() (cv float64, ok bool) {
	if g.n < 2 || g.mean <= 0 {
		return 0, false
	}
	return math.Sqrt(g.m2/float64(g.n-1)) / g.mean, true
}

// scaled is the same in another unit: every time multiplied.
func (g gapTally) scaled(by float64) gapTally {
	g.first, g.last, g.mean, g.m2 = g.first*by, g.last*by, g.mean*by, g.m2*by*by
	return g
}
