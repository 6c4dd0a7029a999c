package benchmark

import (
	"testing"
	"time"
)

type scaledClock struct {
	realClock
	scale float64
}

func (c scaledClock) Scale() float64 { return c.scale }

// A token that was stamped within a window and read after its end belongs to that window, also for whoever is
// asked about the running level.
func TestCompleteWindowsHaveWhatWasReadLate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		scale float64
		want  []float64
	}{
		{"real time", 1, []float64{15, 2}},
		{"scaled time: the newest may be short", 150, []float64{15}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start := time.Unix(0, 0)
			lv := &level{opts: Options{Window: 10 * time.Second, Clock: scaledClock{scale: tt.scale}}, ledger: newLedger(start, 10*time.Second)}
			late, m := lv.ledger.meter(), lv.ledger.meter()
			m.tokens(start.Add(3*time.Second), 100, 0)
			lv.windows = append(lv.windows, lv.ledger.window(0))
			late.tokens(start.Add(9*time.Second), 50, 0)
			m.tokens(start.Add(12*time.Second), 20, 0)
			lv.windows = append(lv.windows, lv.ledger.window(1))
			got := outputs(lv.complete())
			if len(got) != len(tt.want) {
				t.Fatalf("%v, want %v", got, tt.want)
			}
			for i, want := range tt.want {
				if got[i] != want {
					t.Errorf("window %d: %g tok/s, want %g", i, got[i], want)
				}
			}
		})
	}
}
