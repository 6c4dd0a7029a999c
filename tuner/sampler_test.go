package tuner_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

func samplers(t *testing.T) map[string]tuner.Sampler {
	t.Helper()
	out := map[string]tuner.Sampler{}
	for _, name := range []string{"", "physics", "tpe", "random", "grid"} {
		s, err := tuner.NewSampler(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = s
	}
	return out
}

func TestNewSamplerUnknown(t *testing.T) {
	t.Parallel()
	if _, err := tuner.NewSampler("cmaes"); err == nil {
		t.Error("an unknown sampler was accepted")
	}
}

func finished(n int, c sglang.Config, state trial.State, value float64) *trial.Trial {
	t := &trial.Trial{Number: n, Role: trial.RoleSearch, Config: c, State: state, LowWater: -1}
	switch state {
	case trial.Complete, trial.Pruned:
		t.Value = &value
		t.Verdict = trial.Verdict{Outcome: trial.OK, Blames: trial.BlameYes}
	case trial.Failed:
		t.Verdict = trial.Verdict{Outcome: trial.GPUOOM, Cause: "prefill_activation", Blames: trial.BlameYes}
	}
	return t
}

// TestSamplerConformance is what every sampler must do: values of the space only, admitted, never a
// repeat, ErrExhausted at the end, whatever the history looks like.
func TestSamplerConformance(t *testing.T) {
	t.Parallel()
	mixed := tuner.Space{
		{Name: "mem-fraction-static", Kind: tuner.Numeric, Values: []any{0.8, 0.85, 0.9}},
		{Name: "schedule-policy", Kind: tuner.Categorical, Values: []any{"fcfs", "lpm", "random"}},
		{Name: "enable-mixed-chunk", Kind: tuner.Categorical, Values: []any{false, true}},
		{Name: "page-size", Kind: tuner.Numeric, Values: []any{1.0}},
	}
	line := tuner.Space{{Name: "max-running-requests", Kind: tuner.Numeric, Values: []any{16.0, 32.0, 64.0, 128.0, 256.0}}}
	conditional := tuner.Space{
		{Name: "hicache-size", Kind: tuner.Numeric, Values: []any{0.0, 16.0, 48.0}},
		{Name: "hicache-write-policy", Kind: tuner.Categorical, Values: []any{"write_through", "write_back"}},
		{Name: "env.NCCL_ALGO", Kind: tuner.Categorical, Values: []any{"Ring", "Tree"}},
	}
	all := func(sglang.Config) error { return nil }
	tests := []struct {
		name  string
		space tuner.Space
		admit func(sglang.Config) error
		want  int // points until exhausted
		end   func(n int, c sglang.Config) *trial.Trial
	}{
		{"all complete", mixed, all, 18, func(n int, c sglang.Config) *trial.Trial { return finished(n, c, trial.Complete, float64(n)) }},
		{"all failed", mixed, all, 18, func(n int, c sglang.Config) *trial.Trial {
			tr := finished(n, c, trial.Failed, 0)
			tr.Verdict.Outcome, tr.Verdict.Cause = trial.ConfigRejected, "bad_value"
			return tr
		}},
		{"void and pruned", mixed, all, 18, func(n int, c sglang.Config) *trial.Trial {
			tr := finished(n, c, trial.Complete, 5)
			if n%2 == 0 {
				tr.State = trial.Pruned
			} else {
				tr.Void = "contaminated"
			}
			return tr
		}},
		{"nothing learnt, pending only", mixed, all, 18, func(n int, c sglang.Config) *trial.Trial {
			return &trial.Trial{Number: n, Role: trial.RoleSearch, Config: c, State: trial.Waiting}
		}},
		{"a knob that does nothing beside another", conditional, all, 10, func(n int, c sglang.Config) *trial.Trial {
			tr := finished(n, c, trial.Complete, 100+float64(n%3))
			tr.Startup = time.Minute
			return tr
		}},
		{"one dimension", line, all, 5, func(n int, c sglang.Config) *trial.Trial { return finished(n, c, trial.Complete, 1) }},
		{"one point admitted", mixed, func(c sglang.Config) error {
			if c["schedule-policy"] == "lpm" && c["mem-fraction-static"] == 0.9 && c["enable-mixed-chunk"] == true {
				return nil
			}
			return &tuner.Infeasible{Rule: "test", Text: "not this one"}
		}, 1, func(n int, c sglang.Config) *trial.Trial { return finished(n, c, trial.Complete, 1) }},
		{"no point admitted", mixed, func(sglang.Config) error { return errors.New("no") }, 0, nil},
		{
			"one point",
			tuner.Space{{Name: "page-size", Kind: tuner.Numeric, Values: []any{1.0}}},
			all, 1,
			func(n int, c sglang.Config) *trial.Trial { return finished(n, c, trial.Complete, 1) },
		},
	}
	for name, s := range samplers(t) {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%q %s", name, tt.name), func(t *testing.T) {
				t.Parallel()
				base := sglang.Config{"watchdog-timeout": 600.0}
				p := tuner.Problem{Space: tt.space, Admit: tt.admit, Base: base, Pending: []*trial.Trial{}, Seed: 3, Levels: []int{1}}
				seen := map[string]bool{}
				for n := 0; ; n++ {
					prop, err := s.Sample(t.Context(), p)
					if errors.Is(err, tuner.ErrExhausted) {
						if n != tt.want {
							t.Errorf("exhausted after %d points, want %d", n, tt.want)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					c := prop.Config
					if n >= tt.want || seen[c.Key()] || tt.admit(c) != nil || prop.Why == "" || prop.Sampler == "" || c["watchdog-timeout"] != 600.0 {
						t.Fatalf("proposal %d: %+v (repeat %v)", n, prop, seen[c.Key()])
					}
					if _, ok := tt.space.Index(c); !ok {
						t.Fatalf("proposal %d lies outside of the space: %v", n, c)
					}
					seen[c.Key()] = true
					tr := tt.end(n, c)
					tr.Sampler = prop.Sampler
					if tr.State.Finished() {
						p.History = append(p.History, tr)
					} else {
						p.Pending = append(p.Pending, tr)
					}
				}
			})
		}
	}
}

