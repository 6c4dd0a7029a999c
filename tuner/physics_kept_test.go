package tuner_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// A sampler that was asked before proposes what a new one does, whatever became of the history in between. The
// sequence is one study's; each step changes what the one before it left.
func TestKeptEngineAnswersAsANewOne(t *testing.T) {
	t.Parallel()
	s, night := longNightOf(9, kimiSpace()[:2])
	h := tuner.History{}
	grow := func(n int) func() { return func() { h = append(h, night[len(h):len(h)+n]...) } }
	facts := kimiHost
	kept := newPhysics(t)
	for i, step := range []struct {
		name   string
		change func()
	}{
		{"nothing yet", func() {}},
		{"the baseline", grow(1)},
		{"asked twice", func() {}},
		{"another trial", grow(1)},
		{"two at once", grow(2)},
		{"one is pending", func() {
			h = append(h, &trial.Trial{Number: len(h), Role: trial.RoleSearch, State: trial.Running, Config: night[len(h)].Config, LowWater: -1})
		}},
		{"the pending one ended", func() { h[len(h)-1] = night[len(h)-1] }},
		{"a trial is void", func() { row := *h[3]; row.Void = "a neighbour"; h[3] = &row }},
		{"another trial beside a void one", grow(1)},
		{"the host has less memory", func() { facts.MemAvailable -= 100e9 }},
		{"a value outside of the space", func() {
			row := *night[len(h)]
			row.Config = sglang.Merge(row.Config, sglang.Config{"hicache-size": 20.0})
			h = append(h, &row)
		}},
		{"rows are gone", func() { h = append(h[:2:2], h[4:]...) }},
		{"a knob less", func() { s.Space = s.Space[:len(s.Space)-1] }},
		{"the order of ends is not that of numbers", func() {
			row := *h[2]
			row.EndedAt = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
			h[2] = &row
		}},
		{"another trial", grow(1)},
	} {
		step.change()
		if testing.Short() && i%3 != 0 {
			continue // the next ask sees what both steps changed
		}
		ask := func() tuner.Problem {
			p := tuner.StudyProblem(s, h, facts, longRows)
			p.Admit, p.Remaining = tuner.NewAdmission(s, h, facts, tuner.NewFrontier(h).Check).Admit, 10
			return p
		}
		got, want := propose(t, kept, ask()), propose(t, newPhysics(t), ask())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the kept engine differs from a new one (-new +kept):\n%s", step.name, diff)
		}
	}
}
