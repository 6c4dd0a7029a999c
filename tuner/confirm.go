package tuner

import (
	"context"
	"fmt"
	"math"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

const (
	leastPairs = benchmark.LeastLaunches
	mostPairs  = 5
)

// confirm is the loop's last phase: candidate and baseline, and a second candidate where the time allows, are
// launched Record.Confirm times each in ABBA order, baseline first, so that a drift of the host falls on all
// sides alike. Candidates and count are in the store before the first of these launches: none of them may
// depend on what they measure. It returns nil when nothing is left to launch.
func (l *Loop) confirm(ctx context.Context, h History) (*trial.Trial, error) {
	if b := h.Baseline(); b == nil || !counts(b) {
		return nil, nil // nothing to compare with; the verdict says so
	}
	if err := l.fixCandidate(ctx, h); err != nil || l.Record.Candidate == nil {
		return nil, err
	}
	c, p := l.confirmation(h), l.plan(h)
	if c.second != nil && !p.Deadline.IsZero() && !p.Now.Add(p.Reserve()).Before(p.Deadline) {
		c.second = nil // the night became too short for it
	}
	side, more := c.next()
	if !more {
		return nil, nil
	}
	if !p.ConfirmFits() {
		return nil, l.event(ctx, Event{Kind: "plan", Text: fmt.Sprintf(
			"no further confirmation launch fits: one takes %s and %s are left", span(p.Full), span(p.Deadline.Sub(p.Now)))})
	}
	if err := l.roomFor(h, side); err != nil {
		return nil, l.event(ctx, Event{Kind: "plan", Config: side, Text: fmt.Sprintf("no further confirmation launch: %v; run the study again when the memory is free", err)})
	}
	what := "the candidate"
	switch {
	case sameConfig(side, l.Study.Baseline):
		what = "the baseline"
	case c.second != nil && sameConfig(side, c.second):
		what = "the second candidate"
	}
	why := fmt.Sprintf("confirmation, launch %d of %d: %s", c.done()+1, len(c.sides())*c.pairs, what)
	return l.newTrial(h, trial.RoleConfirm, Proposal{Config: side, Why: why, Sampler: "confirm"}), nil
}

// confirmation is where the confirmation stands.
func (l *Loop) confirmation(h History) confirmation {
	return confirmation{h: h, baseline: l.Study.Baseline, candidate: l.Record.Candidate, second: l.contender(h), pairs: l.Record.Confirm}
}

// contender is the second candidate: one that has launches already (it may have been fixed beside a first
// candidate that is out by now), else the one in the study's row.
func (l *Loop) contender(h History) sglang.Config {
	out := outOfConfirmation(h, l.Study.Baseline)
	usable := func(c sglang.Config) bool {
		return c != nil && !out[Key(c)] && !sameConfig(c, l.Study.Baseline) && !sameConfig(c, l.Record.Candidate)
	}
	for _, t := range h.Role(trial.RoleConfirm) {
		if usable(t.Config) {
			return t.Config
		}
	}
	if usable(l.Record.Second) {
		return l.Record.Second
	}
	return nil
}

// roomFor asks for the host RAM of a confirmation launch: hours may have passed since the candidate was
// admitted, and somebody may have filled the host. What the server takes for itself is what it took then.
// The baseline is what runs today and is not asked.
func (l *Loop) roomFor(h History, side sglang.Config) error {
	if sameConfig(side, l.Study.Baseline) {
		return nil
	}
	own := ownRAM(h, func(t *trial.Trial) bool { return sameConfig(t.Config, side) })
	return hostRAM(l.Study, h, l.facts, own).Check(side)
}

// fixCandidate chooses the candidate, the second one and the number of launches, and stores them together. A
// candidate that failed its confirmation by its own fault is out; the next best takes its place.
func (l *Loop) fixCandidate(ctx context.Context, h History) error {
	out := outOfConfirmation(h, l.Study.Baseline)
	if l.Record.Candidate != nil && !out[Key(l.Record.Candidate)] {
		return nil
	}
	if dropped := l.Record.Candidate; dropped != nil {
		text := "the candidate failed its confirmation and is out"
		if t := failedConfirm(h, dropped); t != nil {
			text = fmt.Sprintf("the candidate is out: confirmation launch %d ended %s (%s)", t.Number, t.Verdict.Outcome, t.Verdict.Text)
		}
		if err := l.event(ctx, Event{Kind: "requeue", Text: text, Config: dropped}); err != nil {
			return err
		}
	}
	s := l.judged(h)
	pick := candidate(h, l.Study.Baseline, out, s)
	if l.Record.Confirm == 0 {
		l.Record.Confirm = pairsFor(l.Study.Confirm, s.noise, pick, l.plan(h))
	}
	l.Record.Candidate, l.Record.Second, l.chosen = nil, nil, pick
	beside := ""
	if pick.trial != nil {
		l.Record.Candidate = pick.trial.Config
		l.Record.Second, beside = l.secondOf(h, pick, s)
	}
	if err := l.save(ctx); err != nil || pick.trial == nil {
		return err
	}
	_, over := l.plan(h).SearchFits()
	if over == "" {
		over = "nothing is left to try"
	}
	if text := s.drift.Text(); text != "" {
		if err := l.event(ctx, Event{Kind: "finding", Text: text + "; trials are ranked with that taken out"}); err != nil {
			return err
		}
	}
	return l.event(ctx, Event{Kind: "plan", Trial: &pick.trial.Number, Config: pick.trial.Config, Text: fmt.Sprintf(
		"the search is over (%s); candidate: %s%s%s; %s each side in ABBA order (two launches of one configuration differ by about %.1f%%)",
		over, pick.why, pick.outlook(), beside, plural(l.Record.Confirm, "launch", "launches"), 100*math.Sqrt2*s.noise.Launch)})
}

// When a second candidate is launched beside the first.
const (
	secondChance = 0.2 // chance that it is the better one, at least
	secondSlack  = 0.2 // of the confirmation's time, kept free beside it
)

// secondOf is the second candidate, where the study's time is limited and leaves room for its launches: the next
// in line, if it has a fair chance to be the better one; nil for none. said are words of it for the plan.
func (l *Loop) secondOf(h History, first choice, s standings) (second sglang.Config, said string) {
	p := l.plan(h)
	p.Sides = 3
	need := time.Duration(float64(p.Reserve()) * (1 + secondSlack))
	if first.gain <= 0 || p.Deadline.IsZero() || p.Full == 0 || !p.Now.Add(need).Before(p.Deadline) {
		return nil, ""
	}
	out := outOfConfirmation(h, l.Study.Baseline)
	out[Key(first.trial.Config)] = true
	next := candidate(h, l.Study.Baseline, out, s)
	if next.trial == nil || next.gain <= 0 {
		return nil, ""
	}
	_, chance, ok := s.gain(next.trial.Config, first.trial.Config)
	if !ok || chance < secondChance {
		return nil, ""
	}
	return next.trial.Config, fmt.Sprintf("; second candidate: trial %d, the better one with a chance of %.0f%%", next.trial.Number, math.Floor(100*chance))
}

// outlook says what is expected of the candidate beside the baseline, and when that is nothing.
func (c choice) outlook() string {
	switch {
	case !c.expected:
		return ""
	case c.gain <= 0:
		return fmt.Sprintf("; no candidate is expected to beat the baseline (this one: %s), so what runs today is likely to stay: the launches show whether it does", percent(c.gain))
	}
	return fmt.Sprintf("; expected %s, better than the baseline with a chance of %.0f%%", percent(c.gain), math.Min(99, math.Floor(100*c.chance)))
}

// pairsFor is the number of launches each side: what the study asks for, else the fewest of 3 to 5
// that can show the gain expected against the noise seen, as far as the time left allows. Where no gain
// is expected more launches would decide nothing: what runs today stays either way.
func pairsFor(asked int, noise Noise, pick choice, p Plan) int {
	if asked > 0 {
		return asked
	}
	n := leastPairs
	for pick.expected && pick.gain > 0 && n < mostPairs && detectable(noise.Launch, n) > math.Log1p(pick.gain) {
		n++
	}
	for n > leastPairs && !p.Deadline.IsZero() {
		p.Pairs = n
		if p.Now.Add(p.Reserve()).Before(p.Deadline) {
			break
		}
		n--
	}
	return n
}

// student975 is the 0.975 quantile of Student's t with 2n-2 degrees of freedom, by n.
var student975 = map[int]float64{3: 2.776, 4: 2.447, 5: 2.306}

// detectable is the half-width of the 95% t-interval of a difference of two means of n launches
// with relative spread sd each: t(0.975, 2n-2) sd sqrt(2/n). n lies between 3 and 5.
func detectable(sd float64, n int) float64 { return student975[n] * sd * math.Sqrt(2/float64(n)) }

// confirmation is the state of the confirmation, read off the history.
type confirmation struct {
	h                           History
	baseline, candidate, second sglang.Config // second: nil = none
	pairs                       int
}

// sides are the configurations in the order of their first launch.
func (c confirmation) sides() []sglang.Config {
	if c.second == nil {
		return []sglang.Config{c.baseline, c.candidate}
	}
	return []sglang.Config{c.baseline, c.candidate, c.second}
}

// values are the results of one side that count, and how many of its launches failed. One that was
// interrupted counts as a failure only beyond what people and crashes can explain.
func (c confirmation) values(side sglang.Config) (values []float64, failed int) {
	breaks := 0
	for _, t := range c.h.Role(trial.RoleConfirm) {
		switch {
		case !t.State.Finished() || !sameConfig(t.Config, side):
		case counts(t):
			values = append(values, *t.Value)
		case !interrupted(t):
			failed++
		default:
			breaks++
		}
	}
	return values, failed + max(0, breaks-maxConfirmBreaks)
}

// done is the number of launches that count, all sides.
func (c confirmation) done() int {
	n := 0
	for _, side := range c.sides() {
		values, _ := c.values(side)
		n += min(len(values), c.pairs)
	}
	return n
}

// next is the side of the next launch: the first place of the ABBA sequence that no counting
// launch fills, so a failed one is repeated in its place. A side is given up after too many
// failures, and the confirmation with it unless that side is the second candidate; more is false when nothing
// is left to launch.
func (c confirmation) next() (side sglang.Config, more bool) {
	sides := c.sides()
	left, given := make([]int, len(sides)), make([]bool, len(sides))
	for i, s := range sides {
		values, failed := c.values(s)
		left[i], given[i] = len(values), failed > maxConfirmEnd
		if given[i] && i < 2 {
			return nil, false
		}
	}
	for i := range len(sides) * c.pairs {
		s := abba(i, len(sides))
		switch {
		case left[s] > 0:
			left[s]--
		case !given[s]:
			return sides[s], true
		}
	}
	return nil, false
}

// abba is the side of place i of the ABBA sequence of so many sides: 0 1 1 0 0 1 1 0 ..., 0 1 2 2 1 0 0 1 2 ...
func abba(i, sides int) int {
	if round := i / sides; round%2 == 1 {
		return sides - 1 - i%sides
	}
	return i % sides
}

// outOfConfirmation are the candidates that failed a confirmation launch by their own fault.
func outOfConfirmation(h History, baseline sglang.Config) map[string]bool {
	out := map[string]bool{}
	for _, t := range h.Role(trial.RoleConfirm) {
		if blamed(t) && !sameConfig(t.Config, baseline) {
			out[Key(t.Config)] = true
		}
	}
	return out
}

func failedConfirm(h History, c sglang.Config) *trial.Trial {
	for _, t := range h.Role(trial.RoleConfirm) {
		if blamed(t) && sameConfig(t.Config, c) {
			return t
		}
	}
	return nil
}
