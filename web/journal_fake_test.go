package web_test

import (
	"context"

	"sgtune/tuner"
)

// Happened implements web.Journal: the first event is 1.
func (m *memory) Happened(_ context.Context, _ string, after int64, limit int) ([]tuner.Happened, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []tuner.Happened
	for i, e := range m.happened {
		if id := int64(i + 1); id > after && len(out) < limit {
			out = append(out, tuner.Happened{ID: id, Event: e})
		}
	}
	return out, m.broken
}

// Pulse implements web.Lists.
func (m *memory) Pulse(ctx context.Context, name string) (*tuner.Summary, error) {
	return m.Summary(ctx, name)
}

// Pulses implements web.Lists.
func (m *memory) Pulses(ctx context.Context) ([]tuner.Summary, error) { return m.Studies(ctx) }

// Asked implements web.Journal.
func (m *memory) Asked(context.Context, string, int) ([]tuner.Command, error) { return nil, m.broken }

// Tally implements web.Journal.
func (m *memory) Tally(context.Context) ([]tuner.Tally, error) { return nil, m.broken }

// happen adds an event.
func (m *memory) happen(e tuner.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.happened = append(m.happened, e)
}
