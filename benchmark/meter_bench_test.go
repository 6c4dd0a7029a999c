package benchmark

import (
	"testing"
	"time"
)

// BenchmarkMeter is what booking the tokens of one read costs.
func BenchmarkMeter(b *testing.B) {
	start := time.Now()
	m := newLedger(start, 10*time.Second).meter()
	at := start
	for b.Loop() {
		at = at.Add(20 * time.Microsecond)
		m.tokens(at, 1, 0)
	}
}

// BenchmarkDistributeGaps is the report's share in a token's cost: ns per gap.
func BenchmarkDistributeGaps(b *testing.B) {
	gaps := make([]gap, 512_000)
	for i := range gaps {
		gaps[i] = gap{20 + float32(i%4099)/1000, 1}
	}
	for b.Loop() {
		distributeGaps(gapsOf(gaps...))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(gaps)), "ns/gap")
}
