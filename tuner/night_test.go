package tuner_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// elsewhere shows the loop a trial that runs on another host once the study's own baseline ran.
type elsewhere struct {
	*memStore
	row *trial.Trial
}

func (s elsewhere) History(ctx context.Context, study string) ([]*trial.Trial, error) {
	own, err := s.memStore.History(ctx, study)
	if len(own) == 0 || !own[0].State.Finished() {
		return own, err
	}
	return append(own, s.row), err
}

// watching is a sampler that notes what it was told of pending trials.
type watching struct {
	tuner.Sampler
	pending [][]*trial.Trial
}

func (w *watching) Sample(ctx context.Context, p tuner.Problem) (tuner.Proposal, error) {
	w.pending = append(w.pending, p.Pending)
	return w.Sampler.Sample(ctx, p)
}

// A trial that runs on another host reaches the sampler as pending: it is not proposed again, and it is paid for.
func TestPendingTrialsReachTheSampler(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	busy := &trial.Trial{
		Number: 100, Role: trial.RoleSearch, State: trial.Running, StartedAt: r.clock.Now(),
		Config: sglang.Config{"mem-fraction-static": 0.88, "kv-cache-dtype": "bf16"},
	}
	w := &watching{Sampler: r.loop.Sampler}
	r.loop.Store, r.loop.Sampler = elsewhere{r.store, busy}, w
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, told := range w.pending {
		if len(told) != 1 || told[0].Number != 100 {
			t.Errorf("the sampler was told of pending trials %v", told)
		}
	}
	search := r.trials(t).Role(trial.RoleSearch)
	if len(w.pending) != 3 || len(search) != 3 {
		t.Errorf("asked %d times, %d search launches; the budget of 5 pays for the baseline, the pending one and 3", len(w.pending), len(search))
	}
	for _, row := range search {
		if row.Config["mem-fraction-static"] == 0.88 {
			t.Errorf("trial %d is what runs elsewhere", row.Number)
		}
	}
}

// slowing makes the host slower (below 0) by so much log value an hour since the night's begin.
type slowing struct {
	*fakeRunner
	began   time.Time
	perHour float64
}

func (s slowing) Run(ctx context.Context, t *trial.Trial) error {
	s.scale = math.Exp(s.perHour * s.clock.Now().Sub(s.began).Hours())
	return s.fakeRunner.Run(ctx, t)
}

// In the middle of a night that is long and limited in time the baseline is launched a second time; a drift that
// its launches show is told and corrected, and the verdict's gain is the true one all the same.
func TestDriftOverTheNight(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		budget    tuner.Budget
		perHour   float64
		baselines int
		told      bool
	}{
		{"a steady host", tuner.Budget{Wall: 8 * time.Hour, Trials: 34}, 0, 2, false},
		{"a slowing host", tuner.Budget{Wall: 8 * time.Hour, Trials: 34}, -0.03, 2, true},
		{"a short search", tuner.Budget{Wall: 8 * time.Hour, Trials: 12}, 0, 1, false},
		{"no limit of time", tuner.Budget{Trials: 22}, 0, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStudy()
			s.Budget, s.Sampler, s.Workload.Concurrency = tt.budget, "random", []int{120, 160}
			r := newRig(t, s)
			r.loop.Runner = slowing{r.runner, r.clock.Now(), tt.perHour}
			v, err := r.loop.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h := r.trials(t)
			if n := len(h.Role(trial.RoleBaseline)); n != tt.baselines {
				t.Errorf("the baseline was launched %d times, want %d", n, tt.baselines)
			}
			if h.Launches() > tt.budget.Trials {
				t.Errorf("%d launches of %d", h.Launches(), tt.budget.Trials)
			}
			if told := strings.Contains(v.Text, "the host changed over the night by -"); told != tt.told {
				t.Errorf("verdict: %s", v.Text)
			}
			if truth := speed(v.Config)/speed(s.Baseline) - 1; v.Answer != "better" || math.Abs(v.Gain-truth) > 0.04 {
				t.Errorf("gain %.3f, the true one is %.3f: %s", v.Gain, truth, v.Text)
			}
		})
	}
}

