package tuner

import (
	"sgtune/sglang"
	"sgtune/trial"
)

// History is a study's trials as stored, oldest first, with the questions the loop asks of them.
// It is read anew at every turn: nothing the loop decides depends on anything else, so a study
// that was killed continues as if nothing had happened.
type History []*trial.Trial

// Limits on launching the same configuration again.
const (
	maxRequeues   = 2 // after a trial that says nothing about the configuration
	maxReruns     = 1 // after one that blames it partly (a bug that this configuration may provoke)
	maxBaselines  = 2 // launches of a baseline that fails innocently: it is retried once
	maxConfirmEnd = 2 // failed confirmation launches of a side that are repeated

	maxConfirmBreaks = 8 // interrupted ones, over all runs of the program
)

// NextNumber is the number of the next trial: never reused, 0 for the baseline.
func (h History) NextNumber() int {
	n := 0
	for _, t := range h {
		n = max(n, t.Number+1)
	}
	return n
}

// Numbered finds a trial by its number, nil when there is none.
func (h History) Numbered(n int) *trial.Trial {
	for _, t := range h {
		if t.Number == n {
			return t
		}
	}
	return nil
}

// Finished are the trials that ended, void ones included.
func (h History) Finished() History {
	return h.where(func(t *trial.Trial) bool { return t.State.Finished() })
}

// Pending are the trials that wait or run. It is never nil: a sampler is told that none do.
func (h History) Pending() History {
	return append(History{}, h.where(func(t *trial.Trial) bool { return !t.State.Finished() })...)
}

// Role are the trials of one role.
func (h History) Role(r trial.Role) History {
	return h.where(func(t *trial.Trial) bool { return t.Role == r })
}

// Launches counts what the trial budget pays for: baseline and search launches, also those that
// wait to be launched. A row that was cancelled before its launch cost nothing, and one that was lost with
// sgtune is not paid for: else a kill -9 would take a configuration from the search.
func (h History) Launches() int {
	return len(h.where(func(t *trial.Trial) bool {
		return t.Role != trial.RoleConfirm && (t.State != trial.Cancelled || !t.StartedAt.IsZero()) && !lost(t)
	}))
}

// lost reports whether a trial's sgtune was gone before it ended (trial.Recover), through nobody's decision.
func lost(t *trial.Trial) bool {
	return t.State == trial.Failed && t.Verdict.Outcome == trial.Aborted && t.Verdict.Cause == "unknown"
}

// Baseline is the newest baseline launch with a value, else the newest one that ended, nil before.
func (h History) Baseline() *trial.Trial {
	var last *trial.Trial
	for _, t := range h.Role(trial.RoleBaseline) {
		if t.State.Finished() && (last == nil || counts(t) || !counts(last)) {
			last = t
		}
	}
	return last
}

// Best is the search or baseline trial with the highest value that counts, nil without one.
func (h History) Best() *trial.Trial {
	var best *trial.Trial
	for _, t := range h {
		if t.Role != trial.RoleConfirm && counts(t) && (best == nil || *t.Value > *best.Value) {
			best = t
		}
	}
	return best
}

// Requeue are the configurations that must be launched again, oldest first, each as its newest
// trial: void, interrupted, or ended by something that is not their own fault, and every later
// launch went the same way, at most maxRequeues times. A partly blamed one gets a single rerun.
func (h History) Requeue() History {
	type launches struct {
		newest  *trial.Trial
		count   int
		settled bool
	}
	byKey := map[string]*launches{}
	var order []*launches
	for _, t := range h.Role(trial.RoleSearch) {
		l := byKey[Key(t.Config)]
		if l == nil {
			l = &launches{}
			byKey[Key(t.Config)] = l
			order = append(order, l)
		}
		l.newest, l.count, l.settled = t, l.count+1, l.settled || !again(t)
	}
	var out History
	for _, l := range order {
		limit := maxRequeues
		if l.newest.Void == "" && l.newest.State == trial.Failed && l.newest.Verdict.Blames == trial.BlamePartly {
			limit = maxReruns
		}
		if !l.settled && l.count <= limit {
			out = append(out, l.newest)
		}
	}
	return out
}

// taken are the configurations a sampler must not propose: launched or on their way. What must be
// launched again is the loop's business (Requeue).
func taken(trials ...[]*trial.Trial) map[string]bool {
	keys := map[string]bool{}
	for _, list := range trials {
		for _, t := range list {
			keys[Key(t.Config)] = true
		}
	}
	return keys
}

// counts reports whether a trial's value may be ranked.
func counts(t *trial.Trial) bool {
	return t.State == trial.Complete && t.Value != nil && t.Void == ""
}

// again reports whether a finished trial says nothing final about its configuration.
func again(t *trial.Trial) bool {
	switch {
	case !t.State.Finished():
		return false
	case t.Void != "", t.State == trial.Cancelled:
		return true
	case t.State == trial.Failed:
		return t.Verdict.Blames != trial.BlameYes
	}
	return false
}

// interrupted reports whether a trial ended because its study did, by a person or with sgtune.
func interrupted(t *trial.Trial) bool {
	return t.State == trial.Cancelled || t.Void != "" || t.Verdict.Outcome == trial.Aborted
}

// blamed reports whether a trial failed by its own configuration's fault.
func blamed(t *trial.Trial) bool {
	return t.State == trial.Failed && t.Void == "" && t.Verdict.Blames == trial.BlameYes
}

// sameConfig reports whether two configurations are the same launch.
func sameConfig(a, b sglang.Config) bool { return Key(a) == Key(b) }

func (h History) where(keep func(*trial.Trial) bool) History {
	var out History
	for _, t := range h {
		if keep(t) {
			out = append(out, t)
		}
	}
	return out
}
