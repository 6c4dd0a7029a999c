package tuner

import (
	"fmt"
	"math"

	"sgtune/sglang"
	"sgtune/trial"
)

// Rules of the frontier, as events name them.
const (
	RuleFrontier = "frontier"    // proven: at or above a failure
	RuleLine     = "learnt line" // suggested by low-water marks
)

const (
	memFraction  = "mem-fraction-static"
	chunkedSize  = "chunked-prefill-size"
	bytesPerGiB  = 1 << 30
	unlimitedTok = 131_072 // stands for chunked-prefill-size -1: the whole prompt at once
)

// How the learnt line is drawn from low-water marks.
const (
	lineSafety   = 1.1  // what was seen in one short window is not the worst
	lineReserve  = 0.25 // GiB kept beside that
	fixedShare   = 0.5  // share of the need that does not shrink with the chunk
	valueStrikes = 3    // failures alike that close a categorical value
)

// Frontier is what the trials so far prove or suggest about memory. It knows two kinds of limits.
//
// Check refuses what is proven: nothing at or above a failure of the same resource that the
// configuration is to blame for. For GPU memory "at or above" means a fraction and a prefill chunk
// no smaller than the failed ones; for host RAM a host pool no smaller; for a pool without room
// for any token (kv_pool_nonpositive) the other way round, a fraction no larger.
//
// Cautious refuses besides what the learnt line suggests: less free memory after graph capture
// than prefill is expected to need. The need is measured: free memory after graphs minus the
// low-water mark under load (reference: activations of one chunked prefill, workspaces and
// fragmentation are not in SGLang's static budget). A larger chunk is taken to need
// proportionally more, a smaller one at least half, so both guesses err on the safe side; but no guess
// about a larger chunk demands more than the roomiest launch that survived had, or nothing would ever
// try one. A launch that survived proves its own free memory enough for its chunk and smaller ones.
type Frontier struct {
	free     func(sglang.Config) (float64, bool) // GiB free after graphs, from a launch's log
	fraction float64                             // resolved value where a configuration has none
	chunk    float64
	survived []memoryPoint
	oom      []*trial.Trial
	starved  []*trial.Trial // no room for the KV pool
	hostOOM  []*trial.Trial
	closed   []closedValue
}

type memoryPoint struct {
	chunk       float64
	free, need  float64 // GiB after graphs, GiB taken of it under load
	hasLowWater bool
}

type closedValue struct {
	knob, value, failure string
}

// NewFrontier learns from trials; confirmation launches count like any other.
func NewFrontier(history []*trial.Trial) *Frontier {
	f := &Frontier{free: func(sglang.Config) (float64, bool) { return 0, false }}
	for _, t := range history {
		if !t.State.Finished() || t.Void != "" {
			continue
		}
		if line, err := sglang.Calibrate(t.Memory); err == nil && line.FreeGiB > 0 {
			f.free = func(c sglang.Config) (float64, bool) { return line.Predict(c).FreeAfterGraphGiB.Mid, true }
			f.fraction, f.chunk = line.Fraction, float64(line.ChunkPrefill)
		}
	}
	ran := lastRuns(history)
	for i, t := range history {
		if !t.State.Finished() || t.Void != "" || (blamed(t) && ran[Key(t.Config)] > i) {
			continue // the same ran later: a failure under too hard a canary is no proof once the smaller one was survived
		}
		f.learn(t)
	}
	f.closed = closedValues(history)
	return f
}

// lastRuns are the positions in history of each configuration's last launch that counts.
func lastRuns(history []*trial.Trial) map[string]int {
	last := map[string]int{}
	for i, t := range history {
		if counts(t) {
			last[Key(t.Config)] = i
		}
	}
	return last
}

