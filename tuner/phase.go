package tuner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sgtune/sglang"
	"sgtune/trial"
)

// maxAsks bounds how often the sampler is asked within one turn: a sampler whose proposals are all
// refused has nothing left.
const maxAsks = 200

// waiting is the oldest trial that is stored but was not launched: asked for by a person, or left
// by a run that was killed in between. The world may have changed since: one that is no longer
// admitted, or comes too late, is cancelled.
func (l *Loop) waiting(ctx context.Context, h History) (*trial.Trial, error) {
	for _, t := range h {
		if t.State != trial.Waiting || l.running.of[t.Number] != nil {
			continue
		}
		if len(l.running.of) > 0 && runsAlone(t) {
			return nil, nil // its turn comes when they have ended
		}
		refusal := l.tooLate(h, t)
		if refusal == "" && t.Role == trial.RoleSearch {
			others := h.where(func(o *trial.Trial) bool { return o != t })
			if err := l.rules(others)(t.Config); err != nil {
				refusal = err.Error()
			}
		}
		if refusal == "" && t.Role == trial.RoleConfirm {
			if err := l.roomFor(h, t.Config); err != nil {
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
	case !p.LaunchFits(), t.Role == trial.RoleConfirm && !p.ConfirmFits(), t.Role == trial.RoleSearch && !p.TimeFits():
		return fmt.Sprintf("too little time is left: %s", span(p.Deadline.Sub(p.Now)))
	}
	return ""
}

// baseline launches trial 0 until it ran or is to blame. It is not subject to admission: it runs
// as the user runs it. An innocent failure is retried once, then the study stops; one under the
// canary is repeated once with a smaller canary.
func (l *Loop) baseline(ctx context.Context, h History) (*trial.Trial, error) {
	strikes, breaks, why := 0, 0, "the baseline: what runs today"
	for _, t := range h.Role(trial.RoleBaseline) {
		switch {
		case interrupted(t):
			why = "the baseline again: its launch was interrupted"
			if t.Number >= l.first {
				breaks++
			}
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
	if p := l.plan(h); breaks > maxRequeues || !p.LaunchFits() {
		return nil, nil
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
		t := l.newTrial(h, trial.RoleSearch, p)
		return t, l.event(ctx, Event{Kind: "requeue", Trial: &t.Number, Config: t.Config, Text: p.Why})
	}
	refused := map[string]refusal{}
	refuse := func(c sglang.Config, err error) { refused[Key(c)] = refusal{c, err} }
	problem := l.problem(h, func(c sglang.Config) error {
		err := admit(c)
		if err != nil {
			refuse(c, err)
		}
		return err
	})
	problem.Refused = refuse
	p, err := l.propose(ctx, h, problem)
	if told := l.rejected(ctx, refused); told != nil { // also when nothing is left: that is when a person asks why
		return nil, told
	}
	if errors.Is(err, ErrExhausted) && len(l.running.of) > 0 {
		return nil, nil // until those that run have ended: one of them may have to be launched again
	}
	if errors.Is(err, ErrExhausted) {
		return nil, l.event(ctx, Event{Kind: "plan", Text: exhausted(err)})
	}
	if err != nil {
		return nil, err
	}
	l.abortBelow = p.AbortBelow
	return l.newTrial(h, trial.RoleSearch, p), nil
}

// exhausted says why the search ends before its budget does, in the innermost words: who asked whom
// is of no use to a person.
func exhausted(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		if errors.Unwrap(next) == ErrExhausted { //nolint:errorlint // the link before the last is wanted
			err = next
		}
	}
	return fmt.Sprintf("nothing is left to try: %v", err)
}

// propose asks the sampler until a proposal is admitted, up to a limit.
func (l *Loop) propose(ctx context.Context, h History, problem Problem) (Proposal, error) {
	for range maxAsks {
		p, err := l.Sampler.Sample(ctx, problem)
		if err != nil {
			return Proposal{}, fmt.Errorf("ask the sampler for trial %d: %w", h.NextNumber(), err)
		}
		if problem.Admit(p.Config) == nil {
			return p, nil
		}
	}
	return Proposal{}, fmt.Errorf("%w: %d proposals in a row were not admitted", ErrExhausted, maxAsks)
}

// refusal is a configuration that was not admitted, and the rule against it.
type refusal struct {
	config sglang.Config
	why    error
}

// owed is what must be launched before the sampler is asked: the lossless twin of a lossy
// baseline, then configurations whose launch said nothing about them.
func (l *Loop) owed(h History, admit func(sglang.Config) error) (Proposal, bool) {
	if twin, lossy := losslessTwin(l.Study); lossy && !taken(h)[Key(twin)] && admit(twin) == nil {
		return Proposal{Config: twin, Sampler: twinName, Why: "the baseline is lossy: this is the same without loss, so that speed can be told from quality"}, true
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

// rejected stores refusals as events, each subject of a rule once in a run of the program.
func (l *Loop) rejected(ctx context.Context, refused map[string]refusal) error {
	told := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		r := refused[key]
		var why *Infeasible
		rule := ""
		if errors.As(r.why, &why) {
			rule = why.Rule
		}
		once := rule + " " + subject(rule, r.config, r.why.Error())
		if rule == RuleRepeat || l.told[once] || told[rule] >= toldPerRule {
			continue
		}
		told[rule]++
		l.told[once] = true
		if err := l.event(ctx, Event{Kind: "reject", Config: r.config, Text: r.why.Error()}); err != nil {
			return err
		}
	}
	return nil
}

// subject is what a refusal is about: the value that broke the rule, or the failure that stands
// against it, whatever else the point had. The numbers of a memory rule move a little with every
// trial, so its text does not tell.
func subject(rule string, c sglang.Config, text string) string {
	switch rule {
	case RuleHostRAM, RuleHostTokens:
		return hicacheSize + " " + c.Text(hicacheSize)
	case RuleKVTokens:
		return memFraction + " " + c.Text(memFraction)
	case RuleLine:
		return pairs(sglang.Config{memFraction: c[memFraction], chunkedSize: c[chunkedSize]})
	case RuleFrontier:
		if _, failure, found := strings.Cut(text, " is at or "); found {
			return failure
		}
	}
	return text
}
