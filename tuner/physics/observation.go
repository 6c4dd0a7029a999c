package physics

import "math"

// Unknown is a figure that a trial did not show.
var Unknown = math.NaN()

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Status is how a trial ended, as far as the search may learn from it.
type Status uint8

// Statuses.
const (
	OK        Status = iota // measured
	Pruned                  // measured in part: the value is a bound that carries its own noise
	Started                 // came up, was not measured
	Crashed                 // did not come up, by the configuration's fault and not for GPU memory
	StartOOM                // ran out of GPU memory before it was ready
	LoadOOM                 // ran out of GPU memory under load
	HostOOM                 // ran out of host memory
	Worthless               // ran, but meets no limit that counts (SLO): no value, no failure
)

// Observation is what one trial showed. Figures that its log or its replay did not give are Unknown.
type Observation struct {
	Point  Point
	Status Status
	Value  float64 // objective, higher is better; Unknown without one
	Frac   float64 // of the full measuring time, 0 to 1
	RelSD  float64 // relative standard error of Value by its own windows; Unknown = by Frac and what was learnt

	BeforeLoadGiB, AfterLoadGiB float64 // free GPU memory around the weights, smallest rank
	KVGiB, Tokens               float64 // KV pool of one rank
	AfterKVGiB, AfterGraphGiB   float64 // free GPU memory after the KV pool, after graph capture
	LowWaterGiB                 float64 // least free GPU memory under load
	Running                     float64 // requests running at once, mean
	HitRatio                    float64 // cached of the prompt tokens
	StartupMin, CostMin         float64 // minutes to ready, minutes in all
}

// Blank is an observation of a point that showed nothing yet.
func Blank(p Point, s Status) Observation {
	return Observation{
		Point: p, Status: s, Value: Unknown, RelSD: Unknown,
		BeforeLoadGiB: Unknown, AfterLoadGiB: Unknown, KVGiB: Unknown, Tokens: Unknown, AfterKVGiB: Unknown,
		AfterGraphGiB: Unknown, LowWaterGiB: Unknown, Running: Unknown, HitRatio: Unknown, StartupMin: Unknown, CostMin: Unknown,
	}
}

// measured reports whether the observation carries a value that models may use.
func (o Observation) measured() bool {
	return (o.Status == OK || o.Status == Pruned) && known(o.Value) && o.Value > 0
}

// Same reports whether two observations are the same to the last bit, unknown figures included.
func (o Observation) Same(p Observation) bool {
	if !o.Point.Equal(p.Point) || o.Status != p.Status {
		return false
	}
	mine, other := o.figures(), p.figures()
	for i, v := range mine {
		if math.Float64bits(v) != math.Float64bits(other[i]) {
			return false
		}
	}
	return true
}

func (o Observation) figures() [14]float64 {
	return [...]float64{
		o.Value, o.Frac, o.RelSD, o.BeforeLoadGiB, o.AfterLoadGiB, o.KVGiB, o.Tokens, o.AfterKVGiB, o.AfterGraphGiB, o.LowWaterGiB,
		o.Running, o.HitRatio, o.StartupMin, o.CostMin,
	}
}
