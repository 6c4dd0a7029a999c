package benchmark

import (
	"cmp"
	"math"
	"slices"
)

// Distribution summarises kept raw samples, nearest rank.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// nearestRank is the index of the quantile q in n sorted values: ceil(q·n)-1.
func nearestRank(n int, q float64) int {
	// The small term undoes rounding of products such as 0.95·20 = 19.000000000000004.
	return min(n-1, max(0, int(math.Ceil(q*float64(n)-1e-9))-1))
}

// Distribute summarises samples by nearest rank; nil without samples.
func Distribute(samples []float64) *Distribution {
	weighted := make([]weightedSample, len(samples))
	for i, s := range samples {
		weighted[i] = weightedSample{s, 1}
	}
	return distribute(weighted)
}

// weightedSample stands for n equal samples.
type weightedSample struct {
	value float64
	n     int
}

// distribute sorts its argument.
func distribute(samples []weightedSample) *Distribution {
	slices.SortFunc(samples, func(a, b weightedSample) int { return cmp.Compare(a.value, b.value) })
	count, sum := 0, 0.0
	for _, s := range samples {
		count += s.n
		sum += s.value * float64(s.n)
	}
	if count == 0 {
		return nil
	}
	d := &Distribution{Mean: sum / float64(count), Max: samples[len(samples)-1].value}
	wanted := []struct {
		q  float64
		to *float64
	}{{0.50, &d.P50}, {0.90, &d.P90}, {0.95, &d.P95}, {0.99, &d.P99}}
	passed, i := 0, 0
	for _, w := range wanted {
		rank := nearestRank(count, w.q)
		for passed+samples[i].n <= rank {
			passed += samples[i].n
			i++
		}
		*w.to = samples[i].value
	}
	return d
}
