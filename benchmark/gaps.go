package benchmark

import (
	"iter"
	"time"
)

const (
	// mostGaps is how many gaps are kept as they are: 64 MB. Of a longer level the oldest are then counted in
	// buckets, so that a night fits into memory; quantiles of ITL are within 0.4% from there on.
	mostGaps = 8 << 20
	gapChunk = 1 << 16 // gaps are kept in pieces of this size: growing copies little
)

// gapStore keeps gaps one after the other. The oldest can be forgotten.
type gapStore struct {
	chunks [][]gap
	from   int64 // first gap that is still there
	end    int64 // one beyond the last
}

func (s *gapStore) held() int64 { return s.end - s.from }

// add appends gaps.
func (s *gapStore) add(gaps []gap) {
	for len(gaps) > 0 {
		k := int(s.end / gapChunk)
		if k == len(s.chunks) {
			s.chunks = append(s.chunks, nil)
		}
		n := min(len(gaps), gapChunk-len(s.chunks[k]))
		s.chunks[k] = append(s.chunks[k], gaps[:n]...)
		s.end += int64(n)
		gaps = gaps[n:]
	}
}

// parts are the gaps from one position to another, in pieces.
func (s *gapStore) parts(from, to int64) iter.Seq[[]gap] {
	return func(yield func([]gap) bool) {
		for from < to {
			k := from / gapChunk
			next := min(to, (k+1)*gapChunk)
			if !yield(s.chunks[k][from-k*gapChunk : next-k*gapChunk]) {
				return
			}
			from = next
		}
	}
}

// forget lets go of the gaps before a position.
func (s *gapStore) forget(to int64) {
	for k := s.from / gapChunk; k < to/gapChunk; k++ {
		s.chunks[k] = nil
	}
	s.from = to
}

// fold counts the gaps of the oldest record that still has its own in the window its request ended in.
func (s *samples) fold() {
	rec := s.record(s.folded)
	s.folded++
	if rec.gaps == 0 {
		return
	}
	k := int(rec.finished() / s.width)
	for len(s.windows) <= k {
		s.windows = append(s.windows, histogram{})
	}
	to := rec.gapsFrom + int64(rec.gaps)
	for part := range s.gaps.parts(rec.gapsFrom, to) {
		for _, g := range part {
			s.windows[k].add(g.Ms, int64(g.Tokens))
		}
	}
	s.gaps.forget(to)
}

// itl summarises the gaps of the requests that ended at from or later; from is the start of a window.
func (s *samples) itl(from time.Duration) *Distribution {
	if s.folded == 0 {
		return distributeGaps(func(yield func([]gap) bool) {
			for rec := range s.all() {
				if rec.finished() < from {
					continue
				}
				for part := range s.gaps.parts(rec.gapsFrom, rec.gapsFrom+int64(rec.gaps)) {
					if !yield(part) {
						return
					}
				}
			}
		})
	}
	for s.folded < s.n {
		s.fold()
	}
	var all histogram
	for _, w := range s.windows[min(len(s.windows), int(from/s.width)):] {
		all.merge(w)
	}
	return all.distribution()
}
