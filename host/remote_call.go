package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Pauses before a request is repeated.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// call has the agent do something, and repeats it over a new connection when the answer was lost with the old one.
func (r *Remote) call(ctx context.Context, op string, args, result any) error {
	ctx, done := r.asked(ctx)
	defer done()
	begin := time.Now()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := r.try(ctx, op, args, result)
		if err == nil || !r.again(ctx, err) {
			return err
		}
		if down := max(time.Since(begin), r.silence()); down > r.patience {
			return fmt.Errorf("the link has been down for %s: %w", down.Round(time.Second), err)
		}
		if !pause(ctx, wait) {
			return fmt.Errorf("%w (the link is down: %w)", context.Cause(ctx), err)
		}
	}
}

// told says what was being done on which machine when an error came; those of a link name it themselves.
func (r *Remote) told(what string, err error) error {
	var link *LinkError
	if !errors.As(err, &link) {
		if what != "" {
			what += " "
		}
		what += "on " + r.String()
	}
	if what == "" {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// again reports whether an error is the link's and may pass.
func (r *Remote) again(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errClosed) {
		return false
	}
	if errors.Is(err, errDropped) {
		return true
	}
	var link *LinkError
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.As(err, &link) && !link.Final && r.reached
}

func (r *Remote) try(ctx context.Context, op string, args, result any) error {
	s, err := r.connected(ctx)
	if err != nil {
		return err
	}
	id, answer, err := s.ask(op, args)
	if err != nil {
		return err
	}
	reply, err := s.await(ctx, id, answer)
	if err != nil {
		if ctx.Err() != nil {
			s.cancel(id)
		}
		return err
	}
	return reply.into(result)
}

// into decodes the result.
func (a response) into(result any) error {
	if a.Error != nil {
		return a.Error
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	return nil
}

// dial is the making of a connection. It goes on when the caller that began it has lost patience: over a slow link no
// request with a short limit would ever see a login to its end otherwise.
type dial struct {
	done    chan struct{}
	session *session // valid once done is closed
	err     error    // likewise
}

// connected returns the present connection, or waits for a new one when that is dead.
func (r *Remote) connected(ctx context.Context) (*session, error) {
	d, err := r.dial()
	if err != nil {
		return nil, err
	}
	select {
	case <-d.done:
		return d.session, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *Remote) dial() (*dial, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if d := r.dialled; d != nil {
		select {
		case <-d.done:
			if d.err == nil && !d.session.isDead() {
				return d, nil
			}
		default:
			return d, nil
		}
	}
	d, before := &dial{done: make(chan struct{})}, r.dialled
	r.dialled = d
	r.backgroundLocked(func(ctx context.Context) {
		defer close(d.done)
		if before != nil && before.session != nil {
			before.session.close()
		}
		if d.session, d.err = openSession(ctx, r.link, r.hear); d.err == nil {
			r.mu.Lock()
			r.reached = true
			r.mu.Unlock()
		}
	})
	return d, nil
}
