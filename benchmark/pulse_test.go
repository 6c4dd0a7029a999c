package benchmark

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPulseBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPulse()
		time.Sleep(time.Second + pulseBeat/2)
		p.stop()
		if p.late.n != 100 || p.late.most != 0 {
			t.Errorf("%d beats in a second, at most %g ms late; want 100, 0", p.late.n, p.late.most)
		}
	})
}
