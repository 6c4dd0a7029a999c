package benchmark

import (
	"math"
	"sync"
	"time"
)

// meter counts the tokens of one client for the ledger. A level at full speed books hundreds of thousands of
// events a second, from all clients at once, so each client counts for itself, and only when a time stamp
// falls into another slot is the sum handed on. Its lock has one taker but for a moment per window.
type meter struct {
	ledger *ledger

	mu             sync.Mutex
	from, to       time.Duration // the stretch that the counts below belong to: within one second and one window
	inside         bool          // before the end of the measured time
	output, prompt int64
}

// meter returns a new client's.
func (l *ledger) meter() *meter {
	m := &meter{ledger: l, from: 1} // an empty stretch: the first token sets it
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meters = append(l.meters, m)
	return m
}

// tokens books completion tokens, and prompt tokens where they come first.
func (m *meter) tokens(at time.Time, output, prompt int) {
	d := max(0, at.Sub(m.ledger.start))
	m.mu.Lock()
	// The end may have been set after the stretch was.
	if d < m.from || d >= m.to || m.inside != (int64(d) < m.ledger.end.Load()) {
		m.flush()
		m.stretch(d)
	}
	m.output += int64(output)
	m.prompt += int64(prompt)
	m.mu.Unlock()
	if prompt > 0 {
		m.ledger.prompt.Add(int64(prompt))
	}
}

// stretch sets the stretch around d.
func (m *meter) stretch(d time.Duration) {
	l := m.ledger
	width, end := l.windows.width, time.Duration(l.end.Load())
	m.from = max(d-d%width, d-d%time.Second)
	m.to = min(d-d%width+width, d-d%time.Second+time.Second)
	if m.inside = d < end; m.inside {
		m.to = min(m.to, end)
	} else if end != math.MaxInt64 {
		m.from = max(m.from, end)
	}
}

// flush hands the counts to the ledger. m.mu is held.
func (m *meter) flush() {
	if m.output == 0 && m.prompt == 0 {
		return
	}
	l := m.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signs += m.output + m.prompt
	booked := []*slot{l.seconds.at(m.from)}
	if m.inside {
		booked = append(booked, l.windows.at(m.from))
	}
	for _, s := range booked {
		s.output += m.output
		s.prompt += m.prompt
	}
	m.output, m.prompt = 0, 0
}

// gather makes the ledger complete up to now.
func (l *ledger) gather() {
	l.mu.Lock()
	meters := l.meters
	l.mu.Unlock()
	for _, m := range meters {
		m.mu.Lock()
		m.flush()
		m.mu.Unlock()
	}
}
