package benchmark

import (
	"context"
	"sync"
	"time"
)

// dialAtOnce is how many connections are dialled ahead at a time: fewer than any server's backlog.
const dialAtOnce = 64

// connect dials the senders' connections before the level starts, so that no latency of it contains that. What
// cannot be dialled now fails again, and is counted, when a request needs it.
func connect(ctx context.Context, senders []*sender) {
	var dialling sync.WaitGroup
	queue := make(chan *sender)
	for range min(dialAtOnce, len(senders)) {
		dialling.Go(func() {
			dead := false
			for s := range queue {
				dead = dead || s.connect(ctx) != nil // no further one is waited for after a failure
			}
		})
	}
	for _, s := range senders {
		queue <- s
	}
	close(queue)
	dialling.Wait()
}

// closedLoop starts the clients, all at once or evenly over the ramp.
func (lv *level) closedLoop(ctx context.Context, senders []*sender) {
	for i, s := range senders {
		lv.book(s)
		begin := lv.ledger.start.Add(lv.opts.Ramp / time.Duration(len(senders)) * time.Duration(i))
		lv.clients.Go(func() {
			if lv.until(ctx, begin) {
				lv.client(ctx, s)
			}
		})
	}
}

// client is one user of the closed loop. Its next request is due the moment the previous one ended, later turns
// of a conversation after their pause: what passes until it is sent, building its prompt too, is the client's
// own lag. The first one is due when the client begins, which a thousand clients do one after the other.
func (lv *level) client(ctx context.Context, s *sender) {
	due := lv.opts.Clock.Now()
	failures, follows := 0, false
	var p Prompt
	for lv.take(follows) {
		if !follows {
			p = lv.feed.Next()
		}
		a := lv.request(ctx, s, p, due, false)
		if a.cut {
			return
		}
		due = due.Add(a.E2E)
		var rest time.Duration
		if p, rest, follows = follow(p, a); follows && rest > 0 {
			if due = due.Add(rest); !lv.until(ctx, due) {
				return
			}
		}
		if failures = nextFailures(failures, a); failures > 0 {
			if !lv.pause(ctx, failures) {
				return
			}
			due = lv.opts.Clock.Now()
		}
	}
}

// follow is the next turn of a conversation.
func follow(p Prompt, a answer) (next Prompt, pause time.Duration, ok bool) {
	if p.Follow == nil || a.Failed != "" || a.cut {
		return Prompt{}, 0, false
	}
	return p.Follow(a.said)
}

// nextFailures counts failures in a row that cost the server nothing; a client must not hammer on them.
func nextFailures(n int, a answer) int {
	switch a.Failed {
	case failedRefused, failedReset, failedStatus, failedCut, failedStream:
		return n + 1
	}
	return 0
}
