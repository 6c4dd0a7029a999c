package main

import (
	"strconv"
	"sync/atomic"
	"time"
)

const maxLat = 4_000_000 // microseconds kept in the histograms

type hist struct{ b []uint32 }

func newHist() *hist { return &hist{make([]uint32, maxLat+1)} }
func (h *hist) add(d time.Duration) {
	us := int64(d / time.Microsecond)
	if us < 0 {
		us = 0
	}
	if us > maxLat {
		us = maxLat
	}
	atomic.AddUint32(&h.b[us], 1)
}

func (h *hist) reset() {
	for i := range h.b {
		atomic.StoreUint32(&h.b[i], 0)
	}
}

func (h *hist) summary() map[string]float64 {
	var n uint64
	var sum float64
	for i := range h.b {
		c := atomic.LoadUint32(&h.b[i])
		n += uint64(c)
		sum += float64(c) * float64(i)
	}
	out := map[string]float64{"n": float64(n)}
	if n == 0 {
		return out
	}
	out["mean_ms"] = sum / float64(n) / 1000
	for _, p := range []float64{50, 90, 99, 99.9} {
		want := uint64(p / 100 * float64(n))
		if want == 0 {
			want = 1
		}
		var acc uint64
		for i := range h.b {
			acc += uint64(atomic.LoadUint32(&h.b[i]))
			if acc >= want {
				out["p"+strconv.FormatFloat(p, 'f', -1, 64)+"_ms"] = float64(i) / 1000
				break
			}
		}
	}
	for i := len(h.b) - 1; i >= 0; i-- {
		if atomic.LoadUint32(&h.b[i]) > 0 {
			out["max_ms"] = float64(i) / 1000
			break
		}
	}
	return out
}
