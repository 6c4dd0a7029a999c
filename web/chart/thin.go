package chart

import "math"

// maxPoints is how many points of a series are sent, those that are always sent not counted.
const maxPoints = 4000

// thin picks at most keep of the points (x[i], y[i]), x ascending, so that the line through them looks the same
// (largest triangle, three buckets; Steinarsson 2013). It returns ascending indexes; all of them when they are few.
func thin(x, y []float64, keep int) []int {
	n := len(x)
	if n <= keep || keep < 3 {
		return upTo(min(n, max(keep, 0)), n)
	}
	out := make([]int, 0, keep)
	out = append(out, 0)
	width := float64(n-2) / float64(keep-2)
	at := 0
	for b := range keep - 2 {
		from, to := 1+int(float64(b)*width), 1+int(float64(b+1)*width)
		next := min(1+int(float64(b+2)*width), n-1)
		nextX, nextY := mean(x[to:next+1]), mean(y[to:next+1])
		best, area := from, -1.0
		for i := from; i < to; i++ {
			a := math.Abs((x[at]-nextX)*(y[i]-y[at]) - (x[at]-x[i])*(nextY-y[at]))
			if a > area {
				best, area = i, a
			}
		}
		out = append(out, best)
		at = best
	}
	return append(out, n-1)
}

// upTo are keep indexes of n, evenly spread.
func upTo(keep, n int) []int {
	out := make([]int, keep)
	for i := range out {
		out[i] = i
		if keep < n && keep > 1 {
			out[i] = i * (n - 1) / (keep - 1)
		}
	}
	return out
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
