package tuner

import (
	"math/rand/v2"

	"sgtune/sglang"
	"sgtune/trial"
)

// How the start of a search covers the space.
const (
	sobolPoints = 8    // search trials that come from the Sobol sequence
	sobolDraws  = 1024 // points of the sequence looked at before giving up on it
	sobolName   = "sobol"
)

// sequence yields points of the unit cube; goptuna.go implements it with goptuna's Sobol engine.
type sequence interface{ Draw() []float64 }

// sobolNext walks the seeded Sobol sequence from its first point to the first one that may be
// launched and is not taken. Walking from the start each time makes the answer a function of seed
// and history alone, so a resumed study goes on where it was.
//
// The sequence is shifted modulo 1 by a vector drawn from the seed (a Cranley-Patterson rotation:
// it keeps the even cover and makes seeds differ) and mapped to values by equal cells, because
// goptuna's own integer mapping never gives the top value.
func sobolNext(seq sequence, p Problem, admit func(sglang.Config) error) (c sglang.Config, skipped int, ok bool) {
	busy := p.taken()
	shift := shiftVector(p.Seed, len(p.Space))
	refused := map[string]bool{}
	for range sobolDraws {
		point := seq.Draw()
		for i := range point {
			point[i] += shift[i]
			if point[i] >= 1 {
				point[i]--
			}
		}
		c := p.config(p.Space.At(point))
		key := Key(c)
		if busy[key] || refused[key] {
			continue
		}
		if admit(c) == nil {
			return c, skipped, true
		}
		refused[key] = true
		skipped++
	}
	return nil, skipped, false
}

// sobolStarted counts the start's points among the trials: a configuration that is launched again
// counts once.
func sobolStarted(p Problem) int {
	seen := map[string]bool{}
	for _, list := range [][]*trial.Trial{p.History, p.Pending} {
		for _, t := range list {
			if t.Sampler == sobolName {
				seen[Key(t.Config)] = true
			}
		}
	}
	return len(seen)
}

func shiftVector(seed int64, dims int) []float64 {
	r := rand.New(rand.NewPCG(uint64(seed), 0x736f626f6c)) // a stream of its own
	v := make([]float64, dims)
	for i := range v {
		v[i] = r.Float64()
	}
	return v
}
