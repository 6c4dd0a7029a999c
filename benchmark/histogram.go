package benchmark

import (
	"maps"
	"math"
	"slices"
)

// histogram counts values above zero in buckets that are less than 0.8% wide: the upper half of a float's bits,
// which rises with its value. Mean and maximum are exact, quantiles within 0.4%.
type histogram struct {
	counts map[uint16]int64
	n      int64
	sum    float64
	most   float32
}

func (h *histogram) add(value float32, n int64) {
	if h.counts == nil {
		h.counts = map[uint16]int64{}
	}
	h.counts[uint16(math.Float32bits(value)>>16)] += n
	h.n += n
	h.sum += float64(value) * float64(n)
	h.most = max(h.most, value)
}

// merge adds all of another one.
func (h *histogram) merge(o histogram) {
	if h.counts == nil {
		h.counts = map[uint16]int64{}
	}
	for bucket, n := range o.counts {
		h.counts[bucket] += n
	}
	h.n += o.n
	h.sum += o.sum
	h.most = max(h.most, o.most)
}

// distribution is nil without values.
func (h *histogram) distribution() *Distribution {
	if h.n == 0 {
		return nil
	}
	d := &Distribution{Mean: h.sum / float64(h.n), Max: float64(h.most)}
	buckets := slices.Sorted(maps.Keys(h.counts))
	passed, i := int64(0), 0
	for _, w := range d.quantiles() {
		rank := nearestRank(h.n, w.q)
		for passed+h.counts[buckets[i]] <= rank {
			passed += h.counts[buckets[i]]
			i++
		}
		*w.to = min(middle(buckets[i]), d.Max)
	}
	return d
}

// middle is the value in the middle of a bucket.
func middle(bucket uint16) float64 {
	return float64(math.Float32frombits(uint32(bucket)<<16 | 1<<15))
}
