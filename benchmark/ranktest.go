package benchmark

import "slices"

// mannWhitney is the exact two-sided p of the rank sum test (Mann and Whitney, 1947): the share of all
// ways to deal the pooled ranks into two groups of these sizes whose rank sum is as far out as
// this one, twice the smaller tail. Ties get the mean of their ranks, and the same count then gives the
// permutation distribution. It is meant for a few dozen values.
func mannWhitney(a, b []float64) float64 {
	ranks := doubledRanks(a, b)
	total := 0
	for _, r := range ranks {
		total += r
	}
	observed := 0
	for _, r := range ranks[:len(a)] {
		observed += r
	}
	// ways[k][s]: choices of k values with doubled rank sum s.
	ways := make([][]float64, len(a)+1)
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := len(a); k >= 1; k-- {
			for s := total; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	var all, below, above float64
	for s, n := range ways[len(a)] {
		all += n
		if s <= observed {
			below += n
		}
		if s >= observed {
			above += n
		}
	}
	return min(1, 2*min(below, above)/all)
}

// doubledRanks are the ranks of a, then of b, in the pooled values, times two so that the mean rank of
// ties is a whole number.
func doubledRanks(a, b []float64) []int {
	pooled := slices.Concat(a, b)
	sorted := slices.Sorted(slices.Values(pooled))
	ranks := make([]int, len(pooled))
	for i, v := range pooled {
		first, _ := slices.BinarySearch(sorted, v)
		last := first
		for last+1 < len(sorted) && sorted[last+1] == v {
			last++
		}
		ranks[i] = first + last + 2
	}
	return ranks
}