func TestSamplersRecommendTheBest(t *testing.T) {
	t.Parallel()
	p := tuner.Problem{History: []*trial.Trial{
		finished(0, sglang.Config{"a": 1.0}, trial.Complete, 5), finished(1, sglang.Config{"a": 2.0}, trial.Complete, 9),
		finished(2, sglang.Config{"a": 3.0}, trial.Failed, 0), finished(3, sglang.Config{"a": 4.0}, trial.Complete, 11),
	}}
	p.History[3].Void = "contaminated"
	for name, s := range samplers(t) {
		c, err := s.Recommend(t.Context(), p)
		if err != nil || c["a"] != 2.0 {
			t.Errorf("%q recommends %v, %v", name, c, err)
		}
		if _, err := s.Recommend(t.Context(), tuner.Problem{}); err == nil {
			t.Errorf("%q recommends something out of nothing", name)
		}
	}
}

func start(t *testing.T, seed int64, n int) []sglang.Config {
	t.Helper()
	s, err := tuner.NewSampler("tpe")
	if err != nil {
		t.Fatal(err)
	}
	p := tuner.Problem{Space: kimiSpace(), Admit: func(sglang.Config) error { return nil }, Seed: seed}
	var out []sglang.Config
	for i := range n {
		prop, err := s.Sample(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, prop.Config)
		tr := finished(i, prop.Config, trial.Complete, 1)
		tr.Sampler = prop.Sampler
		p.History = append(p.History, tr)
	}
	return out
}

// The Sobol start is a function of the seed, covers every dimension evenly and gives the top value
// its share, which goptuna's own mapping never does.
func TestSobolStart(t *testing.T) {
	t.Parallel()
	if d := cmp.Diff(start(t, 7, 8), start(t, 7, 8)); d != "" {
		t.Errorf("the same seed gives two starts:\n%s", d)
	}
	if cmp.Equal(start(t, 7, 8), start(t, 8, 8)) {
		t.Error("two seeds give the same start")
	}
	top := 0
	for seed := range int64(20) {
		halves := map[string]int{}
		for _, c := range start(t, seed, 8) {
			for _, d := range kimiSpace() {
				if d.Index(c[d.Name]) >= (len(d.Values)+1)/2 {
					halves[d.Name]++
				}
				if d.Name == "hicache-size" && c[d.Name] == 48.0 {
					top++
				}
			}
		}
		for name, n := range halves {
			if n < 1 || n > 7 {
				t.Errorf("seed %d: %d of 8 points lie in the upper half of %s", seed, n, name)
			}
		}
	}
	if top < 14 || top > 40 { // 160 points, six cells: 27 expected
		t.Errorf("the top value of hicache-size came %d times in 160", top)
	}
}

// Points outside the admitted region are passed over and counted, and the walk goes on in order.
func TestSobolPassesOver(t *testing.T) {
	t.Parallel()
	free := start(t, 7, 8)
	s, _ := tuner.NewSampler("tpe")
	p := tuner.Problem{Space: kimiSpace(), Seed: 7, Admit: func(c sglang.Config) error {
		for _, bad := range free[:2] {
			if tuner.Key(c) == tuner.Key(bad) {
				return errors.New("no")
			}
		}
		return nil
	}}
	prop, err := s.Sample(t.Context(), p)
	if err != nil || prop.Skipped != 2 || tuner.Key(prop.Config) != tuner.Key(free[2]) {
		t.Errorf("proposal %+v, %v; want the third point, two passed over", prop, err)
	}
}
