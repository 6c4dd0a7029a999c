package virtual

import (
	"testing"

	"sgtune/sglang"
)

// BenchmarkRun is one noise-free run as FindBest makes 20,000 of.
func BenchmarkRun(b *testing.B) {
	for _, name := range studies {
		b.Run(name, func(b *testing.B) {
			s, _ := study(b, name)
			f := &finder{Judge: judge(b, s), fill: 683_000}
			for b.Loop() {
				if _, err := f.run(b.Context(), &Best{}, sglang.Config{"mem-fraction-static": 0.9, "hicache-size": 48.0}, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
