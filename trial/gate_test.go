package trial_test

import (
	"context"
	"sync"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// gate stands between a runner and its host and store: every call goes through it, and its rule may hold the call
// up, before or after it has had its effect. A runner behind a gate that lets nothing pass any more has died.
type gate struct {
	host  *fakeHost
	store *fakeStore
	rule  func(ctx context.Context, call string, after bool) error

	mu   sync.Mutex
	step trial.Step // of the last row that was to be stored
}

// through does a call if the rule lets it pass.
func through[T any](g *gate, ctx context.Context, call string, do func() (T, error)) (T, error) {
	g.mu.Lock()
	call += "@" + string(g.step)
	g.mu.Unlock()
	if err := g.rule(ctx, call, false); err != nil {
		var none T
		return none, err
	}
	result, err := do()
	if held := g.rule(ctx, call, true); held != nil {
		return result, held
	}
	return result, err
}

func (g *gate) SaveTrial(ctx context.Context, t *trial.Trial) error {
	g.mu.Lock()
	g.step = t.Step
	g.mu.Unlock()
	call := "save"
	if t.State.Finished() {
		call = "save finished"
	}
	_, err := through(g, ctx, call, func() (struct{}, error) { return struct{}{}, g.store.SaveTrial(ctx, t) })
	return err
}

func (g *gate) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := through(g, ctx, "start", func() (host.Process, error) { return g.host.Start(ctx, c) })
	if err != nil {
		return nil, err
	}
	return gatedProcess{p, g}, nil
}

func (g *gate) Find(ctx context.Context, marker string) ([]host.Process, error) {
	list, err := through(g, ctx, "find", func() ([]host.Process, error) { return g.host.Find(ctx, marker) })
	for i, p := range list {
		list[i] = gatedProcess{p, g}
	}
	return list, err
}

func (g *gate) Usage(ctx context.Context) (host.Usage, error) {
	return through(g, ctx, "usage", func() (host.Usage, error) { return g.host.Usage(ctx) })
}

func (g *gate) Reach(ctx context.Context, port int) (host.Endpoint, error) {
	return through(g, ctx, "reach", func() (host.Endpoint, error) { return g.host.Reach(ctx, port) })
}

func (g *gate) Lease(ctx context.Context, who string) (func() error, error) {
	return g.host.Lease(ctx, who)
}

type gatedProcess struct {
	host.Process
	gate *gate
}

func (p gatedProcess) Log(ctx context.Context, offset int64, limit int) ([]byte, error) {
	return through(p.gate, ctx, "log", func() ([]byte, error) { return p.Process.Log(ctx, offset, limit) })
}

func (p gatedProcess) Stop(ctx context.Context, grace time.Duration) error {
	_, err := through(p.gate, ctx, "stop", func() (struct{}, error) { return struct{}{}, p.Process.Stop(ctx, grace) })
	return err
}
