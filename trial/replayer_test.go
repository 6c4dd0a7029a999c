package trial_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"sgtune/benchmark"
	"sgtune/trial"
)

// besideServer is a Replayer that does what an agent does, in this process. It keeps what it was asked.
type besideServer struct {
	clock benchmark.Clock
	w     *benchmark.Workload
	lose  map[int]bool // loads (from 1) that are lost on the way

	mu    sync.Mutex
	asked []trial.Rows
}

func (b *besideServer) Replay(ctx context.Context, target benchmark.Target, rows trial.Rows, opts benchmark.Options, each func(benchmark.Request)) (*benchmark.Report, int, error) {
	b.mu.Lock()
	b.asked = append(b.asked, rows)
	n := len(b.asked)
	b.mu.Unlock()
	if b.lose[n] {
		return nil, 0, fmt.Errorf("%w: the link was cut", trial.ErrLoadLost)
	}
	taken := &counted{Feed: benchmark.NewFeed(b.w, rows.From, rows.To, rows.Salt, rows.Palette)}
	for range rows.Skip {
		taken.Next()
	}
	opts.Clock = b.clock
	report, err := benchmark.Run(ctx, target, taken, opts, each)
	return report, taken.n, err
}

// counted counts the prompts that were taken.
type counted struct {
	benchmark.Feed
	mu sync.Mutex
	n  int
}

func (c *counted) Next() benchmark.Prompt {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.Feed.Next()
}

// TestReplayer: with a Replayer all loads go its way; the levels share one feed, and a load that was lost is put on
// the server again, with rows that were not sent before.
func TestReplayer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lose  map[int]bool
		loads int
		state trial.State
	}{
		{"nothing lost", nil, 3, trial.Complete},
		{"canary lost", map[int]bool{1: true}, 4, trial.Complete},
		{"a level lost", map[int]bool{2: true}, 4, trial.Complete},
		{"a level lost each time", map[int]bool{2: true, 3: true, 4: true}, 4, trial.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial(2, 4)
			beside := &besideServer{clock: h.clock, w: r.Load.Workload, lose: c.lose}
			r.Replayer = beside
			if err := r.Run(t.Context(), tr); err != nil && !errors.Is(err, trial.ErrLoadLost) {
				t.Fatal(err)
			}
			if tr.State != c.state && tr.Verdict.Outcome != trial.BenchInvalid { // a busy machine makes the client late
				t.Errorf("state %s, verdict %+v", tr.State, tr.Verdict)
			}
			if len(beside.asked) != c.loads {
				t.Fatalf("%d loads, want %d", len(beside.asked), c.loads)
			}
			if a := beside.asked[0]; a.Longest == 0 || a.Short == 0 || a.Salt != "night/canary" {
				t.Errorf("canary %+v", a)
			}
			last := 0
			for _, a := range beside.asked {
				if a.Salt != "night" {
					continue
				}
				if a.From != 0 || a.To != 60 || a.Skip < last || last > 0 && a.Skip == last {
					t.Errorf("level %+v after %d prompts", a, last)
				}
				last = max(last, a.Skip)
			}
		})
	}
}
