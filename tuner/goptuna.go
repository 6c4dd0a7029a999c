package tuner

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/sobol"
	"github.com/c-bata/goptuna/tpe"

	"sgtune/sglang"
	"sgtune/trial"
)

// goptuna has habits that must not leave this file: a study with storage, global randomness,
// panics on bad input, no constraints. It is used as ask and tell on an in-memory study that is
// rebuilt from history at each ask; constraints, repeats and fallbacks are ours. Its answers are
// not a function of the seed (it draws from the global math/rand too): the stored proposal is the
// record, and no test may expect a certain answer.

// newSobol starts goptuna's Sobol engine for a space of dims dimensions.
func newSobol(dims int) sequence { return sobol.NewEngine(uint32(dims)) }

// tpeSampler asks goptuna's tree-structured Parzen estimator.
type tpeSampler struct{}

const (
	tpeStartup = 4  // finished trials below which goptuna itself draws at random
	tpeAsks    = 24 // suggestions looked at before the nearest admitted point is taken
)

// Sample implements Sampler. TPE has no memory of what it may not propose: of its suggestions the
// first admitted and new one is taken; when all are taken, the admitted point closest to the last.
// When goptuna fails, the point is drawn at random and Why says so.
func (tpeSampler) Sample(ctx context.Context, p Problem) (Proposal, error) {
	busy, r := p.taken(), p.random()
	skipped := 0
	var last sglang.Config
	for range tpeAsks {
		if err := context.Cause(ctx); err != nil {
			return Proposal{}, err
		}
		index, err := suggest(p, r)
		if err != nil {
			return atRandom(ctx, p, err)
		}
		last = p.config(p.Space.Config(index))
		if busy[Key(last)] {
			continue
		}
		if p.Admit(last) == nil {
			why := "tree-structured Parzen estimator: resembles the better trials more than the worse ones"
			return Proposal{Config: last, Sampler: "tpe", Skipped: skipped, Why: why + passedOver(skipped)}, nil
		}
		skipped++
	}
	c, err := nearest(ctx, p, func(c sglang.Config) float64 { return p.Space.distance(c, last) + 1e-6*r.Float64() })
	if err != nil {
		return Proposal{}, fmt.Errorf("tpe: %w", err)
	}
	return Proposal{Config: c, Sampler: "tpe", Skipped: skipped, Why: "nearest new admitted point to what the tree-structured Parzen estimator suggests"}, nil
}

// Recommend implements Sampler.
func (tpeSampler) Recommend(_ context.Context, p Problem) (sglang.Config, error) { return recommend(p) }

func atRandom(ctx context.Context, p Problem, cause error) (Proposal, error) {
	prop, err := randomSampler{}.Sample(ctx, p)
	prop.Why = fmt.Sprintf("drawn at random, because the Parzen estimator failed: %v", cause)
	return prop, err
}

// suggest is one ask: the position of a value in each dimension. Panics become errors.
func suggest(p Problem, r *rand.Rand) (index []int, err error) {
	defer func() {
		if v := recover(); v != nil {
			index, err = nil, fmt.Errorf("goptuna: panic: %v", v)
		}
	}()
	study, err := retell(p, int64(r.Uint32()))
	if err != nil {
		return nil, err
	}
	id, err := study.Storage.CreateNewTrial(study.ID)
	if err != nil {
		return nil, fmt.Errorf("goptuna: create trial: %w", err)
	}
	ask := goptuna.Trial{Study: study, ID: id}
	index = make([]int, len(p.Space))
	for i, d := range p.Space {
		if len(d.Values) < 2 {
			continue
		}
		if d.Kind == Categorical {
			word, err := ask.SuggestCategorical(d.Name, positions(d))
			if err != nil {
				return nil, fmt.Errorf("goptuna: suggest %s: %w", d.Name, err)
			}
			if index[i], err = strconv.Atoi(word); err != nil {
				return nil, fmt.Errorf("goptuna: suggest %s: %w", d.Name, err)
			}
			continue
		}
		if index[i], err = ask.SuggestInt(d.Name, 0, len(d.Values)-1); err != nil {
			return nil, fmt.Errorf("goptuna: suggest %s: %w", d.Name, err)
		}
		index[i] = min(max(index[i], 0), len(d.Values)-1)
	}
	return index, nil
}

