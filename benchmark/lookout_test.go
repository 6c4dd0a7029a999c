package benchmark

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestServerViewLooks: each 8 s, sooner on a hint that comes late enough, and once more at the end.
func TestServerViewLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []float64
		look := func(context.Context) { at = append(at, time.Since(start).Seconds()) }
		l := keepLooking(t.Context(), RealClock(), 8*time.Second, look)
		for _, hint := range []float64{2, 15, 16, 25} {
			time.Sleep(time.Duration(hint*float64(time.Second)) - time.Since(start))
			l.now()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		l.halt(t.Context(), look)
		if want := []float64{8, 15, 23, 26}; !slices.Equal(at, want) {
			t.Errorf("looked at %v, want %v", at, want)
		}
	})
}

func TestServerViewLooksEndWithTheirContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		looks, last := 0, error(nil)
		look := func(ctx context.Context) { looks, last = looks+1, ctx.Err() }
		l := keepLooking(ctx, RealClock(), time.Second, look)
		time.Sleep(2500 * time.Millisecond)
		cancel()
		l.halt(ctx, look)
		if looks != 3 || last != nil {
			t.Errorf("%d looks, the last with %v", looks, last)
		}
	})
}
