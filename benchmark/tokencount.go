package benchmark

import (
	"maps"
	"math/bits"
	"slices"
)

// tokenCounts counts token counts, so that percentiles over any number of rows are exact in bounded
// memory: one counter for each length below exactTokens (at most 16 MB, in pages made on demand), and
// above it, where no model's context reaches, one for each step of less than a thousandth.
type tokenCounts struct {
	pages    [exactTokens / tokenPage]*[tokenPage]uint32
	far      map[int]uint32 // by the largest length of the step
	n        int64
	total    int64
	min, max int
}

const (
	exactTokens = 4 << 20
	tokenPage   = 4096
	farBits     = 12 // leading bits that far lengths are told apart by
)

func (c *tokenCounts) add(tokens int) {
	if c.n == 0 || tokens < c.min {
		c.min = tokens
	}
	c.max = max(c.max, tokens)
	c.n++
	c.total += int64(tokens)
	if tokens >= exactTokens {
		if c.far == nil {
			c.far = map[int]uint32{}
		}
		shift := bits.Len(uint(tokens)) - farBits
		c.far[(tokens>>shift+1)<<shift-1]++
		return
	}
	tokens = max(0, tokens)
	page := &c.pages[tokens/tokenPage]
	if *page == nil {
		*page = new([tokenPage]uint32)
	}
	(*page)[tokens%tokenPage]++
}

func (c *tokenCounts) mean() float64 {
	if c.n == 0 {
		return 0
	}
	return float64(c.total) / float64(c.n)
}

// quantile is the nearest-rank percentile: the smallest length with at least q·n rows at or below it.
func (c *tokenCounts) quantile(q float64) int {
	if c.n == 0 {
		return 0
	}
	rank := int64(nearestRank(int(c.n), q)) + 1
	var seen int64
	for p, page := range c.pages {
		if page == nil {
			continue
		}
		for i, n := range page {
			if seen += int64(n); seen >= rank {
				return p*tokenPage + i
			}
		}
	}
	for _, length := range slices.Sorted(maps.Keys(c.far)) {
		if seen += int64(c.far[length]); seen >= rank {
			return min(length, c.max)
		}
	}
	return c.max
}
