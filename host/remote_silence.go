package host

import (
	"context"
	"errors"
	"time"
)

// answersWithin is how soon a machine that is asked each pingInterval is heard again if all is well.
const answersWithin = pingInterval + 3*time.Second

// ErrGivenUp is the cause of what fails after GiveUp.
var ErrGivenUp = errors.New("the link is cut, and waiting for it was given up")

// Silent tells for how long nothing has been heard of the machine, real time, and why as far as it is known; 0 as
// long as it answers, and before the first connection.
func (r *Remote) Silent() (silence time.Duration, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if silence = r.silenceLocked(); silence < answersWithin {
		return 0, ""
	}
	why = "no answer"
	if d := r.dialled; d != nil {
		select {
		case <-d.done:
			if d.err != nil {
				why = d.err.Error()
			}
		default:
			why = "connecting again"
		}
	}
	return silence, why
}

// silenceLocked is how long nothing has been heard; time in which this machine slept does not count.
func (r *Remote) silenceLocked() time.Duration {
	if r.heard.IsZero() {
		return 0
	}
	return time.Since(r.heard)
}

// silence is silenceLocked for who does not hold mu.
func (r *Remote) silence() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silenceLocked()
}

// hear notes that something was heard of the machine.
func (r *Remote) hear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = time.Now()
}

// GiveUp has everything that waits for the machine fail with ErrGivenUp, now and from now on. On the machine nothing
// ends: it is for a person who does not want to wait for a cut link.
func (r *Remote) GiveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.givenUp = true
	for cancel := range r.asking {
		(*cancel)(ErrGivenUp)
	}
	for other := range r.joined {
		other.GiveUp()
	}
}

// join has GiveUp give up another machine, too, that is reached through this one; leave takes it off.
func (r *Remote) join(other *Remote) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.joined == nil {
		r.joined = map[*Remote]struct{}{}
	}
	r.joined[other] = struct{}{}
	if r.givenUp {
		other.GiveUp()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.joined, other)
	}
}

// asked is ctx for one request: GiveUp ends it, too. The returned function must be called.
func (r *Remote) asked(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.givenUp {
		cancel(ErrGivenUp)
	}
	r.asking[&cancel] = struct{}{}
	return ctx, func() {
		r.mu.Lock()
		delete(r.asking, &cancel)
		r.mu.Unlock()
		cancel(nil)
	}
}
