package tuner

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"sgtune/trial"
)

const (
	reclaimTime  = time.Minute // stop, and two reads of the GPUs
	searchLevels = 2           // the level that was best so far and its upper neighbour
	autoConfirm  = 3           // fewest launches each side that give an answer
)

// planReport estimates how the budget will be spent: the confirmation is reserved first. Times
// come from this study's own trials, else from the file's upper limits.
func planReport(s *Study, in CheckInput) PlanReport {
	p := PlanReport{Launches: s.Confirm, Trials: -1}
	if p.Launches == 0 {
		p.Launches = autoConfirm
	}
	p.Ready = s.ReadyTimeout / 2
	if s.Host.Kind == HostSimulated {
		p.Ready = s.Host.Startup
	}
	if learnt := learntStartup(in.History); learnt > 0 {
		p.Ready = learnt
	}
	fixed := p.Ready + s.Measure.Canary + fillTime(s, in) + reclaimTime
	levels := len(s.Workload.Concurrency)
	level := s.Workload.Cap + s.Workload.Cap/2 // measured to its cap, and a warm-up before it
	p.Trial = fixed + time.Duration(min(searchLevels, levels))*level
	p.Full = fixed + time.Duration(levels)*level
	end, err := deadline(s.Budget, in.History, in.Now, finishTime)
	if err != nil {
		end = time.Time{} // the study file was checked, so until is a clock time
	}
	learnt := newPlan(in.History, s.Budget, in.Now, end, p.Launches)
	if learnt.Search > 0 {
		p.Trial, p.Full, p.Learnt = learnt.Search, learnt.Full, true
	}
	p.Deadline = end
	p.Reserve = time.Duration(2*p.Launches) * p.Full
	p.count(s, learnt.Launches, in.Now)
	if scale := s.Host.TimeScale; s.Host.Kind == HostSimulated && scale > 0 && !p.Ends.IsZero() {
		p.RealTime = time.Duration(float64(p.Ends.Sub(in.Now)) / scale)
	}
	p.Text = p.text()
	return p
}

// count fits trials into the budget: the baseline measures every level, the others two.
func (p *PlanReport) count(s *Study, launched int, now time.Time) {
	if s.Budget.Trials > 0 {
		p.Trials = max(0, s.Budget.Trials-launched)
	}
	if !p.Deadline.IsZero() {
		first := time.Duration(0)
		if launched == 0 {
			first = p.Full - p.Trial
		}
		left := p.Deadline.Sub(now) - p.Reserve - first
		fit := max(0, int(math.Floor(float64(left)/float64(p.Trial))))
		if p.Trials < 0 || fit < p.Trials {
			p.Trials = fit
		}
	}
	if p.Trials >= 0 {
		p.Ends = now.Add(time.Duration(p.Trials)*p.Trial + p.Reserve)
		if launched == 0 {
			p.Ends = p.Ends.Add(p.Full - p.Trial)
		}
		if !p.Deadline.IsZero() && p.Ends.After(p.Deadline) {
			p.Ends = p.Deadline
		}
	}
}

func (p *PlanReport) text() string {
	source := "at most, by the file's limits"
	if p.Learnt {
		source = "as this study's own trials took"
	}
	text := fmt.Sprintf("A trial takes %s (%s); %s are kept for %d + %d confirmation launches",
		FormatDuration(p.Trial), source, FormatDuration(p.Reserve), p.Launches, p.Launches)
	if p.Trials < 0 {
		return text + "; nothing limits the number of trials"
	}
	text += fmt.Sprintf("; %d trials fit, the baseline among them; ends about %s", p.Trials, p.Ends.Format("Mon 15:04"))
	if p.Learnt {
		text = fmt.Sprintf("%s; %d more trials", text, p.Trials)
	}
	if p.RealTime > 0 {
		text += fmt.Sprintf(" of the simulated host's clock, %s from now", FormatDuration(p.RealTime))
	}
	return text + "."
}

// fillTime is the cap of the fill where there is one: it needs a host pool in the space and a
// workload that repeats itself.
func fillTime(s *Study, in CheckInput) time.Duration {
	for _, d := range s.Space {
		if d.Name == hicacheSize && len(d.Values) > 1 || deadWithoutHicache(d.Name) {
			if in.Rows > 0 && in.Reuse < leastReuse {
				return 0
			}
			return s.Measure.Fill
		}
	}
	return 0
}

// learntStartup is the median start-up of the trials that became ready, 0 without one.
func learntStartup(history []*trial.Trial) time.Duration {
	var seen []time.Duration
	for _, t := range history {
		if t.Startup > 0 && t.Void == "" {
			seen = append(seen, t.Startup)
		}
	}
	return median(seen)
}

// MarshalJSON gives durations in seconds of host time.
func (p PlanReport) MarshalJSON() ([]byte, error) {
	out := map[string]any{
		"ready_s": p.Ready.Seconds(), "trial_s": p.Trial.Seconds(), "full_trial_s": p.Full.Seconds(), "learnt": p.Learnt,
		"reserve_s": p.Reserve.Seconds(), "confirm_launches": p.Launches, "text": p.Text,
	}
	if p.Trials >= 0 {
		out["trials"] = p.Trials
	}
	if !p.Ends.IsZero() {
		out["ends"] = p.Ends
	}
	if !p.Deadline.IsZero() {
		out["deadline"] = p.Deadline
	}
	if p.RealTime > 0 {
		out["real_time_s"] = p.RealTime.Seconds()
	}
	return json.Marshal(out)
}
