package replayjob

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"sgtune/benchmark"
)

const (
	sampleInterval = 250 * time.Millisecond // finished requests are sent together
	sampleBatch    = 256                    // or when there are so many
)

// outbox sends events in the order they were put. Putting never waits for the link: the level's clients
// would wait with it.
type outbox struct {
	out    io.Writer
	broken func(error) // called once, when nothing can be written any more

	wake chan struct{}
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	queue   []Event
	samples []benchmark.Request
	seen    Progress
	closed  bool
	sent    bool // everything was written before the end
}

func newOutbox(out io.Writer, broken func(error)) *outbox {
	b := &outbox{out: out, broken: broken, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go b.write()
	return b
}

// put sends e after everything before it, the waiting samples too.
func (b *outbox) put(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushSamples()
	b.queue = append(b.queue, e)
	b.hurry()
}

// finished counts a request and, when it is wanted, sends it with the next batch.
func (b *outbox) finished(q benchmark.Request, wanted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.Finished++
	if q.Failed != "" {
		b.seen.Failed++
	}
	if !wanted {
		return
	}
	if b.samples = append(b.samples, q); len(b.samples) >= sampleBatch {
		b.hurry()
	}
}

// close sends what is left and waits for it, at most limit: a link that takes nothing more must not keep
// the agent alive.
func (b *outbox) close(limit time.Duration) {
	b.mu.Lock()
	b.closed = true
	b.hurry()
	b.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-b.done:
	case <-timer.C:
	}
}

// delivered reports whether everything was written. It is for after close.
func (b *outbox) delivered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent
}

// hurry wakes the writer. b.mu is held.
func (b *outbox) hurry() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// flushSamples moves the waiting samples into the queue. b.mu is held.
func (b *outbox) flushSamples() {
	if len(b.samples) > 0 {
		b.queue = append(b.queue, Event{Samples: b.samples})
		b.samples = nil
	}
}

// write is the writer's goroutine.
func (b *outbox) write() {
	defer close(b.done)
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	beat := time.Now()
	for {
		select {
		case <-b.wake:
		case <-tick.C:
		}
		var due *Progress
		if now := time.Now(); now.Sub(beat) >= BeatInterval {
			beat, due = now, &Progress{At: now}
		}
		events, closed := b.take(due)
		for _, e := range events {
			if _, err := b.out.Write(encode(e)); err != nil {
				b.broken(fmt.Errorf("write an event to the caller: %w", err))
				return
			}
		}
		if closed {
			b.mu.Lock()
			b.sent = true
			b.mu.Unlock()
			return
		}
	}
}

// encode is the line of an event. A figure that JSON cannot hold is a fault of ours, which the caller is told
// in its place.
func encode(e Event) []byte {
	line, err := json.Marshal(e)
	if err != nil {
		line, _ = json.Marshal(Event{Error: &Failure{FailedInternal, "an event cannot be written: " + err.Error()}}) // texts always can
	}
	return append(line, '\n')
}

// take empties the box; beat is filled in and comes last.
func (b *outbox) take(beat *Progress) (events []Event, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushSamples()
	events, b.queue = b.queue, nil
	if beat != nil && !b.closed {
		beat.Finished, beat.Failed = b.seen.Finished, b.seen.Failed
		events = append(events, Event{Beat: beat})
	}
	return events, b.closed
}
