package chart_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"sgtune/test/webbed"
)

// BenchmarkStudy makes everything that the charts of a study need, but for what the models say.
func BenchmarkStudy(b *testing.B) {
	for _, n := range []int{30, 1000, 10_000} {
		night := webbed.Make("n", n, 7)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := collect(b, night)
				figures := d.Figures(nil)
				text, err := json.Marshal(d.Columns(nil))
				if err != nil || len(figures) == 0 {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(text)), "bytes")
			}
		})
	}
}
