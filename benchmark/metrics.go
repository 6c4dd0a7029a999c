package benchmark

import (
	"iter"
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

// quantiles are those of a Distribution, in rising order.
func (d *Distribution) quantiles() []quantile {
	return []quantile{{0.50, &d.P50}, {0.90, &d.P90}, {0.95, &d.P95}, {0.99, &d.P99}}
}

type quantile struct {
	q  float64
	to *float64
}

// nearestRank is the index of the quantile q in n sorted values: ceil(q·n)-1.
func nearestRank[N int | int64](n N, q float64) N {
	// The small term undoes rounding of products such as 0.95·20 = 19.000000000000004.
	return min(n-1, max(0, N(math.Ceil(q*float64(n)-1e-9))-1))
}

// Distribute summarises samples by nearest rank; nil without samples.
func Distribute(samples []float64) *Distribution { return distribute(slices.Clone(samples)) }

// distribute sorts its argument.
func distribute(samples []float64) *Distribution {
	n := len(samples)
	if n == 0 {
		return nil
	}
	slices.Sort(samples)
	sum := 0.0
	for _, s := range samples {
		sum += s
	}
	d := &Distribution{Mean: sum / float64(n), Max: samples[n-1]}
	for _, w := range d.quantiles() {
		*w.to = samples[nearestRank(n, w.q)]
	}
	return d
}

// Gaps between tokens are too many to be sorted: at a million tokens a second that would cost more than reading
// them. The bits of positive floats rise with their value, so the upper half of them sorts gaps into buckets
// less than 0.8% wide, and the lower half what is in one bucket: nearest rank, exactly, in one pass over the
// gaps plus one for each bucket that a quantile falls into.
type gapCounts [1 << 16]int64

// distributeGaps summarises gaps, each as many as its tokens; nil without any.
func distributeGaps(gaps iter.Seq[[]gap]) *Distribution {
	upper, n, sum, most := new(gapCounts), int64(0), 0.0, float32(0)
	for part := range gaps {
		for _, g := range part {
			upper[math.Float32bits(g.Ms)>>16] += int64(g.Tokens)
			n += int64(g.Tokens)
			sum += float64(g.Ms) * float64(g.Tokens)
			most = max(most, g.Ms)
		}
	}
	if n == 0 {
		return nil
	}
	d := &Distribution{Mean: sum / float64(n), Max: float64(most)}
	lower := new(gapCounts) // of the bucket looked into last
	passed, bucket, looked := int64(0), 0, -1
	for _, w := range d.quantiles() {
		rank := nearestRank(n, w.q)
		for passed+upper[bucket] <= rank {
			passed += upper[bucket]
			bucket++
		}
		if bucket != looked {
			lower.within(gaps, uint32(bucket))
			looked = bucket
		}
		*w.to = float64(math.Float32frombits(uint32(bucket)<<16 | lower.at(rank-passed)))
	}
	return d
}

// within counts the gaps of one bucket by the lower half of their bits.
func (c *gapCounts) within(gaps iter.Seq[[]gap], bucket uint32) {
	*c = gapCounts{}
	for part := range gaps {
		for _, g := range part {
			if bits := math.Float32bits(g.Ms); bits>>16 == bucket {
				c[bits&(1<<16-1)] += int64(g.Tokens)
			}
		}
	}
}

// at is the position of a rank.
func (c *gapCounts) at(rank int64) uint32 {
	for i, n := range c {
		if rank -= n; rank < 0 {
			return uint32(i)
		}
	}
	return 0 // not reached: a rank lies within what was counted
}
