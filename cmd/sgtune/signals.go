package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// signals makes the first Ctrl-C (or TERM) stop the study cleanly and the second one stop it without
// grace for the server, or, where the link to its machine is cut, without cleaning up there. Neither a closed terminal
// (HUP) nor a reader of our output that went away
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
		n.obey(c, cancel)
	}()
	return ctx, func() {
		signal.Stop(c)
		signal.Stop(survived)
		close(c)
		<-done
		cancel(nil)
	}
}

const (
	linkLook = time.Second
	linkTell = time.Minute // between two words about a link that stays cut
)

// obey does what each signal asks for, until there are no more.
func (n *night) obey(c <-chan os.Signal, cancel context.CancelCauseFunc) {
	var asked, told time.Time // of the first signal, and of the last word about a cut link
	hurry := sync.OnceFunc(func() { close(n.hurry) })
	look := time.NewTicker(linkLook)
	defer look.Stop()
	for {
		select {
		case _, more := <-c:
			switch {
			case !more:
				return
			case asked.IsZero():
				asked = time.Now()
				cancel(trial.ErrStopped) // first: telling waits for a terminal that may be stopped (Ctrl-S)
				n.tell("stopping: the running trial is cancelled and the host cleaned up; press Ctrl-C again to hurry")
			default:
				hurry()
				n.tell("%s", n.leave())
			}
		case <-look.C:
			silence, why := n.silence()
			if silence == 0 || asked.IsZero() || time.Since(told) < linkTell {
				continue
			}
			told = time.Now()
			n.tell("%s was not heard for %s (%s): waiting for it, to end the server and clean up; press Ctrl-C again to leave without", n.machine.Load(), short(silence), oneLine(why))
		}
	}
}

// leave is what a signal after the first asks for. What only ends when a machine answers is given up if it does not.
func (n *night) leave() string {
	silence, _ := n.silence()
	if silence == 0 {
		return "hurrying: the server is killed; the host is still cleaned up"
	}
	r := n.machine.Load()
	r.GiveUp()
	return fmt.Sprintf("leaving: %s was not heard for %s, and is left as it is", r, short(silence))
}

// silence is for how long nothing was heard of the machine, and why; 0 as long as it answers, or is this one.
func (n *night) silence() (time.Duration, string) {
	if r := n.machine.Load(); r != nil {
		return r.Silent()
	}
	return 0, ""
}

// tell is for the signals' goroutine: there may be no screen yet.
func (n *night) tell(format string, args ...any) {
	if screen := n.watcher.Load(); screen != nil {
		screen.Say(format, args...)
	}
}

// leftText says what is left of a study whose machine did not answer when a person stopped it.
func (n *night) leftText(err error) error {
	if !errors.Is(err, host.ErrGivenUp) {
		return nil
	}
	h := n.study.Host
	return failf(exitInterrupted, "left without cleaning up %s, to which the link is cut: %w. The guard there ends the server %s after it last heard of sgtune. "+
		"When the link is back, go on with %s, which cleans up first; or only clean up, with sgtune reclaim %s",
		h.Address, err, short(h.TunerGone), n.again(), shellWord(n.path))
}
