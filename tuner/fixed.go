package tuner

import (
	"context"
	"fmt"

	"sgtune/sglang"
)

// Grid proposes a short list of points in order: Points, or the whole space when that is empty.
// The learnt memory line is not asked (a person chose the points); proven failures are.
type Grid struct {
	Points []sglang.Config
	Name   string // shown as the trial's sampler, "grid" when empty
}

// Sample returns the first point that may be launched and has not been.
func (g Grid) Sample(ctx context.Context, p Problem) (Proposal, error) {
	busy := p.taken()
	name := g.Name
	if name == "" {
		name = "grid"
	}
	number, skipped := 0, 0
	for c := range g.points(p) {
		if err := context.Cause(ctx); err != nil {
			return Proposal{}, err
		}
		number++
		if busy[Key(c)] {
			continue
		}
		if p.Admit(c) != nil {
			skipped++
			continue
		}
		return Proposal{Config: c, Sampler: name, Skipped: skipped, Why: fmt.Sprintf("point %d of the list", number)}, nil
	}
	return Proposal{}, fmt.Errorf("grid: all %d points were looked at: %w", number, ErrExhausted)
}

// Recommend names the configuration with the best measured value.
func (Grid) Recommend(_ context.Context, p Problem) (sglang.Config, error) { return recommend(p) }

func (g Grid) points(p Problem) func(yield func(sglang.Config) bool) {
	return func(yield func(sglang.Config) bool) {
		for _, c := range g.Points {
			if !yield(p.config(c)) {
				return
			}
		}
		if len(g.Points) > 0 {
			return
		}
		for c := range p.Space.All() {
			if !yield(p.config(c)) {
				return
			}
		}
	}
}
