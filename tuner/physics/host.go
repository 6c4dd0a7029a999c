package physics

import "slices"

// hostLine is what was seen of the host's memory: a pool that ran out of it rules out all that are no
// smaller, until one as large comes up. The budget that is told beforehand may be wrong, or missing.
type hostLine struct {
	failed []float64 // pools that ran out of host memory, and that no later start refuted
}

// Observe learns from a trial with the given host pool.
func (h *hostLine) Observe(pool float64, how Status) {
	switch how {
	case HostOOM:
		h.failed = append(h.failed, pool)
	case OK, Pruned, Started, LoadOOM, Worthless: // the pool is pinned before a server is ready
		h.failed = slices.DeleteFunc(h.failed, func(v float64) bool { return v <= pool })
	default: // not known how far it came
	}
}

// fits reports whether a pool is smaller than all that failed; no pool needs nothing.
func (h *hostLine) fits(pool float64) bool {
	return pool <= 0 || len(h.failed) == 0 || pool < slices.Min(h.failed)
}
