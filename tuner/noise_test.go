package tuner

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
)

var nightBegins = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)

// launched is a complete trial that ended so many hours after the night's begin.
func launched(n int, role trial.Role, c sglang.Config, value, hours float64) *trial.Trial {
	t := row(n, value, c, time.Minute)
	t.Role, t.EndedAt = role, nightBegins.Add(time.Duration(hours*float64(time.Hour)))
	t.StartedAt = t.EndedAt.Add(-15 * time.Minute)
	return t
}

// repeats are launches of the baseline with a relative noise and a drift of log value an hour.
func repeats(r *rand.Rand, n int, sd, slope float64) History {
	var h History
	for i := range n {
		hours := 8 * float64(i) / float64(max(1, n-1))
		value := 1000 * math.Exp(sd*r.NormFloat64()+slope*hours)
		h = append(h, launched(i, trial.RoleConfirm, sglang.Config{memFraction: 0.85}, value, hours))
	}
	return h
}

func TestNoiseIsLearnt(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	alone := noiseOf(History{launched(0, trial.RoleBaseline, sglang.Config{memFraction: 0.85}, 1000, 0)}, Drift{})
	if alone.Repeats != 0 || alone.Launch < alone.Windows || math.Abs(alone.Launch-0.018) > 0.002 {
		t.Errorf("without repeats: %+v, want the windows' 1%% and the prior together", alone)
	}
	for _, tt := range []struct{ sd, low, high float64 }{{0.002, 0.005, 0.012}, {0.02, 0.015, 0.025}, {0.05, 0.035, 0.06}} {
		got := noiseOf(repeats(r, 10, tt.sd, 0), Drift{})
		if got.Repeats != 9 || got.Launch < tt.low || got.Launch > tt.high {
			t.Errorf("true noise %g: learnt %+v", tt.sd, got)
		}
		few := noiseOf(repeats(r, 2, tt.sd, 0), Drift{})
		if math.Abs(few.Launch-alone.Launch) > math.Abs(tt.sd*2-alone.Launch)+0.01 {
			t.Errorf("true noise %g, one repeat: learnt %+v, prior %g", tt.sd, few, alone.Launch)
		}
	}
	if n := alone.Between(); n <= 0 || n > alone.Launch {
		t.Errorf("between launches %g of %g", n, alone.Launch)
	}
}

// The picked trial is high by luck: it is no repeat of its confirmation.
func TestSearchLaunchIsNoRepeat(t *testing.T) {
	t.Parallel()
	c := sglang.Config{memFraction: 0.88}
	h := History{launched(1, trial.RoleSearch, c, 1200, 1), launched(2, trial.RoleConfirm, c, 1000, 7)}
	if got := repeatedLaunches(h); len(got) != 0 {
		t.Errorf("repeats %+v", got)
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	runs := 300
	found := func(slope float64) (share float64) {
		for seed := range runs {
			h := repeats(rand.New(rand.NewPCG(uint64(seed), 5)), 6, 0.01, slope)
			if d := driftOf(h); d.Found {
				share += 1 / float64(runs)
				if slope != 0 && (math.Signbit(d.PerHour) != math.Signbit(slope) || math.Abs(d.PerHour) > math.Abs(d.Slope)) {
					t.Errorf("true drift %g: corrected by %g, fitted %g", slope, d.PerHour, d.Slope)
				}
			}
		}
		return share
	}
	if s := found(0); s > 0.06 {
		t.Errorf("a drift was found in %.0f%% of nights without one", 100*s)
	}
	if s := found(-0.01); s < 0.95 {
		t.Errorf("a drift of 1%% an hour was found in %.0f%% of nights", 100*s)
	}
	two := repeats(rand.New(rand.NewPCG(1, 5)), 2, 0, -0.05)
	if driftOf(two).Found {
		t.Error("two launches always lie on a line")
	}
	d := driftOf(repeats(rand.New(rand.NewPCG(1, 5)), 8, 0.002, -0.02))
	if !d.Found || !strings.Contains(d.Text(), "by -2.0% an hour") || !strings.Contains(d.Text(), "8 launches") {
		t.Errorf("drift %+v: %s", d, d.Text())
	}
}

// A machine that slows down makes late trials look worse than they are: the ranking takes that out, and the
// noise does not count it.
func TestDriftIsTakenOutOfTheRanking(t *testing.T) {
	t.Parallel()
	base := sglang.Config{memFraction: 0.85}
	const slope = -0.02
	at := func(hours, value float64) float64 { return value * math.Exp(slope*hours) }
	h := History{launched(0, trial.RoleBaseline, base, at(0, 1000), 0)}
	h = append(h, launched(1, trial.RoleSearch, sglang.Config{memFraction: 0.86}, at(0.5, 1100), 0.5))
	for i, hours := range []float64{2, 4, 6} {
		h = append(h, launched(2+i, trial.RoleBaseline, base, at(hours, 1000), hours))
	}
	h = append(h, launched(5, trial.RoleSearch, sglang.Config{memFraction: 0.87}, at(7, 1180), 7))
	s := standingsOf(h)
	pick := candidate(h, base, nil, s)
	if !s.drift.Found || s.noise.Launch > 0.02 || pick.trial.Number != 5 {
		t.Errorf("drift %+v, noise %+v, picked %d: %s", s.drift, s.noise, pick.trial.Number, pick.why)
	}
	if math.Abs(pick.gain-0.17) > 0.03 {
		t.Errorf("expected gain %g, the true one is 0.18", pick.gain)
	}
}
