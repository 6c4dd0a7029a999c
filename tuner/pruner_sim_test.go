package tuner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// prunedWorld is a study's load levels drawn by chance: what the pruning rule is not told.
type prunedWorld struct {
	launch float64 // relative standard deviation between launches
	window float64 // of a window's own noise
	lag    float64 // correlation of neighbouring windows' noise
	rows   float64 // how much heavier or lighter stretches of rows are, the same for all trials
	length int     // windows of a level behind its opening
}

const (
	simWidth = 30.0   // seconds of a window
	simRate  = 1000.0 // output tok/s at speed 1
)

// heavy is how fast rows at a position of the replay are served.
func (w prunedWorld) heavy(work float64) float64 {
	x := work / (simRate * simWidth)
	return 1 + w.rows*(math.Sin(x*1.3)+math.Sin(x*0.41+1))/math.Sqrt2
}

// draw yields a launch's windows one after the other.
func (w prunedWorld) draw(r *rand.Rand, speed float64) func() float64 {
	speed *= math.Exp(w.launch * r.NormFloat64())
	noise, work, started := r.NormFloat64(), 0.0, 0.0
	return func() float64 {
		noise = w.lag*noise + math.Sqrt(1-w.lag*w.lag)*r.NormFloat64()
		rate := simRate * speed * w.heavy(work) * math.Max(0.05, 1+w.window*noise)
		if started < 1.5*simRate*simWidth { // the opening: the volley of prompts
			started += rate * simWidth
			rate *= 0.3
		}
		work += rate * simWidth
		return rate
	}
}

func (w prunedWorld) trial(r *rand.Rand, number int, speed float64) *trial.Trial {
	next := w.draw(r, speed)
	rep := &benchmark.Report{Valid: true}
	sum, squares := 0.0, 0.0
	for i := range w.length + 2 {
		v := next()
		rep.Windows = append(rep.Windows, benchmark.Window{Seconds: simWidth, Output: v, Steady: i >= 2})
		if i >= 2 {
			sum, squares = sum+v, squares+v*v
		}
	}
	n := float64(w.length)
	mean := sum / n
	half := 1.96 * math.Sqrt(math.Max(0, squares/n-mean*mean)/n*(1+w.lag)/(1-w.lag))
	rep.OutputTokS, rep.OutputLow, rep.OutputHigh = mean, mean-half, mean+half
	t := &trial.Trial{
		Number: number, Role: trial.RoleSearch, State: trial.Complete, Value: &rep.OutputTokS, Best: 120, Plan: []int{120},
		Config: sglang.Config{"knob": float64(number)}, Levels: []trial.Level{{Concurrency: 120, Report: rep}},
	}
	if number == 0 {
		t.Role = trial.RoleBaseline
	}
	return t
}

// pruning runs one trial of a relative speed beside a study of so many earlier ones; windows is how many were
// measured behind the opening.
func (w prunedWorld) pruning(seed uint64, earlier int, ratio float64) (pruned bool, windows int) {
	r := rand.New(rand.NewPCG(seed, 7))
	h := History{w.trial(r, 0, 0.85)}
	for i := 1; i <= earlier; i++ {
		h = append(h, w.trial(r, i, 1-0.02*float64(i%8)))
	}
	h = append(h, w.trial(r, earlier+1, 1)) // the truly best one
	st := standingsOf(h)
	best, _ := st.best()
	s := newSieve(Objective{Metric: "output_tok_s"}, h, best, st.noise, 0)
	next := w.draw(r, ratio)
	var seen []float64
	for k := range w.length + 2 {
		seen = append(seen, next())
		if s.hopeless(120, seen) {
			return true, max(0, k-1)
		}
	}
	return false, w.length
}

// The rule's error rates in worlds it is not told: a trial as good as the best is hardly ever given up, one a
// fifth worse nearly always, and early.
func TestPruningErrorRates(t *testing.T) {
	t.Parallel()
	runs := 400
	if testing.Short() {
		runs = 40
	}
	for _, tt := range []struct {
		name    string
		world   prunedWorld
		equal   float64 // most of the equally good trials that may be given up
		worse   float64 // least of those a fifth worse that must be
		windows float64 // of them, mean number of windows it may take of a level of 10
	}{
		{"quiet", prunedWorld{launch: 0.01, window: 0.02, lag: 0.2, rows: 0.05, length: 10}, 0.01, 0.98, 4},
		{"usual", prunedWorld{launch: 0.02, window: 0.04, lag: 0.2, rows: 0.1, length: 10}, 0.01, 0.92, 5},
		{"very uneven rows", prunedWorld{launch: 0.015, window: 0.02, lag: 0.2, rows: 0.3, length: 10}, 0.01, 0.4, 9},
		{"alike windows", prunedWorld{launch: 0.015, window: 0.04, lag: 0.6, rows: 0.1, length: 10}, 0.02, 0.85, 6},
		{"noisy launches", prunedWorld{launch: 0.04, window: 0.03, lag: 0.2, rows: 0.1, length: 10}, launchAlpha + windowAlpha, 0.9, 5},
		{"noisy windows", prunedWorld{launch: 0.02, window: 0.13, lag: 0.2, rows: 0.1, length: 10}, 0.02, 0, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			share := func(ratio float64) (share, windows float64) {
				for seed := range runs {
					pruned, n := tt.world.pruning(uint64(seed), 6, ratio)
					if pruned {
						share++
						windows += float64(n)
					}
				}
				return share / float64(runs), windows / math.Max(share, 1)
			}
			var figures string
			for _, ratio := range []float64{1.05, 1, 0.95, 0.9, 0.8, 0.7} {
				s, n := share(ratio)
				figures += fmt.Sprintf("  %g: %.1f%% (%.1f)", ratio, 100*s, n)
			}
			t.Log(tt.name + ": given up by relative speed (after so many windows):" + figures)
			if equal, _ := share(1); equal > tt.equal {
				t.Errorf("%.1f%% of equally good trials were given up, at most %.1f%% may", 100*equal, 100*tt.equal)
			}
			if better, _ := share(1.05); better > tt.equal/2 {
				t.Errorf("%.1f%% of better trials were given up", 100*better)
			}
			if worse, n := share(0.8); worse < tt.worse || n > tt.windows {
				t.Errorf("%.1f%% of trials a fifth worse were given up after %.1f windows, want %.1f%% after at most %.1f", 100*worse, n, 100*tt.worse, tt.windows)
			}
		})
	}
}
