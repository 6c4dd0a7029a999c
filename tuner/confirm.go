package tuner

import (
	"context"
	"fmt"
	"math"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

const (
	leastPairs = benchmark.LeastLaunches
	mostPairs  = 5
)

// confirm is the loop's last phase: candidate and baseline are launched Record.Confirm times each
// in ABBA order, baseline first, so that a drift of the host falls on both sides alike. Both the
// candidate and the count are in the store before the first of these launches: neither may depend
// on what they measure. It returns nil when nothing is left to launch.
func (l *Loop) confirm(ctx context.Context, h History) (*trial.Trial, error) {
	if b := h.Baseline(); b == nil || !counts(b) {
		return nil, nil // nothing to compare with; the verdict says so
	}
	if err := l.fixCandidate(ctx, h); err != nil || l.Record.Candidate == nil {
		return nil, err
	}
	c := confirmation{h: h, baseline: l.Study.Baseline, candidate: l.Record.Candidate, pairs: l.Record.Confirm}
	side, more := c.next()
	if !more {
		return nil, nil
	}
	p := l.plan(h)
	if !p.ConfirmFits() {
		return nil, l.event(ctx, Event{Kind: "plan", Text: fmt.Sprintf(
			"no further confirmation launch fits: one takes %s and %s are left", span(p.Full), span(p.Deadline.Sub(p.Now)))})
	}
	if err := l.roomFor(h, side); err != nil {
		return nil, l.event(ctx, Event{Kind: "plan", Config: side, Text: fmt.Sprintf("no further confirmation launch: %v; run the study again when the memory is free", err)})
	}
	why := fmt.Sprintf("confirmation, launch %d of %d: the candidate", c.done()+1, 2*c.pairs)
	if sameConfig(side, l.Study.Baseline) {
		why = fmt.Sprintf("confirmation, launch %d of %d: the baseline", c.done()+1, 2*c.pairs)
	}
	return l.newTrial(h, trial.RoleConfirm, Proposal{Config: side, Why: why, Sampler: "confirm"}), nil
}

// roomFor asks for the host RAM of a confirmation launch: hours may have passed since the candidate was
// admitted, and somebody may have filled the host. What the server takes for itself is what it took then.
// The baseline is what runs today and is not asked.
func (l *Loop) roomFor(h History, side sglang.Config) error {
	if sameConfig(side, l.Study.Baseline) {
		return nil
	}
	own := OwnRAM(h.where(func(t *trial.Trial) bool { return sameConfig(t.Config, side) }))
	return hostRAM(l.Study, h, l.facts, own).Check(side)
}

// fixCandidate chooses the candidate and the number of launches and stores both. A candidate that
// failed its confirmation by its own fault is out; the next best takes its place.
func (l *Loop) fixCandidate(ctx context.Context, h History) error {
	out := outOfConfirmation(h, l.Study.Baseline)
	if l.Record.Candidate != nil && !out[Key(l.Record.Candidate)] {
		return nil
	}
	dropped := l.Record.Candidate
	pick, why := candidate(h, l.Study.Baseline, out)
	if dropped != nil {
		text := "the candidate failed its confirmation and is out"
		if t := failedConfirm(h, dropped); t != nil {
			text = fmt.Sprintf("the candidate is out: confirmation launch %d ended %s (%s)", t.Number, t.Verdict.Outcome, t.Verdict.Text)
		}
		if err := l.event(ctx, Event{Kind: "requeue", Text: text, Config: dropped}); err != nil {
			return err
		}
	}
	l.Record.Candidate = nil
	if pick != nil {
		l.Record.Candidate = pick.Config
	}
	if l.Record.Confirm == 0 {
		l.Record.Confirm = pairsFor(l.Study.Confirm, h, pick, l.plan(h))
	}
	if err := l.save(ctx); err != nil || pick == nil {
		return err
	}
	_, over := l.plan(h).SearchFits()
	if over == "" {
		over = "nothing is left to try"
	}
	return l.event(ctx, Event{Kind: "plan", Trial: &pick.Number, Config: pick.Config, Text: fmt.Sprintf(
		"the search is over (%s); candidate: %s; %s each side in ABBA order", over, why, plural(l.Record.Confirm, "launch", "launches"))})
}

// pairsFor is the number of launches each side: what the study asks for, else the fewest of 3 to 5
// that can show the gain seen against the noise seen, as far as the time left allows.
func pairsFor(asked int, h History, pick *trial.Trial, p Plan) int {
	if asked > 0 {
		return asked
	}
	n := leastPairs
	if b := h.Best(); pick != nil && b != nil {
		if base := h.Baseline(); base != nil && counts(base) {
			gain := math.Abs(math.Log(*pick.Value / *base.Value))
			for n < mostPairs && detectable(noise(h), n) > gain {
				n++
			}
		}
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
	h                   History
	baseline, candidate sglang.Config
	pairs               int
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

// done is the number of launches that count, both sides.
func (c confirmation) done() int {
	a, _ := c.values(c.baseline)
	b, _ := c.values(c.candidate)
	return min(len(a), c.pairs) + min(len(b), c.pairs)
}

// next is the side of the next launch: the first place of the ABBA sequence that no counting
// launch fills, so a failed one is repeated in its place. A side is given up after too many
// failures; more is false when nothing is left to launch.
func (c confirmation) next() (side sglang.Config, more bool) {
	a, failedA := c.values(c.baseline)
	b, failedB := c.values(c.candidate)
	if failedA > maxConfirmEnd || failedB > maxConfirmEnd {
		return nil, false
	}
	left := [2]int{len(a), len(b)}
	for i := range 2 * c.pairs {
		s := abba(i)
		if left[s] > 0 {
			left[s]--
			continue
		}
		if s == 0 {
			return c.baseline, true
		}
		return c.candidate, true
	}
	return nil, false
}

// abba is the side of place i: 0 1 1 0 0 1 1 0 ...
func abba(i int) int { return (i + 1) / 2 % 2 }

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
