package benchmark

import (
	"context"
	"os"
	"runtime"
	"time"
)

const (
	procsLook = 500 * time.Millisecond // between two looks at our own CPU time
	procsFull = 0.70                   // of the processors in use: one more is taken
)

// FewProcessors lets this process run on one processor at a time, and on more only while it uses most of those it
// has, at most one for each core. A load generator beside the server it measures is cheapest and disturbs
// least that way: its goroutines do not wake each other across cores, and one read returns what came
// meanwhile. A GOMAXPROCS in the environment is the user's word, and nothing is changed. stop ends the
// watching and waits for it.
func FewProcessors(ctx context.Context) (stop func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	before := runtime.GOMAXPROCS(1) // the cores, or fewer where a control group gives less
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(procsLook)
		defer tick.Stop()
		meter := NewCPUMeter()
		last := meter.Read()
		for n := 1; n < before; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := meter.Read()
			if now.ShareSince(last) > procsFull {
				n++
				runtime.GOMAXPROCS(n)
				meter.Sample()
			}
			last = now
		}
	}()
	return func() {
		cancel()
		<-done
		runtime.GOMAXPROCS(before)
	}
}
