package tuner

import (
	"math"
	"strings"
	"testing"
	"time"

	"sgtune/sglang"
)

// Values are shrunk towards each other, a repeated one less, and none passes another's for it.
func TestStandingsShrink(t *testing.T) {
	t.Parallel()
	at := func(f float64) sglang.Config { return sglang.Config{memFraction: f} }
	h := History{
		row(0, 1000, at(0.85), 0), row(1, 1010, at(0.86), 0), row(2, 1020, at(0.87), 0), row(3, 1060, at(0.88), 0),
		row(4, 1050, at(0.89), 0), row(5, 1050, at(0.89), 0), row(6, 1050, at(0.89), 0), row(7, 1050, at(0.89), 0),
	}
	s := standingsOf(h)
	once, often := s.of[Key(at(0.88))], s.of[Key(at(0.89))]
	if once.Mean >= math.Log(1060) || once.Mean <= math.Log(1030) || once.SD <= often.SD || math.Log(1060)-once.Mean <= math.Log(1050)-often.Mean {
		t.Errorf("once %g ± %g, four times %g ± %g", math.Exp(once.Mean), once.SD, math.Exp(often.Mean), often.SD)
	}
	best, ok := s.best()
	if !ok || best.Mean < once.Mean {
		t.Errorf("best %+v", best)
	}
	gain, chance, ok := s.gain(at(0.89), at(0.85))
	if !ok || gain < 0.02 || gain > 0.05 || chance < 0.9 || chance >= 1 {
		t.Errorf("gain %g with chance %g", gain, chance)
	}
	if _, _, ok := s.gain(at(0.89), at(0.5)); ok {
		t.Error("a gain beside what was never measured")
	}
	if e := standingsOf(nil); len(e.of) != 0 {
		t.Errorf("of nothing: %+v", e)
	}
}

// A configuration close to the memory line is given up for a slower one that survives, and the words say so.
func TestCandidateKeepsItsDistance(t *testing.T) {
	t.Parallel()
	h := History{row(1, 1000, sglang.Config{memFraction: 0.88}, time.Minute), row(2, 1060, sglang.Config{memFraction: 0.92}, time.Minute)}
	s := standingsOf(h)
	risky := s.of[Key(h[1].Config)]
	risky.Survive = 0.95
	s.of[Key(h[1].Config)] = risky
	pick := candidate(h, sglang.Config{memFraction: 0.85}, nil, s)
	if pick.trial.Number != 1 || !strings.Contains(pick.why, "it survives with a chance of 100%, that one with 95%") {
		t.Errorf("picked %d: %s", pick.trial.Number, pick.why)
	}
	if pick.expected || pick.outlook() != "" {
		t.Errorf("the baseline was never measured, yet %q", pick.outlook())
	}
}
