package tuner_test

import (
	"context"
	"testing"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// Whatever the time budget, the confirmation is complete and everything is over in time.
func TestTimeBudgets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		budget  tuner.Budget
		confirm int
		answer  string
		search  int // search launches; a trial takes 7 minutes
		pairs   int
	}{
		{"wall", tuner.Budget{Wall: 2 * time.Hour}, 3, "better", 10, 3},
		{"wall and trials", tuner.Budget{Wall: 9 * time.Hour, Trials: 6}, 3, "better", 5, 3},
		{"until", tuner.Budget{Until: "23:30"}, 3, "better", 5, 3},
		{"five pairs", tuner.Budget{Wall: 2 * time.Hour}, 5, "better", 6, 5},
		{"one pair asked for", tuner.Budget{Wall: 1 * time.Hour}, 1, "not confirmed", 5, 1},
		{"too short for three pairs", tuner.Budget{Wall: 40 * time.Minute}, 3, "not confirmed", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStudy()
			s.Budget, s.Confirm, s.Sampler = tt.budget, tt.confirm, "random"
			r := newRig(t, s)
			began := r.clock.Now()
			v, err := r.loop.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h := r.trials(t)
			if v.Answer != tt.answer || v.Launches != tt.pairs || len(h.Role(trial.RoleSearch)) != tt.search {
				t.Errorf("%s with %d launches each after %d search trials; want %s, %d, %d", v.Answer, v.Launches, len(h.Role(trial.RoleSearch)), tt.answer, tt.pairs, tt.search)
			}
			if (v.Low == nil) != (tt.answer == "not confirmed") {
				t.Errorf("interval %v with answer %s", v.Low, v.Answer)
			}
			took := r.clock.Now().Sub(began)
			if tt.budget.Wall > 0 && took > tt.budget.Wall || tt.budget.Until != "" && took > 90*time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A study that could not finish its confirmation for want of time goes on with it when it is run again.
func TestConfirmationGoesOn(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Budget = tuner.Budget{Trials: 3, Wall: 68 * time.Minute}
	r := newRig(t, s)
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Role == trial.RoleConfirm {
			r.clock.advance(10 * time.Minute) // slower than anything seen before
		}
	}
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "not confirmed" || v.Launches == 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	s.Budget.Wall = 5 * time.Hour
	r.restart(t)
	v, err = r.loop.Run(t.Context())
	if err != nil || v.Answer != "better" || v.Launches != 3 {
		t.Errorf("continued: %+v, %v", v, err)
	}
}

func TestPlanText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	tests := []struct {
		name string
		plan tuner.Plan
		fits int
		ok   bool
		text string
	}{
		{"nothing known", tuner.Plan{Now: now, Pairs: 3}, -1, true, "0 trials launched; how many fit is known after the first one"},
		{
			"trials only",
			tuner.Plan{Now: now, Limit: 19, Launches: 4, Pairs: 3, Search: 10 * time.Minute, Full: 12 * time.Minute},
			15, true,
			"15 more trials of 10 min fit, then 6 confirmation launches (1 h 12 min); done about 01:42",
		},
		{
			"time binds",
			tuner.Plan{Now: now, Deadline: now.Add(2 * time.Hour), Limit: 19, Launches: 4, Pairs: 3, Search: 10 * time.Minute, Full: 12 * time.Minute},
			4, true,
			"4 more trials of 10 min fit, then 6 confirmation launches (1 h 12 min); done about 23:52",
		},
		{
			"reserve binds",
			tuner.Plan{Now: now, Deadline: now.Add(80 * time.Minute), Pairs: 3, Search: 10 * time.Minute, Full: 12 * time.Minute},
			0, false,
			"0 more trials of 10 min fit, then 6 confirmation launches (1 h 12 min); done about 23:12",
		},
		{
			"half confirmed",
			tuner.Plan{Now: now, Limit: 2, Launches: 2, Pairs: 3, Done: 3, Search: time.Minute, Full: time.Minute},
			0, false,
			"0 more trials of 1 min fit, then 3 confirmation launches (3 min); done about 22:03",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ok, why := tt.plan.SearchFits()
			if tt.plan.Fits() != tt.fits || ok != tt.ok || (why == "") != ok || tt.plan.Text() != tt.text {
				t.Errorf("fits %d, search fits %v (%s), text %q", tt.plan.Fits(), ok, why, tt.plan.Text())
			}
		})
	}
}
