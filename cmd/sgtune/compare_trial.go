package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

// trialOperand is a trial as a person names it: STUDY:12, STUDY:baseline, STUDY:best. Without a study it is
// of the newest one.
type trialOperand struct{ study, which string }

// mostFailed is how many failed confirmation launches of a side an answer survives, as in the verdict of
// a study: with more of them those that are left are the lucky ones.
const mostFailed = 2

// trialSide is a trial's configuration with all its launches that count. Fresh launches of the
// confirmation are preferred, as in the verdict: a search trial was chosen because its value is high.
func trialSide(ctx context.Context, db *store.DB, o trialOperand) (*side, *tuner.Record, error) {
	if o.study == "" {
		all, err := db.Studies(ctx)
		if err != nil {
			return nil, nil, err
		}
		if len(all) > 0 {
			o.study = all[0].Name
		}
	}
	study, err := findStudy(ctx, db, o.study)
	if err != nil {
		return nil, nil, err
	}
	r := &study.Record
	trials, err := db.Trials(ctx, r.Name)
	if err != nil {
		return nil, nil, err
	}
	named, err := namedTrial(r, trials, o.which)
	if err != nil {
		return nil, nil, err
	}
	s := &side{name: fmt.Sprintf("%s:%d", r.Name, named.Number), noun: "launch", config: web.ConfigText(named.Config)}
	own := tuner.History(nil)
	for _, t := range trials {
		if t.State.Finished() && tuner.Key(t.Config) == tuner.Key(named.Config) {
			own = append(own, t)
		}
	}
	s.confirmed(own.Role(trial.RoleConfirm), r)
	if len(s.launches) > 0 {
		return s, r, nil
	}
	s.failed = 0 // no launch of the confirmation is used
	for _, t := range own {
		if t.Role != trial.RoleConfirm && valued(t) {
			s.launches = append(s.launches, trialLaunch(r, t))
		}
	}
	switch n := len(s.launches); {
	case n == 0:
		s.out = append(s.out, leftOut{trialName(named), noValue(named)})
	case named.Role == trial.RoleSearch:
		s.notes = append(s.notes, "it has no confirmation launch; a trial that was picked from many because it was fast is usually slower when launched again")
	}
	return s, r, nil
}

// confirmed takes the confirmation launches of a configuration, as many as the study had fixed.
func (s *side) confirmed(own tuner.History, r *tuner.Record) {
	for _, t := range own {
		switch {
		case valued(t) && (r.Confirm == 0 || len(s.launches) < r.Confirm):
			s.launches = append(s.launches, trialLaunch(r, t))
		case valued(t): // beyond the number fixed beforehand
		case t.State == trial.Cancelled, t.Void != "", t.Verdict.Outcome == trial.Aborted: // the study was interrupted, not the launch at fault
		default:
			s.out, s.failed = append(s.out, leftOut{trialName(t), noValue(t)}), s.failed+1
		}
	}
}

// namedTrial finds the trial that a person means.
func namedTrial(r *tuner.Record, trials []*trial.Trial, which string) (*trial.Trial, error) {
	h := tuner.History(trials)
	switch which {
	case "baseline":
		if t := h.Baseline(); t != nil {
			return t, nil
		}
		return nil, failf(exitFailed, "the baseline of %s has not ended yet; sgtune show %s says where it stands", r.Name, r.Name)
	case "best":
		if v := r.Verdict; v != nil {
			if t := h.Numbered(v.Trial); t != nil {
				return t, nil
			}
		}
		if t := h.Best(); t != nil {
			return t, nil
		}
		return nil, failf(exitFailed, "study %s has no trial with a value yet; sgtune show %s says where it stands", r.Name, r.Name)
	}
	n, err := strconv.Atoi(which)
	if err != nil || n < 0 {
		return nil, usagef("%.60q is no trial of %s; write its number, baseline or best", which, r.Name)
	}
	t := h.Numbered(n)
	switch {
	case t == nil:
		return nil, usagef("study %s has no trial %d; sgtune show %s lists them", r.Name, n, r.Name)
	case !t.State.Finished():
		return nil, failf(exitFailed, "trial %d of %s is %s; compare it when it has ended", n, r.Name, t.State)
	}
	return t, nil
}

// valued reports whether a trial's value counts.
func valued(t *trial.Trial) bool {
	return t.State == trial.Complete && t.Value != nil && t.Void == ""
}

func noValue(t *trial.Trial) string {
	switch {
	case t.Void != "":
		return "it is void: " + t.Void
	case t.State == trial.Complete:
		return "no load level met the SLO"
	case t.Verdict.Text != "":
		return fmt.Sprintf("it %s: %s", t.State, strings.TrimSuffix(t.Verdict.Text, "."))
	}
	return "it is " + string(t.State)
}

func trialName(t *trial.Trial) string { return fmt.Sprintf("trial %d", t.Number) }

// trialLaunch is one trial as a launch.
func trialLaunch(r *tuner.Record, t *trial.Trial) *comparedLaunch {
	l := &comparedLaunch{name: trialName(t), simulated: r.Simulated, decides: float64(t.Best)}
	if !t.StartedAt.IsZero() {
		l.started = t.StartedAt.Unix()
	}
	f := runFacts{model: r.Server.Model, server: t.SGLang, cache: cacheText(t.Cache)}
	if f.server != "" {
		f.server = "sglang " + f.server // as a replay names it
	}
	for _, level := range t.Levels {
		if level.Report != nil {
			l.levels = append(l.levels, &loadLevel{
				load: count(level.Concurrency, "client"), clients: level.Concurrency, report: level.Report, facts: f,
				meets: level.Concurrency == t.Best,
			})
		}
	}
	return l
}

// cacheText says how the cache protocol of a trial went.
func cacheText(c trial.Cache) string {
	switch {
	case !c.Flushed:
		return ""
	case c.FillWanted == 0:
		return "flushed"
	case c.Full:
		return "flushed, then filled"
	}
	return "flushed, then filled in part"
}

// studyDifferences are what two studies do not share beside their configurations: the file, the load, the
// host. Knobs are what is compared.
func studyDifferences(base, candidate *tuner.Record) []string {
	var out []string
	for _, section := range []string{"workload", "host", "server", "objective"} {
		a, b := identityLines(base.Identity[section]), identityLines(candidate.Identity[section])
		names := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			knob := section == "server" && (strings.HasPrefix(name, "baseline.") || strings.HasPrefix(name, "passed."))
			if a[name] != b[name] && !knob {
				out = append(out, fmt.Sprintf("the studies differ in %s.%s: base %s; candidate %s", section, name, orNone(a[name], "not set"), orNone(b[name], "not set")))
			}
		}
	}
	return out
}

// identityLines are the "name: value" lines of a section of a study's identity.
func identityLines(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok {
			out[name] = value
		}
	}
	return out
}