// With a baseline that is the best of all the answer is to keep it, in nearly every night, and no night is
// without a verdict.
func TestKeepWhatYouHave(t *testing.T) {
	t.Parallel()
	nights, kept, hoped := 20, 0, 0
	if testing.Short() {
		nights = 5
	}
	for seed := range nights {
		s := smallStudy()
		s.Baseline = sglang.Config{"mem-fraction-static": 0.91}
		s.Confirm, s.Seed = 0, int64(seed)
		r := newRig(t, s)
		r.runner.noise, r.runner.rng = 0.02, rand.New(rand.NewPCG(uint64(seed), 9))
		v, err := r.loop.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v.Answer == "worse" || v.Answer == "no difference found" {
			kept++
			if !strings.Contains(v.Text, "keep what you have") {
				t.Errorf("verdict: %s", v.Text)
			}
		}
		plans := strings.Join(r.store.texts("plan"), "\n")
		if !strings.Contains(plans, "no candidate is expected to beat the baseline") {
			hoped++
		} else if n := len(r.trials(t).Role(trial.RoleConfirm)); n != 6 {
			t.Errorf("seed %d: %d confirmation launches of a candidate that nothing is expected of, want 3 + 3", seed, n)
		}
	}
	if kept < nights-1 || hoped > nights/4 {
		t.Errorf("kept in %d of %d nights; in %d of them a candidate was expected to be better", kept, nights, hoped)
	}
}

// With launches that differ by 5% the claimed interval holds the true gain about as often as it says.
func TestIntervalHoldsTheTruth(t *testing.T) {
	t.Parallel()
	nights, held := 40, 0
	if testing.Short() {
		nights = 10
	}
	for seed := range nights {
		s := smallStudy()
		s.Confirm, s.Seed = 0, int64(seed)
		r := newRig(t, s)
		r.runner.noise, r.runner.rng = 0.05, rand.New(rand.NewPCG(uint64(seed), 11))
		v, err := r.loop.Run(t.Context())
		if err != nil || v.Low == nil {
			t.Fatalf("%+v, %v", v, err)
		}
		if truth := speed(v.Config)/speed(s.Baseline) - 1; *v.Low <= truth && truth <= *v.High {
			held++
		}
	}
	if held < nights*9/10 {
		t.Errorf("the 95%% interval held the true gain in %d of %d nights", held, nights)
	}
}

// The highest of many noisy launches is too high. What the plan says is expected of the candidate is not.
func TestExpectedGainIsHonest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thirty nights: the slow tiers run them")
	}
	nights, seen, expected := 30, 0.0, 0.0
	said := regexp.MustCompile(`(?:expected|this one:) ([+-]?[0-9.]+)%`)
	for seed := range nights {
		s := newStudy()
		s.Sampler, s.Budget.Trials = "grid", 12
		s.Space = tuner.Space{{Name: "schedule-conservativeness", Kind: tuner.Numeric, Values: []any{0.6, 0.62, 0.64, 0.66, 0.68, 0.7, 0.72, 0.74, 0.76, 0.78, 0.8}}}
		r := newRig(t, s)
		r.runner.noise, r.runner.rng = 0.03, rand.New(rand.NewPCG(uint64(seed), 3))
		v, err := r.loop.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h := r.trials(t)
		truth := speed(v.Config)/speed(s.Baseline) - 1
		words := said.FindStringSubmatch(v.Why)
		if words == nil {
			t.Fatalf("the verdict does not say what was expected of the candidate: %s", v.Why)
		}
		gain, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		seen += (*h.Numbered(v.Trial).Value / *h.Numbered(0).Value - 1 - truth) / float64(nights)
		expected += (gain/100 - truth) / float64(nights)
	}
	if seen < 0.02 || math.Abs(expected) > 0.75*seen {
		t.Errorf("the picked launches showed %+.1f points beyond the truth, %+.1f points were expected; want a curse of at least 2, and clearly less of it", 100*seen, 100*expected)
	}
}