// retell builds goptuna's study from history. Parameters are positions, so that a grid of sizes
// is as even to TPE as it is to a person.
func retell(p Problem, seed int64) (*goptuna.Study, error) {
	study, err := goptuna.CreateStudy("ask",
		goptuna.StudyOptionDirection(goptuna.StudyDirectionMaximize),
		goptuna.StudyOptionLogger(nil),
		goptuna.StudyOptionSampler(tpe.NewSampler(
			tpe.SamplerOptionSeed(seed),
			tpe.SamplerOptionNumberOfStartupTrials(tpeStartup),
		)))
	if err != nil {
		return nil, fmt.Errorf("goptuna: create study: %w", err)
	}
	for _, t := range p.History {
		told, ok := tell(p.Space, t)
		if !ok {
			continue
		}
		if _, err := study.Storage.CloneTrial(study.ID, told); err != nil {
			return nil, fmt.Errorf("goptuna: tell trial %d: %w", t.Number, err)
		}
	}
	return study, nil
}

// tell translates one trial; ok is false for one the search must not learn from.
//
// A failure that the configuration is to blame for is told as pruned without any intermediate
// value, which TPE ranks below everything: it ignores failed trials altogether.
func tell(space Space, t *trial.Trial) (goptuna.FrozenTrial, bool) {
	told := goptuna.FrozenTrial{
		DatetimeStart: time.Unix(int64(t.Number), 0), DatetimeComplete: time.Unix(int64(t.Number)+1, 0),
		InternalParams: map[string]float64{}, Params: map[string]any{}, Distributions: map[string]any{},
		IntermediateValues: map[int]float64{},
	}
	switch {
	case t.Void != "" || t.Role == trial.RoleConfirm:
		return told, false
	case counts(t):
		told.State, told.Value = goptuna.TrialStateComplete, *t.Value
	case t.State == trial.Pruned && t.Value != nil:
		told.State, told.IntermediateValues[1] = goptuna.TrialStatePruned, *t.Value
	case t.State == trial.Pruned || blamed(t):
		told.State = goptuna.TrialStatePruned
	default:
		return told, false
	}
	if told.Value != told.Value || math.IsInf(told.Value, 0) {
		return told, false
	}
	for i, d := range space {
		at, ok := knobIndex(space, t.Config, i)
		if !ok || len(d.Values) < 2 {
			continue
		}
		told.InternalParams[d.Name] = float64(at)
		if d.Kind == Categorical {
			told.Params[d.Name] = strconv.Itoa(at)
			told.Distributions[d.Name] = goptuna.CategoricalDistribution{Choices: positions(d)}
			continue
		}
		told.Params[d.Name] = at
		told.Distributions[d.Name] = goptuna.IntUniformDistribution{Low: 0, High: len(d.Values) - 1}
	}
	return told, len(told.InternalParams) > 0
}

// knobIndex is the position of one knob of a configuration; a number outside of the space (the
// baseline's often is) counts as the nearest value.
func knobIndex(space Space, c sglang.Config, i int) (int, bool) {
	if index, ok := space.Index(c); ok {
		return index[i], true
	}
	d := space[i]
	if at := d.Index(c[d.Name]); at >= 0 {
		return at, true
	}
	if x, ok := c.Float(d.Name); ok && d.Kind != Categorical {
		return d.Nearest(x), true
	}
	return 0, false
}

func positions(d Dimension) []string {
	words := make([]string, len(d.Values))
	for i := range words {
		words[i] = strconv.Itoa(i)
	}
	return words
}

// distance of two configurations: each knob counts as the share of its range it moves, a
// categorical one as 1 when it differs.
func (s Space) distance(a, b sglang.Config) float64 {
	sum := 0.0
	for i, d := range s {
		x, ok1 := knobIndex(s, a, i)
		y, ok2 := knobIndex(s, b, i)
		switch {
		case !ok1 || !ok2 || (d.Kind == Categorical && x != y):
			sum++
		case d.Kind != Categorical && len(d.Values) > 1:
			sum += math.Abs(float64(x-y)) / float64(len(d.Values)-1)
		}
	}
	return sum
}
