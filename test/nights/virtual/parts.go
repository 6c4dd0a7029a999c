package virtual

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"sgtune/internal/simulator"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// clock is virtual time; whoever simulates sets it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)} }

// Now implements benchmark.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep implements benchmark.Clock: time passes at once.
func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.set(c.Now().Add(d))
	return nil
}

// After implements benchmark.Clock. Nobody in a virtual night waits for a time: it never fires.
func (c *clock) After(time.Duration) <-chan time.Time { return nil }

// Scale implements benchmark.Clock.
func (c *clock) Scale() float64 { return 1 }

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// memory is a tuner.Store without a file. Rows go through JSON, as through the database, so that nobody shares
// memory with it.
type memory struct {
	mu     sync.Mutex
	rows   map[int]*trial.Trial
	record tuner.Record
	events []tuner.Event
}

func newMemory() *memory { return &memory{rows: map[int]*trial.Trial{}} }

// SaveTrial implements trial.Saver.
func (m *memory) SaveTrial(_ context.Context, t *trial.Trial) error {
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("save trial %d: %w", t.Number, err)
	}
	row := &trial.Trial{}
	if err := json.Unmarshal(text, row); err != nil {
		return fmt.Errorf("save trial %d: %w", t.Number, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[t.Number] = row
	return nil
}

// VoidTrial implements tuner.Store.
func (m *memory) VoidTrial(_ context.Context, _ string, number int, reason string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	row := m.rows[number]
	if row == nil || !row.State.Finished() {
		return fmt.Errorf("void trial %d: %w", number, tuner.ErrNoTrial)
	}
	row.Void = reason
	return nil
}

// Trials implements tuner.Store.
func (m *memory) Trials(context.Context, string) ([]*trial.Trial, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*trial.Trial, 0, len(m.rows))
	for _, row := range m.rows {
		again := *row
		out = append(out, &again)
	}
	slices.SortFunc(out, func(a, b *trial.Trial) int { return a.Number - b.Number })
	return out, nil
}

// SaveStudy implements tuner.Store.
func (m *memory) SaveStudy(_ context.Context, r *tuner.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = *r
	return nil
}

// AddEvent implements tuner.Store.
func (m *memory) AddEvent(_ context.Context, _ string, e tuner.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
	return nil
}

// TakeCommand implements tuner.Store: nobody asks for anything.
func (m *memory) TakeCommand(context.Context, string) (*tuner.Command, error) { return nil, nil }

// machine is a tuner.Host that is always idle and clean.
type machine struct{ facts tuner.HostFacts }

// machineOf is the study's simulated machine as cmd/sgtune sees it before a launch.
func machineOf(s *tuner.Study) (*machine, error) {
	p, err := simulator.Lookup(s.Host.Profile)
	if err != nil {
		return nil, err
	}
	f := tuner.HostFacts{
		Name: "simulated " + p.Name, MemTotal: int64(s.Host.RAMBytes), MemAvailable: int64(available(s)), CgroupHeadroom: -1,
	}
	for i := range p.Ranks {
		f.GPUs = append(f.GPUs, tuner.GPUFact{Index: i, Name: "simulated GPU", Total: int64(p.GPUTotalMiB) << 20, Used: idleMiB << 20})
	}
	return &machine{facts: f}, nil
}

// What a simulated host of the program holds when nothing runs: host memory of its system, memory of each GPU.
const (
	systemRAM = 9e9
	idleMiB   = 600
)

// available is the host memory before a launch, bytes.
func available(s *tuner.Study) float64 { return s.Host.RAMBytes - systemRAM }

// Recover implements tuner.Host.
func (*machine) Recover(context.Context, []*trial.Trial) error { return nil }

// Facts implements tuner.Host.
func (m *machine) Facts(context.Context) (tuner.HostFacts, error) { return m.facts, nil }

// Run implements tuner.Host.
func (*machine) Run(context.Context, []string) error { return nil }

// Launch implements tuner.Host.
func (*machine) Launch(context.Context, sglang.Config) (string, error) { return "virtual", nil }
