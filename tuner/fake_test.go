package tuner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// errKilled is what a killed program panics with: nothing after it runs.
var errKilled = errors.New("killed")

// memStore is a Store in memory. Rows go in as JSON and come out as copies, so nobody shares memory
// with it, and finished rows change in their void mark only. It can kill the program at its nth write, before
// or after the write took effect.
type memStore struct {
	mu        sync.Mutex
	rows      map[int]*trial.Trial
	record    []byte
	events    []tuner.Event
	commands  []tuner.Command
	writes    int
	killAt    int // 0 = never
	killAfter bool
	dead      bool // it stays killed: what runs beside cannot write either
}

func newStore() *memStore { return &memStore{rows: map[int]*trial.Trial{}} }

func (s *memStore) write(do func() error) error {
	s.writes++
	if s.writes == s.killAt && !s.killAfter || s.dead && s.writes > s.killAt {
		panic(errKilled)
	}
	if err := do(); err != nil {
		return err
	}
	if s.writes == s.killAt {
		panic(errKilled)
	}
	return nil
}

func (s *memStore) SaveTrial(_ context.Context, t *trial.Trial) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(func() error {
		row, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if old, ok := s.rows[t.Number]; ok {
			was, now := old, decode(row)
			if was.State.Finished() {
				now.Void = was.Void
				if !cmp.Equal(was, now) {
					return fmt.Errorf("trial %d is finished (%s) and cannot change", t.Number, was.State)
				}
			} else if was.State != t.State && !was.State.CanBecome(t.State) {
				return fmt.Errorf("trial %d cannot go from %s to %s", t.Number, was.State, t.State)
			}
		}
		s.rows[t.Number] = decode(row)
		return nil
	})
}

func (s *memStore) VoidTrial(_ context.Context, _ string, number int, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(func() error {
		row := s.rows[number]
		if row == nil || !row.State.Finished() {
			return fmt.Errorf("void trial %d: %w", number, tuner.ErrNoTrial)
		}
		row.Void = reason
		return nil
	})
}

func decode(row []byte) *trial.Trial {
	t := &trial.Trial{}
	if err := json.Unmarshal(row, t); err != nil {
		panic(err)
	}
	return t
}

func (s *memStore) Trials(context.Context, string) ([]*trial.Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*trial.Trial
	for _, row := range s.rows {
		again := *row
		again.Levels = slices.Clone(row.Levels)
		out = append(out, &again)
	}
	slices.SortFunc(out, func(a, b *trial.Trial) int { return a.Number - b.Number })
	return out, nil
}

func (s *memStore) SaveStudy(_ context.Context, r *tuner.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(func() error {
		var err error
		s.record, err = json.Marshal(r)
		return err
	})
}

func (s *memStore) Record() *tuner.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &tuner.Record{}
	if s.record != nil {
		if err := json.Unmarshal(s.record, r); err != nil {
			panic(err)
		}
	}
	return r
}

func (s *memStore) AddEvent(_ context.Context, _ string, e tuner.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(func() error { s.events = append(s.events, e); return nil })
}

func (s *memStore) TakeCommand(context.Context, string) (*tuner.Command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.commands) == 0 {
		return nil, nil
	}
	c := s.commands[0]
	s.commands = s.commands[1:]
	return &c, nil
}

func (s *memStore) push(c tuner.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, c)
}

func (s *memStore) texts(kind string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		if e.Kind == kind {
			out = append(out, e.Text)
		}
	}
	return out
}

// fakeClock is virtual time: it moves when somebody advances it.
type fakeClock struct {
	mu      sync.Mutex
	now     time.Time
	waiters []waiter
}

type waiter struct {
	at time.Time
	ch chan time.Time
}

func newClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Sleep(_ context.Context, d time.Duration) error { c.advance(d); return nil }

func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := waiter{at: c.now.Add(d), ch: make(chan time.Time, 1)}
	if d <= 0 {
		w.ch <- c.now
	} else {
		c.waiters = append(c.waiters, w)
	}
	return w.ch
}

