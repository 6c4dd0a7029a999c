package tuner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// begin prepares a run of the program: the row, the deadline, who is new.
func (l *Loop) begin(ctx context.Context, h History) error {
	now := l.Clock.Now()
	var err error
	if l.end, err = deadline(l.Study.Budget, h, now, finishTime); err != nil {
		return err
	}
	l.deadline = l.end
	l.first, l.told = h.NextNumber(), map[string]bool{}
	l.running.reset()
	r := l.Record
	r.Name, r.State, r.Reason, r.BaselineConfig = l.Study.Name, StudyRunning, "", l.Study.Baseline
	if r.StartedAt.IsZero() {
		r.StartedAt = now
		if r.CreatedAt.IsZero() {
			r.CreatedAt = now
		}
	}
	if err := l.save(ctx); err != nil || len(h) > 0 {
		return err
	}
	for _, e := range l.Study.Excluded { // what a rule keeps out of the space is said once
		if err := l.event(ctx, Event{Kind: "reject", Config: sglang.Config{e.Knob: e.Value}, Text: e.Text}); err != nil {
			return err
		}
	}
	return nil
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
	_, more := l.confirmation(h).next()
	return r.Candidate != nil && !more
}

// setDeadline keeps time free before the end for the server that is launched last, as soon as its
// start-up time is known.
func (l *Loop) setDeadline(h History) {
	l.deadline = l.end
	if b := h.Baseline(); b != nil && !l.end.IsZero() && l.launchesLast() {
		l.deadline = l.end.Add(-b.Startup)
	}
}

// launchesLast reports whether the study launches a server when it is over.
func (l *Loop) launchesLast() bool {
	return l.Study.Finish.Launch == "best" || l.Study.Finish.Launch == "baseline"
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
	if what := l.hostChanged(facts); what != "" {
		return &Stopped{Cause: ErrBreaker, Reason: fmt.Sprintf(
			"stopped: the host changed: %s; figures of before and after cannot be compared; use a new study name", what)}
	}
	if facts.gpusUnread() {
		facts.GPUs = l.facts.GPUs // compared again at the next reading
	}
	for _, g := range facts.GPUs { // every trial before this turn was released: whoever is here came from outside
		if float64(g.Used) > unlisted*float64(g.Total) {
			return &Stopped{Cause: ErrHeld, Reason: fmt.Sprintf(
				"stopped: GPU %d came into use by somebody else between two trials (%s of %s): %s; free it, then run the study again",
				g.Index, FormatSize(float64(g.Used)), FormatSize(float64(g.Total)), holdersOf(g))}
		}
	}
	l.facts = facts
	return nil
}

func holdersOf(g GPUFact) string {
	if len(g.Holders) == 0 {
		return "no process is listed, so the holder is outside this container or VM"
	}
	return strings.Join(g.Holders, ", ")
}

// problem is what the sampler may know.
func (l *Loop) problem(h History, admit func(sglang.Config) error) Problem {
	p := StudyProblem(l.Study, h, l.facts, l.Workload)
	p.Admit, p.Remaining = admit, max(0, l.plan(h).Fits())
	return p
}

// StudyProblem is what a sampler may know of a study at a point of its history; a page or a report
// asks the models with it. Admit is by the rules alone: neither failures nor the learnt line, and no
// repeat, count against a configuration. The workload may be nil; facts of a host that was not asked
// are HostFacts{MemAvailable: -1, CgroupHeadroom: -1}.
func StudyProblem(s *Study, h History, facts HostFacts, w *benchmark.Workload) Problem {
	ram := hostRAM(s, h, facts, OwnRAM(h))
	return Problem{
		Space: s.Space, Admit: rulesOnly(s, h, facts).Admit, Workload: w, Levels: s.Workload.Concurrency,
		History: h.Finished(), Pending: h.Pending(), Baseline: s.Baseline, Base: s.SearchBase(), Seed: s.Seed,
		Flags: sglang.Merge(s.Server.Flags, s.Passed), Version: s.Server.Version, GPUGiB: facts.smallestGPU(),
		PoolGB: ram.most(sglang.Merge(s.Server.Flags, s.SearchBase())) / sglang.GB, Objective: s.Objective,
	}
}

// newTrial is the waiting row of the next launch.
func (l *Loop) newTrial(h History, role trial.Role, p Proposal) *trial.Trial {
	t := &trial.Trial{
		Study: l.Study.Name, Number: h.NextNumber(), Role: role, Config: p.Config, Why: p.Why, Reason: p.Reason, Sampler: p.Sampler,
		Plan: p.Levels, State: trial.Waiting, LowWater: -1, OwnRAM: -1, MinRAM: -1, CreatedAt: l.Clock.Now(),
	}
	if len(t.Plan) == 0 {
		t.Plan = planLevels(h, role, l.Study.Workload.Concurrency, l.Study.Objective)
	}
	for _, b := range h.Role(trial.RoleBaseline) {
		t.CanaryShrunk = t.CanaryShrunk || b.CanaryShrunk || (role == trial.RoleBaseline && blamed(b) && inCanary(b))
	}
	return t
}

// planLevels are the load levels a trial measures, busiest first: the baseline and the
// confirmation all of them, the search the best one so far and its upper neighbour.
func planLevels(h History, role trial.Role, all []int, o Objective) []int {
	levels := slices.Clone(all)
	if best := h.Best(); best != nil && role == trial.RoleSearch {
		if i := slices.Index(all, o.lowestBest(best)); i >= 0 {
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
