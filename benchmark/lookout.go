package benchmark

import (
	"context"
	"time"
)

// lookout calls a function now and then until it is halted.
type lookout struct {
	hint chan struct{}
	stop chan struct{}
	done chan struct{}
}

// keepLooking calls look each so often (host time) on a goroutine that ends with ctx or halt. A hint brings
// the next look forward, by a quarter of the time at most: what is looked at must not be disturbed more.
func keepLooking(ctx context.Context, clock Clock, every time.Duration, look func(context.Context)) *lookout {
	l := &lookout{hint: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for {
			last, due := clock.Now(), clock.After(every)
			for waiting := true; waiting; {
				select {
				case <-ctx.Done():
					return
				case <-l.stop:
					return
				case <-due:
					waiting = false
				case <-l.hint:
					waiting = clock.Now().Sub(last) < every-every/4
				}
			}
			look(ctx)
		}
	}()
	return l
}

// now hints that this is a good time to look. It does not wait.
func (l *lookout) now() {
	select {
	case l.hint <- struct{}{}:
	default:
	}
}

// lastLook bounds the look after the end of ctx, in real time: whoever interrupts a level waits for it.
const lastLook = 2 * time.Second

// halt ends the lookout, waits for a look that is going on, and looks a last time, shortly if ctx has ended:
// what was measured until then is reported too.
func (l *lookout) halt(ctx context.Context, look func(context.Context)) {
	close(l.stop)
	<-l.done
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastLook)
		defer cancel()
	}
	look(ctx)
}
