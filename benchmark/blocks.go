package benchmark

import "fmt"

// defaultBlockTokens is what one hash id of a Mooncake trace stands for.
const defaultBlockTokens = 512

// settleBlocks decides how many tokens one hash id stands for: what the caller said, else what every
// row agrees with, else 512. Rows of another length are noted.
func (w *Workload) settleBlocks(said int) {
	if !w.hasIDs() {
		return
	}
	w.BlockTokens = said
	if said == 0 {
		var ok bool
		if w.BlockTokens, ok = inferBlockTokens(w.Rows); !ok {
			w.Notes = append(w.Notes, fmt.Sprintf(
				"no block size fits all rows; %d tokens per hash id assumed, say otherwise with the block size", defaultBlockTokens))
		}
	}
	short, long := 0, 0
	for _, r := range w.Rows {
		blocks := ceilDiv(r.InputTokens, w.BlockTokens)
		switch n := len(r.HashIDs); {
		case n == 0: // a whole prompt of its own
		case n < blocks:
			short++
		case n > blocks:
			long++
		}
	}
	if short > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("%d rows have too few hash ids: the rest of their prompts is shared with nobody", short))
	}
	if long > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("%d rows have too many hash ids: cut at their input length", long))
	}
}

func (w *Workload) hasIDs() bool {
	for _, r := range w.Rows {
		if len(r.HashIDs) > 0 {
			return true
		}
	}
	return false
}

// inferBlockTokens finds B with len(hash ids) = ceil(input/B) in every row that has ids. A row of k
// ids and n tokens allows ceil(n/k) <= B < n/(k-1); what all rows allow is a range. Of that range
// 512 is taken if it is in there, else a power of two, else the smallest.
func inferBlockTokens(rows []Row) (block int, ok bool) {
	low, high := 1, maxTokens
	for _, r := range rows {
		k, n := len(r.HashIDs), r.InputTokens
		if k == 0 {
			continue
		}
		low = max(low, ceilDiv(n, k))
		if k > 1 {
			high = min(high, ceilDiv(n, k-1)-1)
		}
	}
	if low > high {
		return defaultBlockTokens, false
	}
	if low <= defaultBlockTokens && defaultBlockTokens <= high {
		return defaultBlockTokens, true
	}
	for power := 1; power <= high; power *= 2 {
		if power >= low {
			return power, true
		}
	}
	return low, true
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// reuse is the share of prompt tokens an endless cache would already hold, rows in file order: the
// leading ids seen before, times the block size, at most the row's length.
func (w *Workload) reuse() float64 {
	seen := map[int64]struct{}{}
	var hits, all int64
	for _, r := range w.Rows {
		leading := 0
		for _, id := range r.HashIDs {
			if _, ok := seen[id]; !ok {
				break
			}
			leading++
		}
		hits += int64(min(leading*w.BlockTokens, r.InputTokens))
		all += int64(r.Input())
		for _, id := range r.HashIDs {
			seen[id] = struct{}{}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(hits) / float64(all)
}
