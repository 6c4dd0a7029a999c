package physics

import "math"

// Noise is how far the value of one launch lies from the configuration's own: a part that differs
// from launch to launch, and a part that shrinks with the measuring time. Where a replay gave its own
// standard error that stands for the second part; else it is a usual one. How far both are off is
// learnt by the residual model from all measurements together (hypothesis.noise).
type Noise struct{}

const (
	launchSD = 0.020 // of log value, launch to launch
	windowSD = 0.022 // of log value, over a full measuring time
)

// SD is the standard deviation of log value for a trial that measured the given share of the full
// time with the given relative standard error of its own (Unknown = none).
func (Noise) SD(frac, relSD float64) float64 {
	window := windowSD / math.Sqrt(math.Max(frac, 0.1))
	if known(relSD) && relSD > 0 {
		window = math.Min(relSD, 0.5)
	}
	return math.Sqrt(launchSD*launchSD + window*window)
}