// Where the time is limited and leaves room, the next in line is launched beside the candidate, in one order,
// and wins only by being better than it.
func TestSecondCandidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		budget tuner.Budget
		second bool
	}{
		{"room for it", tuner.Budget{Trials: 6, Wall: 9 * time.Hour}, true},
		{"no room", tuner.Budget{Trials: 6, Wall: 90 * time.Minute}, false},
		{"no limit of time", tuner.Budget{Trials: 6}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Budget = tt.budget
			s.Space = tuner.Space{{Name: "mem-fraction-static", Kind: tuner.Numeric, Values: []any{0.86, 0.87, 0.895, 0.9, 0.8955}}}
			r := newRig(t, s)
			r.runner.noise = 0.02
			v, err := r.loop.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sides := map[any]int{}
			var order []any
			for _, row := range r.trials(t).Role(trial.RoleConfirm) {
				f := row.Config["mem-fraction-static"]
				sides[f]++
				order = append(order, f)
			}
			if v.Answer != "better" || len(sides) != map[bool]int{true: 3, false: 2}[tt.second] {
				t.Errorf("%s after confirmation launches %v", v.Text, order)
			}
			for f, n := range sides {
				if n != 3 {
					t.Errorf("%v was launched %d times: %v", f, n, order)
				}
			}
			if tt.second && (order[0] != 0.85 || order[5] != 0.85 || order[2] != order[3] || order[1] != order[4]) {
				t.Errorf("launched in the order %v, want ABCCBA", order)
			}
			if said := strings.Contains(strings.Join(r.store.texts("plan"), "\n"), "second candidate: trial "); said != tt.second {
				t.Errorf("the plan says %v", r.store.texts("plan"))
			}
		})
	}
}

// A program that is killed in a confirmation with a second candidate goes on with the same three sides, also when
// the second one was not launched yet.
func TestSecondCandidateIsContinued(t *testing.T) {
	t.Parallel()
	for _, killed := range []int{6, 10} { // the first and the fifth launch of nine
		t.Run(fmt.Sprintf("trial %d", killed), func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Budget = tuner.Budget{Trials: 6, Wall: 9 * time.Hour}
			s.Space = tuner.Space{{Name: "mem-fraction-static", Kind: tuner.Numeric, Values: []any{0.86, 0.87, 0.895, 0.9, 0.8955}}}
			r := newRig(t, s)
			r.runner.noise = 0.02
			ctx, stop := context.WithCancelCause(t.Context())
			r.runner.during = func(_ context.Context, row *trial.Trial) {
				if row.Number == killed {
					stop(trial.ErrStopped)
				}
			}
			if _, err := r.loop.Run(ctx); err == nil {
				t.Fatal("the study was not stopped")
			}
			first, second := r.loop.Record.Candidate, r.loop.Record.Second
			r.runner.during = nil
			r.restart(t)
			v, err := r.loop.Run(t.Context())
			if err != nil || v.Answer != "better" || v.Launches != 3 {
				t.Fatalf("%+v, %v", v, err)
			}
			ran := map[string]int{}
			for _, row := range r.trials(t).Role(trial.RoleConfirm) {
				if row.State == trial.Complete {
					ran[tuner.Key(row.Config)]++
				}
			}
			if want := map[string]int{tuner.Key(s.Baseline): 3, tuner.Key(first): 3, tuner.Key(second): 3}; second == nil || !maps.Equal(ran, want) {
				t.Errorf("confirmation launches %v, want %v", ran, want)
			}
		})
	}
}
