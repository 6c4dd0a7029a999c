package benchmark

import (
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
	// mostBatches is how many batches an interval is made of at most. More windows are merged: wide
	// batches are less correlated, and 10 to 30 of them lose next to nothing (Schmeiser, "Batch size
	// effects in the analysis of simulation output", Operations Research 30(3), 1982).
	mostBatches = 30
	confidence  = 0.95
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
		return 0, n >= leastWindows && !drifts(windows)
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

// drifts compares the means of the two halves, as Geweke does with the two ends of a chain ("Evaluating the
// accuracy of sampling-based approaches to the calculation of posterior moments", 1992), by a t-test at 95%.
func drifts(windows []float64) bool {
	half := len(windows) / 2
	early, late := windows[:half], windows[len(windows)-half:]
	var spread float64
	for _, part := range [][]float64{early, late} {
		spread += stat.Variance(part, nil) / float64(half)
	}
	return math.Abs(stat.Mean(late, nil)-stat.Mean(early, nil)) > studentT(float64(2*half-2))*math.Sqrt(spread)
}

// interval is the 95% t-interval of the mean of a stationary series by batch means (Law, "Simulation
// modeling and analysis", the chapter on output analysis). With fewer than two values there is none.
func interval(windows []float64) (mean, half float64, ok bool) {
	batches := windows
	for len(batches) > mostBatches {
		batches = mergePairs(batches)
	}
	mean = stat.Mean(windows, nil)
	n := len(batches)
	if n < 2 {
		return mean, 0, false
	}
	half = studentT(float64(n-1)) * stat.StdDev(batches, nil) / math.Sqrt(float64(n))
	return mean, half, true
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
