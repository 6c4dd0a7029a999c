package tuner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"sgtune/sglang"
	"sgtune/trial"
)

// ErrExhausted is wrapped by a sampler's error when no configuration is left that may be launched:
// the search is over, not broken.
var ErrExhausted = errors.New("no admitted configuration is left")

// NewSampler returns the sampler of a name of the study file; "" and "physics" are the default.
func NewSampler(name string) (Sampler, error) {
	switch name {
	case "", physicsName:
		return &physicsSampler{}, nil
	case "tpe":
		return started{rest: tpeSampler{}}, nil
	case "random":
		return started{rest: randomSampler{}}, nil
	case "grid":
		return Grid{}, nil
	}
	return nil, fmt.Errorf("sampler %q is not known; use physics, tpe, random or grid", name)
}

// started begins with a few Sobol points and leaves the rest to another sampler. All of it stays
// on the safe side of the learnt memory line.
type started struct{ rest Sampler }

// Sample implements Sampler.
func (s started) Sample(ctx context.Context, p Problem) (Proposal, error) {
	p.Admit = cautious(p)
	if n := sobolStarted(p); n < sobolPoints {
		if c, skipped, ok := sobolNext(newSobol(len(p.Space)), p, p.Admit); ok {
			return Proposal{
				Config: c, Sampler: sobolName, Skipped: skipped,
				Why: fmt.Sprintf("start %d of %d: even cover of the space, so that the search sees all of it once%s", n+1, sobolPoints, passedOver(skipped)),
			}, nil
		}
	}
	return s.rest.Sample(ctx, p)
}

// Recommend implements Sampler.
func (s started) Recommend(ctx context.Context, p Problem) (sglang.Config, error) {
	return s.rest.Recommend(ctx, p)
}

func passedOver(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 point was passed over because it is not admitted"
	}
	return fmt.Sprintf("; %d points were passed over because they are not admitted", n)
}

// randomSampler draws every admitted configuration with equal chance.
type randomSampler struct{}

// Sample implements Sampler.
func (randomSampler) Sample(ctx context.Context, p Problem) (Proposal, error) {
	c, skipped, err := anyAdmitted(ctx, p)
	if err != nil {
		return Proposal{}, err
	}
	return Proposal{Config: c, Sampler: "random", Skipped: skipped, Why: "drawn at random" + passedOver(skipped)}, nil
}

// Recommend implements Sampler.
func (randomSampler) Recommend(_ context.Context, p Problem) (sglang.Config, error) {
	return recommend(p)
}

// Limits of looking for an admitted point.
const (
	randomDraws = 200    // draws before the space is searched in full
	fullSearch  = 50_000 // largest space that is searched in full
)

// anyAdmitted draws points until one is admitted and not taken; after randomDraws misses it looks
// at every point of the space, so that the last admitted one is found.
func anyAdmitted(ctx context.Context, p Problem) (c sglang.Config, skipped int, err error) {
	r, busy := p.random(), p.taken()
	point := make([]float64, len(p.Space))
	for range randomDraws {
		for i := range point {
			point[i] = r.Float64()
		}
		c := p.config(p.Space.At(point))
		if busy[Key(c)] {
			continue
		}
		if p.Admit(c) == nil {
			return c, skipped, nil
		}
		skipped++
	}
	c, err = nearest(ctx, p, func(sglang.Config) float64 { return r.Float64() })
	return c, skipped, err
}

// nearest looks at every point of the space and returns the admitted one that is not taken and has
// the smallest distance.
func nearest(ctx context.Context, p Problem, distance func(sglang.Config) float64) (sglang.Config, error) {
	if p.Space.Size() > fullSearch {
		return nil, fmt.Errorf("%d draws from %d configurations: %w", randomDraws, p.Space.Size(), ErrExhausted)
	}
	busy := p.taken()
	var best sglang.Config
	least := math.Inf(1)
	for c := range p.Space.All() {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		c = p.config(c)
		if busy[Key(c)] {
			continue
		}
		if d := distance(c); d < least && p.Admit(c) == nil {
			best, least = c, d
		}
	}
	if best == nil {
		return nil, fmt.Errorf("all %d configurations of the space were launched, or may not be: %w", p.Space.Size(), ErrExhausted)
	}
	return best, nil
}

// config completes a point of the space with what is set outside of it: a candidate differs from
// what runs today in the searched knobs only.
func (p Problem) config(point sglang.Config) sglang.Config {
	return Canonical(sglang.Merge(p.Base, point))
}

// taken are the configurations that must not be proposed: launched, on their way, or the baseline
// spelled with what every search trial is given (kv-cache-dtype bf16) while it is not lossy.
func (p Problem) taken() map[string]bool {
	keys := taken(p.History, p.Pending)
	if p.Baseline != nil && !lossyConfig(p.Baseline) {
		keys[Key(p.config(p.Baseline))] = true
	}
	return keys
}

// random is a generator that depends on the seed and on how much is known: each turn draws anew.
func (p Problem) random() *rand.Rand {
	return rand.New(rand.NewPCG(uint64(p.Seed), uint64(len(p.History)+len(p.Pending))))
}

// recommend is the configuration with the best measured value; samplers with a model of their own
// know better.
func recommend(p Problem) (sglang.Config, error) {
	var best *trial.Trial
	for _, t := range p.History {
		if counts(t) && (best == nil || *t.Value > *best.Value) {
			best = t
		}
	}
	if best == nil {
		return nil, fmt.Errorf("recommend among %d trials: none has a value", len(p.History))
	}
	return best.Config, nil
}
