package benchmark

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// leastWindows is the fewest windows a level must have behind its warm-up before it is called
	// steady, and the fewest steady ones its interval may end it with.
	leastWindows = 5
	// manyWindows is how many windows behind the warm-up MSER needs to choose from.
	manyWindows = 20
	// mostBatches and leastBatches are how many batches an interval is made of. More windows are merged: wide
	// batches are less correlated, and 10 to 30 of them lose next to nothing (Schmeiser, "Batch size effects in
	// the analysis of simulation output", Operations Research 30(3), 1982).
	mostBatches  = 30
	leastBatches = 10
	confidence   = 0.95
)

// steadyFrom finds where the windows behind the warm-up have settled. Many of them are cut by the marginal
// standard error rule MSER (White, "An effective truncation heuristic for bias reduction in simulation
// output", Simulation 69(6), 1997): leave out the first d windows, d chosen so that
//
//	sum over i>d of (y_i - mean_d)² / (n-d)²
//
// is smallest. A window is a mean over many requests, the batch of MSER-5 (White, Cobb and Spratt,
// "A comparison of five steady-state truncation heuristics for simulation", WSC 2000). Only d up to
// n/2 is tried, as there; a best d at that bound means the series is still moving: not steady.
//
// With few windows that choice is a draw of lots which makes launches differ that are equal, so nothing is
// cut; they are steady unless the second half differs from the first by more than chance explains.
func steadyFrom(windows []float64) (from int, steady bool) {
	n := len(windows)
	if n < manyWindows {
		return 0, n >= leastWindows && drift(windows) == 0
	}
	best, bound := math.Inf(1), n/2
	for d := 0; d <= bound; d++ {
		rest := windows[d:]
		mean := stat.Mean(rest, nil)
		var squares float64
		for _, y := range rest {
			squares += (y - mean) * (y - mean)
		}
		if z := squares / float64(len(rest)*len(rest)); z < best {
			best, from = z, d
		}
	}
	return from, from < bound
}

// drift compares the means of the two halves, as Geweke does with the two ends of a chain ("Evaluating the
// accuracy of sampling-based approaches to the calculation of posterior moments", 1992), by a t-test at 95%:
// by how much the second is larger, 0 where chance explains it.
func drift(windows []float64) float64 {
	half := len(windows) / 2
	early, late := windows[:half], windows[len(windows)-half:]
	var spread float64
	for _, part := range [][]float64{early, late} {
		spread += stat.Variance(part, nil) / float64(half)
	}
	d := stat.Mean(late, nil) - stat.Mean(early, nil)
	if math.Abs(d) > studentT(float64(2*half-2))*math.Sqrt(spread) {
		return d
	}
	return 0
}

// unsteady says why so many windows behind the warm-up were not called steady.
func unsteady(windows int) string {
	if windows < leastWindows {
		return fmt.Sprintf("too few whole windows behind the warm-up to tell: %d, %d would be enough", windows, leastWindows)
	}
	return "throughput was still changing"
}

// pilingUp is the growth of requests in flight from one half of an open loop to the next that is more than a
// slow tide.
const pilingUp = 0.2

// pilesUp reports whether requests come faster than the server answers: throughput looks steady then, but what
// is in flight grows, and with it every latency.
func pilesUp(windows []Window) bool {
	if len(windows) < leastWindows {
		return false
	}
	var busy []float64
	for _, w := range windows {
		busy = append(busy, w.InFlight)
	}
	return drift(busy) > pilingUp*stat.Mean(busy[:len(busy)/2], nil)
}

// interval is the 95% t-interval of the mean of a stationary series by batch means (Law, "Simulation
// modeling and analysis", the chapter on output analysis). With fewer than two values there is none.
//
// Batches are widened until neighbours are no longer correlated by von Neumann's test, as Fishman proposes
// ("Grouping observations in digital simulation", Management Science 24(5), 1978), but not to fewer than ten.
// What correlation is left then, or in a series too short to be grouped, widens the interval by
// sqrt((1+r)/(1-r)), the correction of Tafazzoli and Wilson ("Skart: a skewness- and autoregression-adjusted
// batch-means procedure", IIE Transactions 43(2), 2011).
func interval(windows []float64) (mean, half float64, ok bool) {
	batches := windows
	for len(batches) > mostBatches || len(batches) >= 2*leastBatches && correlated(batches) {
		batches = mergePairs(batches)
	}
	mean = stat.Mean(windows, nil)
	n := len(batches)
	if n < 2 {
		return mean, 0, false
	}
	half = studentT(float64(n-1)) * stat.StdDev(batches, nil) / math.Sqrt(float64(n))
	if correlated(batches) {
		r := min(neighbours(batches), mostCorrelation)
		half *= math.Sqrt((1 + r) / (1 - r))
	}
	return mean, half, true
}

// mostCorrelation bounds the correction: beyond it the estimate of a few batches says nothing.
const mostCorrelation = 0.9

// neighbours estimates the correlation of neighbouring values from the squares of their differences: 0 when
// they know nothing of each other (von Neumann, "Distribution of the ratio of the mean square successive
// difference to the variance", Annals of Mathematical Statistics 12(4), 1941).
func neighbours(values []float64) float64 {
	mean := stat.Mean(values, nil)
	var steps, squares float64
	for i, y := range values {
		squares += (y - mean) * (y - mean)
		if i > 0 {
			steps += (y - values[i-1]) * (y - values[i-1])
		}
	}
	if squares == 0 {
		return 0
	}
	return 1 - steps/(2*squares)
}

// correlated tests at 95%, one-sided, whether neighbours are more alike than chance makes them: of n independent
// normal values the estimate has mean 0 and variance (n-2)/(n²-1).
func correlated(values []float64) bool {
	n := float64(len(values))
	if n < 3 {
		return false
	}
	limit := distuv.UnitNormal.Quantile(confidence) * math.Sqrt((n-2)/(n*n-1))
	return neighbours(values) > limit
}

// mergePairs averages neighbours; an odd first value, nearest to the transient, is left out.
func mergePairs(values []float64) []float64 {
	values = values[len(values)%2:]
	merged := make([]float64, 0, len(values)/2)
	for i := 0; i < len(values); i += 2 {
		merged = append(merged, (values[i]+values[i+1])/2)
	}
	return merged
}

// studentT is the two-sided 95% quantile of Student's t with nu degrees of freedom.
func studentT(nu float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.Quantile((1 + confidence) / 2)
}
