package tuner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// maxAsks bounds how often the sampler is asked within one turn: a sampler whose proposals are all
// refused has nothing left.
const maxAsks = 200

// begin prepares a run of the program: the row, the deadline, who is new.
func (l *Loop) begin(ctx context.Context, h History) error {
	now := l.Clock.Now()
	finish := finishTime
	if l.Study.Finish.Launch == "best" || l.Study.Finish.Launch == "baseline" {
		if b := h.Baseline(); b != nil {
			finish += b.Startup
		}
	}
	var err error
	if l.deadline, err = deadline(l.Study.Budget, h, now, finish); err != nil {
		return err
	}
	l.first, l.told = h.NextNumber(), map[string]bool{}
	l.live.start(-1, 0)
	r := l.Record
	r.Name, r.State, r.Reason, r.BaselineConfig = l.Study.Name, StudyRunning, "", l.Study.Baseline
	if r.StartedAt.IsZero() {
		r.StartedAt = now
		if r.CreatedAt.IsZero() {
			r.CreatedAt = now
		}
	}
	return l.save(ctx)
}

// settled reports whether the study has its verdict for good. One that is not confirmed for want
// of launches goes on when it is run again.
func (l *Loop) settled(h History) bool {
	r := l.Record
	if r.State != StudyComplete || r.Verdict == nil {
		return false
	}
	if r.Verdict.Answer != benchmark.AnswerNotConfirmed {
		return true
	}
	c := confirmation{h: h, baseline: l.Study.Baseline, candidate: r.Candidate, pairs: r.Confirm}
	_, more := c.next()
	return r.Candidate != nil && !more
}