func (c *fakeClock) Scale() float64 { return 1 }

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waiters = slices.DeleteFunc(c.waiters, func(w waiter) bool {
		if w.at.After(c.now) {
			return false
		}
		w.ch <- c.now
		return true
	})
}

// fakeHost hands the host over; it counts what it was asked.
type fakeHost struct {
	store   tuner.Store
	facts   tuner.HostFacts
	fail    map[string]error // by first word of a program
	dirty   bool
	ran     []string
	started []sglang.Config
}

func newHost(store tuner.Store) *fakeHost {
	gpus := make([]tuner.GPUFact, 8)
	for i := range gpus {
		gpus[i] = tuner.GPUFact{Index: i, Name: "GPU", Total: 96 << 30}
	}
	return &fakeHost{store: store, facts: tuner.HostFacts{
		Name: "simulated", MemTotal: 449e9, MemAvailable: 440e9, CgroupHeadroom: -1, GPUs: gpus,
	}}
}

func (h *fakeHost) Recover(ctx context.Context, running []*trial.Trial) error {
	if h.dirty {
		return trial.ErrDirtyHost
	}
	for _, t := range running {
		t.State, t.EndedAt = trial.Failed, t.StartedAt
		t.Verdict = trial.Verdict{Outcome: trial.Aborted, Cause: "operator_signal", Blames: trial.BlameNo, Text: "sgtune was killed"}
		if err := h.store.SaveTrial(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (h *fakeHost) Facts(context.Context) (tuner.HostFacts, error) { return h.facts, nil }

func (h *fakeHost) Run(_ context.Context, argv []string) error {
	h.ran = append(h.ran, argv[0])
	return h.fail[argv[0]]
}

func (h *fakeHost) Launch(_ context.Context, c sglang.Config) (string, error) {
	h.started = append(h.started, c)
	return "pid 4711", nil
}

// fakeRunner is a host with a model on it, in virtual time: the founding case's memory arithmetic
// and a throughput that grows with KV tokens, host pool and chunk.
type fakeRunner struct {
	store tuner.Store
	clock *fakeClock
	rng   *rand.Rand
	noise float64
	scale float64 // of every value, 0 = 1
	// script overrides the model for a launch; nil means the model's own answer.
	script func(t *trial.Trial) *trial.Verdict
	during func(ctx context.Context, t *trial.Trial) // while it runs
	order  []string                                  // roles and sides as launched
}

const (
	modelT, modelA, modelRuntime = 94.037, 21.7085, 5.81 // GiB
	modelCell                    = 70272.0               // bytes a token
	loadTime, levelTime          = 3 * time.Minute, 4 * time.Minute
)

func newRunner(store tuner.Store, clock *fakeClock, seed uint64) *fakeRunner {
	return &fakeRunner{store: store, clock: clock, rng: rand.New(rand.NewPCG(seed, 1)), noise: 0.004}
}

func knob(c sglang.Config, name string, def float64) float64 {
	if v, ok := c.Float(name); ok {
		return v
	}
	return def
}

// observe is the start-up log of a configuration.
func observe(c sglang.Config) sglang.Observation {
	f := knob(c, "mem-fraction-static", 0.85)
	tokens := sglang.KVTokens(modelT, modelA, f, modelCell, 1)
	pool := float64(tokens) * modelCell / (1 << 30)
	free := modelT*(1-f) - modelRuntime
	return sglang.Observation{
		Fraction: f, TP: 8, KVDtype: "torch.bfloat16", PageSize: 1, ChunkedPrefill: int(knob(c, "chunked-prefill-size", 8192)),
		BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71, KVGiB: math.Round(pool*100) / 100, Tokens: tokens,
		AfterGraphGiB: math.Round(free*100) / 100, AvailableGiB: math.Round(free*100) / 100,
	}
}

// need is what prefill takes of the free memory, which the tuner is not told.
func need(c sglang.Config) float64 { return 0.35 + 0.13*knob(c, "chunked-prefill-size", 8192)/1024 }

// speed is the true value of a configuration.
func speed(c sglang.Config) float64 {
	tokens := float64(observe(c).Tokens)
	hit := 1 + 0.25*(1-math.Exp(-knob(c, "hicache-size", 0)/24))
	chunk := 1 - 0.04*math.Abs(math.Log2(knob(c, "chunked-prefill-size", 8192)/8192))
	cons := 1 - 0.15*math.Pow(knob(c, "schedule-conservativeness", 1)-0.7, 2)
	return 750 * math.Pow(tokens/116171, 0.6) * hit * chunk * cons
}

func (r *fakeRunner) Run(ctx context.Context, t *trial.Trial) error {
	r.order = append(r.order, string(t.Role)+" "+t.Config.Text("mem-fraction-static"))
	t.State, t.StartedAt = trial.Running, r.clock.Now()
	if err := r.store.SaveTrial(context.WithoutCancel(ctx), t); err != nil {
		return err
	}
	if r.during != nil {
		r.during(ctx, t)
	}
	r.clock.advance(loadTime)
	v := r.verdict(ctx, t)
	t.Verdict = *v
	if v.Outcome == trial.OK {
		r.measure(t)
	} else if t.State == trial.Running {
		t.State = trial.Failed
	}
	t.EndedAt = r.clock.Now()
	dirty := v.Outcome == trial.DirtyHost
	if err := r.store.SaveTrial(context.WithoutCancel(ctx), t); err != nil {
		return err
	}
	if dirty {
		return fmt.Errorf("trial %d: %w: pid 99 holds 12 GB of GPU 3", t.Number, trial.ErrDirtyHost)
	}
	return nil
}

func (r *fakeRunner) verdict(ctx context.Context, t *trial.Trial) *trial.Verdict {
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if errors.Is(cause, trial.ErrStopped) {
			t.State = trial.Cancelled
		}
		if errors.Is(cause, trial.ErrVoid) {
			t.Void = cause.Error()
		}
		return &trial.Verdict{Outcome: trial.Aborted, Cause: "operator_signal", Blames: trial.BlameNo, Text: cause.Error()}
	}
	if r.script != nil {
		if v := r.script(t); v != nil {
			return v
		}
	}
	t.Memory = observe(t.Config)
	if t.Memory.AfterGraphGiB < need(t.Config) {
		return &trial.Verdict{
			Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Blames: trial.BlameYes,
			Text: "out of GPU memory in prefill",
		}
	}
	return &trial.Verdict{Outcome: trial.OK, Phase: sglang.PhaseDecode, Cause: "none", Blames: trial.BlameYes, Text: "ran"}
}

func (r *fakeRunner) measure(t *trial.Trial) {
	t.State, t.Startup = trial.Complete, loadTime
	if t.Memory.AfterGraphGiB > 0 {
		t.LowWater = int64((t.Memory.AfterGraphGiB - need(t.Config)) * (1 << 30))
	}
	for _, n := range t.Plan {
		v := speed(t.Config) * (1 + r.noise*r.rng.NormFloat64()) * (1 - math.Abs(float64(n)-120)/400)
		if r.scale > 0 {
			v *= r.scale
		}
		rep := &benchmark.Report{OutputTokS: v, OutputLow: v * 0.99, OutputHigh: v * 1.01, RequestsS: v / 300, Valid: true}
		for range 6 {
			rep.Windows = append(rep.Windows, benchmark.Window{Output: v, Seconds: 10})
		}
		rep.Requests.Sent, rep.Requests.OK, rep.Tokens.Got = 100, 100, 30000
		t.Levels = append(t.Levels, trial.Level{Concurrency: n, Report: rep})
		r.clock.advance(levelTime)
		if t.Value == nil || v > *t.Value {
			t.Value, t.Best = &v, n
		}
	}
}