func (f *Frontier) learn(t *trial.Trial) {
	switch {
	case counts(t):
		line, err := sglang.Calibrate(t.Memory)
		if err != nil || line.FreeGiB <= 0 {
			return
		}
		p := memoryPoint{chunk: f.chunkOf(t.Config), free: line.FreeGiB}
		if t.LowWater >= 0 {
			p.hasLowWater = true
			p.need = math.Max(0, p.free-float64(t.LowWater)/bytesPerGiB)
		}
		f.survived = append(f.survived, p)
	case !blamed(t):
	case t.Verdict.Outcome == trial.GPUOOM && t.Verdict.Cause == "kv_pool_nonpositive":
		f.starved = append(f.starved, t)
	case t.Verdict.Outcome == trial.GPUOOM:
		f.oom = append(f.oom, t)
	case t.Verdict.Outcome == trial.HostOOM:
		f.hostOOM = append(f.hostOOM, t)
	}
}

// Check refuses a configuration at or above a proven failure; nil means not refused.
func (f *Frontier) Check(c sglang.Config) error {
	for _, t := range f.oom {
		if f.fractionOf(c) >= f.fractionOf(t.Config) && f.chunkOf(c) >= f.chunkOf(t.Config) {
			return refuse(RuleFrontier, "%s %s with %s %s is at or above trial %d (%s, %s), which ended %s / %s",
				memFraction, number(f.fractionOf(c)), chunkedSize, number(f.chunkOf(c)),
				t.Number, number(f.fractionOf(t.Config)), number(f.chunkOf(t.Config)), t.Verdict.Outcome, t.Verdict.Cause)
		}
	}
	for _, t := range f.starved {
		if f.fractionOf(c) <= f.fractionOf(t.Config) && c.Text(kvDtype) == t.Config.Text(kvDtype) {
			return refuse(RuleFrontier, "%s %s is at or below trial %d (%s), which had no room for the KV pool",
				memFraction, number(f.fractionOf(c)), t.Number, number(f.fractionOf(t.Config)))
		}
	}
	for _, t := range f.hostOOM {
		if hostPool(c) >= hostPool(t.Config) && hostPool(c) > 0 {
			return refuse(RuleFrontier, "a host pool of %s is at or above trial %d (%s), which ended %s / %s",
				number(hostPool(c)), t.Number, number(hostPool(t.Config)), t.Verdict.Outcome, t.Verdict.Cause)
		}
	}
	for _, v := range f.closed {
		if _, has := c[v.knob]; has && c.Text(v.knob) == v.value {
			return refuse(RuleFrontier, "%s %s ended %s %d times and never ran", v.knob, v.value, v.failure, valueStrikes)
		}
	}
	return nil
}

// Cautious refuses what Check does and what lies below the learnt line.
func (f *Frontier) Cautious(c sglang.Config) error {
	if err := f.Check(c); err != nil {
		return err
	}
	free, ok := f.free(c)
	need, known := f.need(f.chunkOf(c))
	if ok && known && free < need {
		return refuse(RuleLine, "%s %s leaves %.2f GiB after graphs, prefill with %s %s is expected to need %.2f GiB",
			memFraction, number(f.fractionOf(c)), free, chunkedSize, number(f.chunkOf(c)), need)
	}
	return nil
}

// Margin is how far a configuration stays from the learnt line: GiB free after graphs beyond the
// expected need; ok is false while nothing is known about either.
func (f *Frontier) Margin(c sglang.Config) (gib float64, ok bool) {
	free, ok := f.free(c)
	if !ok {
		return 0, false
	}
	need, known := f.need(f.chunkOf(c))
	if !known {
		need = 0
	}
	return free - need, true
}