// waiting is the oldest trial that is stored but was not launched: asked for by a person, or left
// by a run that was killed in between. The world may have changed since: one that is no longer
// admitted, or comes too late, is cancelled.
func (l *Loop) waiting(ctx context.Context, h History) (*trial.Trial, error) {
	for _, t := range h {
		if t.State != trial.Waiting {
			continue
		}
		refusal := l.tooLate(h, t)
		if refusal == "" && t.Role == trial.RoleSearch {
			others := h.where(func(o *trial.Trial) bool { return o != t })
			if err := l.rules(others)(t.Config); err != nil {
				refusal = err.Error()
			}
		}
		if refusal == "" {
			return t, nil
		}
		t.State, t.EndedAt = trial.Cancelled, l.Clock.Now()
		t.Verdict = trial.Verdict{
			Outcome: trial.Aborted, Phase: sglang.PhaseLaunch, Cause: "operator_signal", Blames: trial.BlameNo,
			Text: "not launched: " + refusal,
		}
		if err := l.Store.SaveTrial(ctx, t); err != nil {
			return nil, fmt.Errorf("cancel trial %d: %w", t.Number, err)
		}
		if err := l.event(ctx, Event{Kind: "reject", Trial: &t.Number, Config: t.Config, Text: refusal}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// tooLate says why a waiting trial's turn is past, "" when it is not.
func (l *Loop) tooLate(h History, t *trial.Trial) string {
	p := l.plan(h)
	switch {
	case t.Role == trial.RoleSearch && l.Record.Candidate != nil:
		return "the search is over"
	case t.Role == trial.RoleConfirm && !p.ConfirmFits(), t.Role == trial.RoleSearch && !p.TimeFits():
		return fmt.Sprintf("too little time is left: %s", span(p.Deadline.Sub(p.Now)))
	}
	return ""
}

// baseline launches trial 0 until it ran or is to blame. It is not subject to admission: it runs
// as the user runs it. An innocent failure is retried once, then the study stops; one under the
// canary is repeated once with a smaller canary.
func (l *Loop) baseline(ctx context.Context, h History) (*trial.Trial, error) {
	strikes, why := 0, "the baseline: what runs today"
	for _, t := range h.Role(trial.RoleBaseline) {
		switch {
		case interrupted(t):
			why = "the baseline again: its launch was interrupted"
		case blamed(t) && !t.CanaryShrunk && inCanary(t):
			why = "the baseline again, with a smaller canary: the trace's own worst minute"
		case t.State != trial.Failed || blamed(t):
			return nil, nil
		case t.Verdict.Blames == trial.BlamePartly && strikes > 0:
			return nil, nil // twice: it does not run, and that may be its own fault
		default:
			why = fmt.Sprintf("the baseline again: trial %d ended %s, which is not its fault", t.Number, t.Verdict.Outcome)
			if t.Number >= l.first || t.Verdict.Blames == trial.BlamePartly {
				strikes++
			}
			if strikes >= maxBaselines {
				return nil, &Stopped{Cause: ErrBreaker, Reason: fmt.Sprintf(
					"stopped: the baseline failed twice through no fault of its own: %s (%s); repair that, then run the study again", t.Verdict.Outcome, t.Verdict.Text)}
			}
		}
	}
	return l.newTrial(h, trial.RoleBaseline, Proposal{Config: l.Study.Baseline, Why: why, Sampler: "baseline"}), nil
}

// inCanary reports whether a trial ended while it took the canary.
func inCanary(t *trial.Trial) bool {
	_, begun := t.Steps[trial.StepCanary]
	_, past := t.Steps[trial.StepWarmup]
	return begun && !past
}

// search launches what must be launched again, then what the sampler proposes, until the budget
// is used. It is over for good once a candidate is fixed.
func (l *Loop) search(ctx context.Context, h History) (*trial.Trial, error) {
	if l.Record.Candidate != nil || len(h.Role(trial.RoleConfirm)) > 0 {
		return nil, nil
	}
	if fits, _ := l.plan(h).SearchFits(); !fits {
		return nil, nil
	}
	admit := NewAdmission(l.Study, h, l.facts, NewFrontier(h).Check).Admit
	if p, ok := l.owed(h, admit); ok {
		return l.newTrial(h, trial.RoleSearch, p), nil
	}
	refused := map[string]error{}
	problem := l.problem(h, func(c sglang.Config) error {
		err := admit(c)
		if err != nil {
			refused[Key(c)] = err
		}
		return err
	})
	for range maxAsks {
		p, err := l.Sampler.Sample(ctx, problem)
		if errors.Is(err, ErrExhausted) {
			return nil, l.event(ctx, Event{Kind: "plan", Text: fmt.Sprintf("nothing is left to try: %v", err)})
		}
		if err != nil {
			return nil, fmt.Errorf("ask the sampler for trial %d: %w", h.NextNumber(), err)
		}
		if err := admit(p.Config); err != nil {
			refused[Key(p.Config)] = err
			continue
		}
		if err := l.rejected(ctx, refused); err != nil {
			return nil, err
		}
		l.abortBelow = p.AbortBelow
		return l.newTrial(h, trial.RoleSearch, p), nil
	}
	return nil, l.event(ctx, Event{Kind: "plan", Text: fmt.Sprintf("nothing is left to try: %d proposals in a row were not admitted", maxAsks)})
}

// owed is what must be launched before the sampler is asked: the lossless twin of a lossy
// baseline, then configurations whose launch said nothing about them.
func (l *Loop) owed(h History, admit func(sglang.Config) error) (Proposal, bool) {
	if twin, lossy := losslessTwin(l.Study); lossy && !taken(h)[Key(twin)] && admit(twin) == nil {
		return Proposal{Config: twin, Sampler: "twin", Why: "the baseline is lossy: this is the same without loss, so that speed can be told from quality"}, true
	}
	for _, t := range h.Requeue() {
		if admit(t.Config) == nil {
			return Proposal{
				Config: t.Config, Levels: t.Plan, Sampler: t.Sampler,
				Why: fmt.Sprintf("again: trial %d says nothing about this configuration (%s)", t.Number, reasonAgain(t)),
			}, true
		}
	}
	return Proposal{}, false
}

func reasonAgain(t *trial.Trial) string {
	if t.Void != "" {
		return "void: " + t.Void
	}
	return string(t.Verdict.Outcome)
}

// toldPerRule bounds the rejections stored per rule and turn: a sampler may look at thousands of
// points, and a person wants to see the limits, not each point behind them.
const toldPerRule = 3

// rejected stores refusals as events, each text once in a run of the program.
func (l *Loop) rejected(ctx context.Context, refused map[string]error) error {
	told := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		var why *Infeasible
		text, rule := refused[key].Error(), ""
		if errors.As(refused[key], &why) {
			rule = why.Rule
		}
		if rule == RuleRepeat || l.told[text] || told[rule] >= toldPerRule {
			continue
		}
		told[rule]++
		l.told[text] = true
		if err := l.event(ctx, Event{Kind: "reject", Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// rules are the admission rules a person's own configuration must meet too: all but the frontier.
func (l *Loop) rules(h History) func(sglang.Config) error {
	return NewAdmission(l.Study, h, l.facts, nil).Admit
}

// look reads the host's facts while nothing runs on it; a host that changed stops the study.
func (l *Loop) look(ctx context.Context) error {
	facts, err := l.Host.Facts(ctx)
	if err != nil {
		return fmt.Errorf("read the host's facts: %w", err)
	}
	if what := hostChanged(l.facts, facts); what != "" {
		return &Stopped{Cause: ErrBreaker, Reason: fmt.Sprintf(
			"stopped: the host changed: %s; figures of before and after cannot be compared; use a new study name", what)}
	}
	l.facts = facts
	return nil
}

// problem is what the sampler may know.
func (l *Loop) problem(h History, admit func(sglang.Config) error) Problem {
	return Problem{
		Space: l.Study.Space, Admit: admit, Workload: l.Workload, Levels: l.Study.Workload.Concurrency,
		History: h.Finished(), Pending: h.Pending(), Baseline: l.Study.Baseline,
		Base: sglang.Merge(l.Study.Baseline, l.Study.Passed), Seed: l.Study.Seed,
	}
}

// newTrial is the waiting row of the next launch.
func (l *Loop) newTrial(h History, role trial.Role, p Proposal) *trial.Trial {
	t := &trial.Trial{
		Study: l.Study.Name, Number: h.NextNumber(), Role: role, Config: p.Config, Why: p.Why, Sampler: p.Sampler,
		Plan: p.Levels, State: trial.Waiting, LowWater: -1, OwnRAM: -1, MinRAM: -1, CreatedAt: l.Clock.Now(),
	}
	if len(t.Plan) == 0 {
		t.Plan = planLevels(h, role, l.Study.Workload.Concurrency)
	}
	for _, b := range h.Role(trial.RoleBaseline) {
		t.CanaryShrunk = t.CanaryShrunk || b.CanaryShrunk || (role == trial.RoleBaseline && blamed(b) && inCanary(b))
	}
	return t
}

// planLevels are the load levels a trial measures, busiest first: the baseline and the
// confirmation all of them, the search the best one so far and its upper neighbour.
func planLevels(h History, role trial.Role, all []int) []int {
	levels := slices.Clone(all)
	if best := h.Best(); best != nil && role == trial.RoleSearch {
		if i := slices.Index(all, best.Best); i >= 0 {
			levels = slices.Clone(all[i:min(i+2, len(all))])
		}
	}
	slices.Reverse(levels)
	return levels
}

// losslessTwin is the baseline without its lossy settings; lossy is false when it has none.
func losslessTwin(s *Study) (twin sglang.Config, lossy bool) {
	if !lossyConfig(s.Baseline) {
		return nil, false
	}
	twin = s.Baseline.Clone()
	for name, v := range s.Baseline {
		if Lossy(name, v) != "" {
			delete(twin, name)
		}
	}
	if _, had := s.Baseline[kvDtype]; had {
		twin[kvDtype] = "bf16"
	}
	return Canonical(sglang.Merge(twin, s.Passed)), true
}

// lossyConfig reports whether a configuration may make answers worse.
func lossyConfig(c sglang.Config) bool {
	for name, v := range c {
		if Lossy(name, v) != "" {
			return true
		}
	}
	return false
}
