package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sgtune/trial"
)

// signals makes the first Ctrl-C (or TERM) stop the study cleanly and the second one stop it without
// grace for the server. Neither a closed terminal (HUP) nor a reader of our output that went away
// (PIPE: Ctrl-C ends the tee of "sgtune tune x | tee log" first) may end a study without clean-up. They
// are caught, not ignored: children would inherit that.
func (n *night) signals(ctx context.Context) (context.Context, func()) {
	survived := make(chan os.Signal, 1) // never read
	signal.Notify(survived, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	n.hurry = make(chan struct{})
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		count := 0
		for range c {
			switch count++; count {
			case 1:
				cancel(trial.ErrStopped) // first: telling waits for a terminal that may be stopped (Ctrl-S)
				n.tell("stopping: the running trial is cancelled and the host cleaned up; press Ctrl-C again to hurry")
			case 2:
				close(n.hurry)
				n.tell("hurrying: the server is killed; the host is still cleaned up")
			}
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		signal.Stop(survived)
		close(c)
		<-done
		cancel(nil)
	}
}

// tell is for the signals' goroutine: there may be no screen yet.
func (n *night) tell(text string) {
	if screen := n.watcher.Load(); screen != nil {
		screen.Say("%s", text)
	}
}
