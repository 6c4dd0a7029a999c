package tuner

import (
	"fmt"
	"slices"
	"time"

	"sgtune/trial"
)

// finishTime is host time kept free before the deadline for what follows the verdict.
const finishTime = 2 * time.Minute

// Plan is what still fits into a study: the confirmation is planned first, the search gets the
// rest. It is made anew from history at every turn.
type Plan struct {
	Now      time.Time     // host time
	Deadline time.Time     // host time at which nothing of a trial may run any more, zero = none
	Launches int           // search and baseline launches made
	Limit    int           // of the trial budget, 0 = none
	Search   time.Duration // learnt length of a search trial, 0 unknown
	Full     time.Duration // learnt length of a trial that measures all load levels, 0 unknown
	Pairs    int           // confirmation launches each side
	Sides    int           // sides of the confirmation, 0 = two
	Done     int           // confirmation launches that count so far, all sides
	AtOnce   int           // search trials that run at the same time, 0 = one
}

// newPlan learns from history. pairs is the number of confirmation launches each side, as fixed or
// as expected; what of them is done the caller adds.
func newPlan(h History, b Budget, now, deadline time.Time, pairs int) Plan {
	p := Plan{Now: now, Deadline: deadline, Launches: h.Launches(), Limit: b.Trials, Pairs: pairs}
	var search, full []time.Duration
	for _, t := range h.Finished() {
		took := t.EndedAt.Sub(t.StartedAt)
		if t.StartedAt.IsZero() || took <= 0 || interrupted(t) {
			continue
		}
		switch {
		case t.Role == trial.RoleSearch:
			search = append(search, took)
		case counts(t):
			full = append(full, took)
		}
	}
	p.Search, p.Full = median(search), median(full)
	if p.Full == 0 {
		p.Full = p.Search
	}
	if p.Search == 0 {
		p.Search = p.Full
	}
	return p
}

// ToConfirm is how many launches the confirmation still needs.
func (p Plan) ToConfirm() int { return max(0, max(2, p.Sides)*p.Pairs-p.Done) }

// Reserve is the time the confirmation still needs: n launches a side at the learnt length.
func (p Plan) Reserve() time.Duration { return time.Duration(p.ToConfirm()) * p.Full }

// SearchFits reports whether another search trial fits beside the confirmation; why says what is
// used up when it does not.
func (p Plan) SearchFits() (ok bool, why string) {
	if p.Limit > 0 && p.Launches >= p.Limit {
		return false, fmt.Sprintf("the budget of %d trials is used", p.Limit)
	}
	if p.TimeFits() {
		return true, ""
	}
	return false, fmt.Sprintf("%s are left until %s: another trial (%s) and the confirmation (%d launches, %s) do not both fit",
		span(p.Deadline.Sub(p.Now)), p.Deadline.Format("15:04"), span(p.Search), p.ToConfirm(), span(p.Reserve()))
}

// TimeFits is SearchFits without the trial budget.
func (p Plan) TimeFits() bool {
	return p.Deadline.IsZero() || p.Now.Add(p.Search+p.Reserve()).Before(p.Deadline)
}

// LaunchFits reports whether there is any time left at all.
func (p Plan) LaunchFits() bool { return p.Deadline.IsZero() || p.Now.Before(p.Deadline) }

// ConfirmFits reports whether one more confirmation launch fits.
func (p Plan) ConfirmFits() bool {
	return p.Deadline.IsZero() || p.Now.Add(p.Full).Before(p.Deadline)
}

// Fits is the number of search trials that still fit, -1 when nothing limits them or it is unknown.
func (p Plan) Fits() int {
	n := -1
	if p.Limit > 0 {
		n = max(0, p.Limit-p.Launches)
	}
	if !p.Deadline.IsZero() && p.Search > 0 {
		byTime := max(0, int((p.Deadline.Sub(p.Now)-p.Reserve())/p.Search)) * max(1, p.AtOnce)
		if n < 0 || byTime < n {
			n = byTime
		}
	}
	return n
}

// End is when the study will have its verdict at the learnt pace, the zero time when unknown.
func (p Plan) End() time.Time {
	n := p.Fits()
	if n < 0 || p.Full == 0 {
		return time.Time{}
	}
	return p.Now.Add(p.Searching(n) + p.Reserve())
}

// Searching is how long so many search trials take, AtOnce at the same time.
func (p Plan) Searching(n int) time.Duration {
	at := max(1, p.AtOnce)
	return time.Duration((n+at-1)/at) * p.Search
}

// Text says what still fits, for a person.
func (p Plan) Text() string {
	n := p.Fits()
	if n < 0 || p.Full == 0 {
		return fmt.Sprintf("%s launched; how many fit is known after the first one", plural(p.Launches, "trial", "trials"))
	}
	confirm := p.ToConfirm()
	if n == 0 && confirm == 0 {
		return "nothing is left to launch"
	}
	return fmt.Sprintf("%s of %s fit, then %s (%s); done about %s", plural(n, "more trial", "more trials"), span(p.Search),
		plural(confirm, "confirmation launch", "confirmation launches"), span(p.Reserve()), p.End().Format("15:04"))
}

// deadline is the host time at which the study must be over: whichever of the wall time and the
// hour comes first. Wall time is host time spent on trials: a study that was interrupted overnight
// does not lose it, so what earlier trials took is subtracted.
func deadline(b Budget, h History, now time.Time, finish time.Duration) (time.Time, error) {
	var end time.Time
	if b.Wall > 0 {
		end = now.Add(b.Wall - ran(h))
	}
	if b.Until == "" {
		return end, nil
	}
	until := b.UntilAt
	if until.IsZero() {
		hour, err := time.Parse("15:04", b.Until)
		if err != nil {
			return end, fmt.Errorf("budget.until %q: write an hour of the host's clock as 07:00", b.Until)
		}
		y, m, d := now.Date()
		until = time.Date(y, m, d, hour.Hour(), hour.Minute(), 0, 0, now.Location())
		if !until.After(now) {
			until = until.AddDate(0, 0, 1)
		}
	}
	if until = until.Add(-finish); end.IsZero() || until.Before(end) {
		end = until
	}
	return end, nil
}

// ran is how long trials ran, time in which several did counted once.
func ran(h History) (sum time.Duration) {
	var last time.Time
	for _, t := range byStart(h.Finished()) {
		from := t.StartedAt
		if from.IsZero() || !t.EndedAt.After(last) {
			continue
		}
		if from.Before(last) {
			from = last
		}
		if t.EndedAt.After(from) {
			sum, last = sum+t.EndedAt.Sub(from), t.EndedAt
		}
	}
	return sum
}

func byStart(h History) History {
	return slices.SortedStableFunc(slices.Values(h), func(a, b *trial.Trial) int { return a.StartedAt.Compare(b.StartedAt) })
}

// UntilText is budget.until for a person whose own clock is of zone here: on another machine it says both times.
func (s *Study) UntilText(here *time.Location) string {
	at := s.Budget.UntilAt
	at = at.In(here).Round(time.Minute)
	if s.Budget.UntilAt.IsZero() || at.Format("15:04") == s.Budget.Until {
		return s.Budget.Until
	}
	return fmt.Sprintf("%s on %s = %s here", s.Budget.Until, s.Host.Address, at.Format("15:04"))
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2]
}

// span is a length of time as a person says it, never negative.
func span(d time.Duration) string { return FormatDuration(max(0, d).Round(time.Second)) }