// need is the expected demand on free memory after graphs at a prefill chunk, GiB.
func (f *Frontier) need(chunk float64) (gib float64, known bool) {
	nearestGap, enough, roomiest := math.Inf(1), math.Inf(1), 0.0
	for _, p := range f.survived {
		roomiest = math.Max(roomiest, p.free)
	}
	for _, p := range f.survived {
		if p.chunk >= chunk {
			enough = math.Min(enough, p.free)
		}
		if !p.hasLowWater || p.chunk <= 0 {
			continue
		}
		gap := math.Abs(math.Log(chunk / p.chunk))
		want := p.need*scaled(chunk/p.chunk)*lineSafety + lineReserve
		if chunk > p.chunk {
			want = math.Min(want, roomiest)
		}
		switch {
		case gap < nearestGap-1e-9:
			gib, nearestGap, known = want, gap, true
		case gap <= nearestGap+1e-9:
			gib = math.Max(gib, want)
		}
	}
	for _, t := range f.oom {
		if free, ok := f.freeAt(t); ok && f.chunkOf(t.Config) > 0 {
			gib, known = math.Max(gib, free*scaled(chunk/f.chunkOf(t.Config))), true
		}
	}
	return math.Min(gib, enough), known
}

// scaled is the growth of the need with the chunk: proportional upwards, half of it fixed downwards.
func scaled(ratio float64) float64 {
	if ratio >= 1 {
		return ratio
	}
	return fixedShare + (1-fixedShare)*ratio
}

func (f *Frontier) freeAt(t *trial.Trial) (float64, bool) {
	if line, err := sglang.Calibrate(t.Memory); err == nil && line.FreeGiB > 0 {
		return line.FreeGiB, true
	}
	return f.free(t.Config)
}

func (f *Frontier) fractionOf(c sglang.Config) float64 {
	if v, ok := c.Float(memFraction); ok {
		return v
	}
	return f.fraction
}

func (f *Frontier) chunkOf(c sglang.Config) float64 {
	v, ok := c.Float(chunkedSize)
	if !ok {
		v = f.chunk
	}
	if v < 0 {
		return unlimitedTok
	}
	return v
}

// hostPool is the size of a configuration's host pool in the unit it is given in (GB a rank, or
// times the device pool), 0 without one.
func hostPool(c sglang.Config) float64 {
	if v, ok := c.Float(hicacheSize); ok {
		return v
	}
	v, _ := c.Float("hicache-ratio")
	return v
}

// closedValues are categorical values that failed alike valueStrikes times by their own fault, not
// for memory, and under which nothing ever ran while another value of the same knob did.
func closedValues(history []*trial.Trial) []closedValue {
	strikes, ran := map[closedValue]int{}, map[closedValue]bool{}
	var order []closedValue
	for _, t := range history {
		failure := fmt.Sprintf("%s / %s", t.Verdict.Outcome, t.Verdict.Cause)
		memory := t.Verdict.Outcome == trial.GPUOOM || t.Verdict.Outcome == trial.HostOOM
		for _, knob := range t.Config.Names() {
			if _, numeric := t.Config.Float(knob); numeric {
				continue
			}
			value := closedValue{knob: knob, value: t.Config.Text(knob)}
			if counts(t) {
				ran[value] = true
			}
			if blamed(t) && !memory {
				v := value
				v.failure = failure
				if strikes[v]++; strikes[v] == valueStrikes {
					order = append(order, v)
				}
			}
		}
	}
	var out []closedValue
	for _, v := range order {
		if !ran[closedValue{knob: v.knob, value: v.value}] && ranOtherwise(history, v) {
			out = append(out, v)
		}
	}
	return out
}

func ranOtherwise(history []*trial.Trial, v closedValue) bool {
	for _, t := range history {
		if counts(t) && t.Config.Text(v.knob) != v.value {
			return true
		}
	}
	return false
}

// cautious adds the learnt line to what a problem admits.
func cautious(p Problem) func(sglang.Config) error {
	f := NewFrontier(p.History)
	return func(c sglang.Config) error {
		if err := p.Admit(c); err != nil {
			return err
		}
		err := f.Cautious(c)
		if err != nil && p.Refused != nil {
			p.Refused(c, err)
		}
		return err
	}
}

func refuse(rule, format string, args ...any) error {
	return &Infeasible{Rule: rule, Text: fmt.Sprintf(format, args...)}
}

func number(v float64) string { return sglang.FormatValue(v) }
