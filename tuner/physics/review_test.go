package physics_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/tuner/physics"
)

// A search that was shown a history at once believes what one believes that learnt all along, and what it would
// export is as good.
func TestReviewBelievesTheSame(t *testing.T) {
	t.Parallel()
	trials := 20
	if !testing.Short() {
		trials = 60
	}
	for _, w := range some(1, serverWorlds()[0], crashWorld(), plainEnvWorld(), overfullWorld()) {
		facts := w.facts
		facts.Seed = 5
		s := physics.New(w.space, facts)
		var seen []physics.Observation
		luck := rand.New(rand.NewPCG(5, 1))
		for _, p := range drawn(w, trials, 21) {
			o := w.run(physics.Suggestion{Point: p, Frac: 1}, luck)
			s.Observe(o)
			seen = append(seen, o)
		}
		r := physics.Review(w.space, facts, seen)
		if again := physics.Review(w.space, facts, seen); !cmp.Equal(r.Importances(), again.Importances()) {
			t.Errorf("%s: two reviews of one history differ", w.name)
		}
		points := drawn(w, 60, 22)
		var mean, survive float64
		for _, p := range points {
			a, b := s.Predict(p), r.Predict(p)
			if why := absurd(b); why != "" {
				t.Fatalf("%s: %s at %v: %+v", w.name, why, p, b)
			}
			mean += math.Abs(math.Log(a.Mean/b.Mean)) / float64(len(points))
			survive += math.Abs(a.Survive-b.Survive) / float64(len(points))
		}
		t.Logf("%s: expected values differ by %.4f, chances to survive by %.4f", w.name, mean, survive)
		if mean > 0.04 || survive > 0.03 {
			t.Errorf("%s: expected values differ by %.4f, chances to survive by %.4f", w.name, mean, survive)
		}
		a, okA := s.Recommend()
		b, okB := r.Recommend()
		if okA != okB || okA && w.truth(b).worth() < 0.97*w.truth(a).worth() {
			t.Errorf("%s: exports %v (%v), and %v when it learnt along (%v)", w.name, b, okB, a, okA)
		}
	}
}

// A review can be asked without a history, and goes on as any other search.
func TestReviewGoesOn(t *testing.T) {
	t.Parallel()
	w := crashWorld()
	if p, ok := physics.Review(w.space, w.facts, nil).Recommend(); ok {
		t.Errorf("exports %v before any trial", p)
	}
	o := w.run(physics.Suggestion{Point: w.facts.Start, Frac: 1}, rand.New(rand.NewPCG(1, 1)))
	s := physics.Review(w.space, w.facts, []physics.Observation{o})
	before := s.Predict(w.facts.Start).Mean
	o.Value *= 1.2
	s.Observe(o)
	if after := s.Predict(w.facts.Start).Mean; after <= before*1.01 {
		t.Errorf("expects %.1f after a higher value, %.1f before", after, before)
	}
}
