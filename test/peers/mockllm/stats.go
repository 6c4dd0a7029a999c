package main

import (
	"encoding/json"
	"sync/atomic"
	"syscall"
	"time"
)

var st struct {
	reqs, done, errs, toks, bytes    atomic.Int64
	conns, active, peak              atomic.Int64
	firstNS, lastNS, busyNS, areaOut atomic.Int64 // areaOut: stream nanoseconds, for mean concurrency
}
var (
	hTTFT, hITL, hLate, hGap = newHist(), newHist(), newHist(), newHist()
	lastArrival              atomic.Int64
)

func reset() {
	for _, a := range []*atomic.Int64{&st.reqs, &st.done, &st.errs, &st.toks, &st.bytes, &st.firstNS, &st.lastNS, &st.busyNS, &st.areaOut, &st.conns} {
		a.Store(0)
	}
	st.peak.Store(st.active.Load())
	hTTFT.reset()
	hITL.reset()
	hLate.reset()
	hGap.reset()
	lastArrival.Store(0)
}

// arrive books a request that came at t0, and tells its number.
func arrive(t0 time.Time) (seq int64) {
	seq = st.reqs.Add(1)
	st.firstNS.CompareAndSwap(0, t0.UnixNano())
	if p := lastArrival.Swap(t0.UnixNano()); p != 0 {
		hGap.add(time.Duration(t0.UnixNano() - p))
	}
	a := st.active.Add(1)
	for {
		p := st.peak.Load()
		if a <= p || st.peak.CompareAndSwap(p, a) {
			return seq
		}
	}
}

// leave books the end of a request that came at t0.
func leave(t0 time.Time) {
	st.active.Add(-1)
	now := time.Now()
	st.areaOut.Add(int64(now.Sub(t0)))
	st.lastNS.Store(now.UnixNano())
}

func cpu() float64 {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return float64(ru.Utime.Sec+ru.Stime.Sec) + float64(ru.Utime.Usec+ru.Stime.Usec)/1e6
}

func statsJSON() []byte {
	first, last := st.firstNS.Load(), st.lastNS.Load()
	dur := float64(last-first) / 1e9
	m := map[string]any{
		"requests": st.reqs.Load(), "completed": st.done.Load(), "injected_errors": st.errs.Load(),
		"tokens": st.toks.Load(), "bytes": st.bytes.Load(), "connections": st.conns.Load(),
		"first_ns": first, "last_ns": last, "duration_s": dur, "peak_concurrency": st.peak.Load(),
		"active": st.active.Load(), "server_cpu_s": cpu(),
		"ttft": hTTFT.summary(), "itl": hITL.summary(), "late": hLate.summary(), "arrival_gap": hGap.summary(),
	}
	if dur > 0 {
		m["mean_concurrency"] = float64(st.areaOut.Load()) / 1e9 / dur
		m["tok_per_s"] = float64(st.toks.Load()) / dur
		m["req_per_s"] = float64(st.done.Load()) / dur
	}
	b, _ := json.Marshal(m)
	return append(b, '\n')
}
