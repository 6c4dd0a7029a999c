package tuner

import (
	"context"
	"fmt"
	"slices"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// physicsSampler asks the search engine of tuner/physics. The engine is a function of its facts and of the
// trials in their order, so a study that was killed goes on where it was, and the same history and seed
// give the same proposal. Between two asks it is kept, as far as that holds (keptEngine).
type physicsSampler struct{ kept keptEngine }

const physicsName = "physics"

// Sample implements Sampler. Where the engine has nothing that may be launched, a point is drawn at
// random and Why says so.
func (s *physicsSampler) Sample(ctx context.Context, p Problem) (Proposal, error) {
	if err := context.Cause(ctx); err != nil {
		return Proposal{}, err
	}
	if len(p.Space) == 0 || p.Space.Size() == 0 {
		return Proposal{}, fmt.Errorf("physics: the space is empty: %w", ErrExhausted)
	}
	s.kept.asking.Lock()
	defer s.kept.asking.Unlock()
	defer s.kept.rest()
	m := modelBy(s.kept.of, p)
	m.askTooLarge()
	var pending []physics.Point
	for _, t := range p.Pending {
		point, _ := m.code.point(t.Config, t.Memory)
		pending = append(pending, point)
	}
	suggestion, ok := m.search.Suggest(pending)
	if !ok {
		return drawn(ctx, p, "the models name nothing that may be launched")
	}
	c, ok := m.code.config(suggestion.Point)
	if !ok || m.busy[Key(c)] || p.Admit(c) != nil {
		return drawn(ctx, p, "what the models want may not be launched")
	}
	reason := m.reason(suggestion.Why)
	m.lesson(reason, c)
	return Proposal{
		Config: c, Sampler: physicsName, AbortBelow: suggestion.AbortBelow / m.ratio, Skipped: m.skipped,
		Why: m.sentence(reason), Reason: reason,
	}, nil
}

// Recommend implements Sampler: by what the models believe of the measured configurations, not by the
// luckiest value.
func (*physicsSampler) Recommend(_ context.Context, p Problem) (sglang.Config, error) {
	v, ok := physicsView(p)
	if !ok {
		return recommend(p)
	}
	c, ok := v.recommended()
	if !ok {
		return recommend(p)
	}
	return c, nil
}

func drawn(ctx context.Context, p Problem, because string) (Proposal, error) {
	prop, err := randomSampler{}.Sample(ctx, p)
	if err != nil {
		return Proposal{}, fmt.Errorf("physics: %s: %w", because, err)
	}
	prop.Why = "drawn at random, because " + because + passedOver(prop.Skipped)
	return prop, nil
}

// model is the engine after a problem's history.
type model struct {
	problem Problem
	code    *codedSpace
	search  *physics.Search
	ratio   float64 // output tokens a second in one unit of the objective
	busy    map[string]bool
	skipped int // candidates that were not admitted
	learnt  int // trials that said something
	valued  int // of these, with a value
}

// newModel builds an engine of its own.
func newModel(p Problem) *model { return modelBy((&keptEngine{}).of, p) }

// modelBy has an engine shown every finished trial, in the order in which they ended.
func modelBy(engine func(physics.Space, physics.Facts, []physics.Observation) *physics.Search, p Problem) *model {
	m := &model{problem: p, code: newCodedSpace(p), ratio: ratio(p), busy: p.taken()}
	var seen []physics.Observation
	for _, t := range byEnd(p.History) {
		if o, ok := m.code.observe(p, t); ok {
			seen = append(seen, o)
			m.learnt++
			if o.Status == physics.OK || o.Status == physics.Pruned {
				m.valued++
			}
		}
	}
	m.search = engine(m.code.coded, m.code.facts(p, len(seen), m.admitter()), seen)
	return m
}

// byEnd are trials in the order in which they ended: where several run at once, not that of their numbers.
func byEnd(trials []*trial.Trial) []*trial.Trial {
	return slices.SortedStableFunc(slices.Values(trials), func(a, b *trial.Trial) int { return a.EndedAt.Compare(b.EndedAt) })
}

// admitter is what may be proposed: admitted, not launched yet, and not on its way. Answers are
// kept: the engine may look at a point more than once, and nothing changes within a turn.
func (m *model) admitter() func(physics.Point) bool {
	known := map[string]bool{}
	return func(point physics.Point) bool {
		c, ok := m.code.config(point)
		if !ok {
			return false
		}
		key := Key(c)
		if m.busy[key] {
			return false
		}
		admitted, asked := known[key]
		if !asked {
			admitted = m.problem.Admit == nil || m.problem.Admit(c) == nil
			known[key] = admitted
			if !admitted {
				m.skipped++
			}
		}
		return admitted
	}
}

// askTooLarge asks the admission about host pools that the engine leaves out by itself, so that a
// person hears which values the host's memory keeps out, and by how much.
func (m *model) askTooLarge() {
	p := m.problem
	d, searched := p.Space.Dim(hicacheSize)
	ranks := float64(Ranks(sglang.Merge(p.Flags, p.Base)))
	if !searched || p.PoolGB <= 0 {
		return
	}
	for _, v := range d.Values {
		if size, ok := v.(float64); ok && size*ranks > p.PoolGB {
			_ = p.Admit(sglang.Merge(p.today(), sglang.Config{hicacheSize: size})) // the loop stores refusals
		}
	}
}

// trialAt is a trial that measured a point: the one whose value counts, the baseline before others.
func (m *model) trialAt(point physics.Point) *trial.Trial {
	var found *trial.Trial
	for _, t := range m.problem.History {
		if !counts(t) {
			continue
		}
		at, _ := m.code.point(t.Config, t.Memory)
		if m.code.same(at, point) && (found == nil || found.Role == trial.RoleConfirm) {
			found = t
		}
	}
	return found
}
