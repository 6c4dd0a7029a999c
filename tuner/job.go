package tuner

import (
	"fmt"

	"sgtune/benchmark"
	"sgtune/trial"
)

// job works out how long the whole job (workload.total requests) takes with the baseline and with the
// verdict's configuration. It counts the launches that the verdict is about, or before a confirmation the
// trials themselves.
func (l *Loop) job(h History, v *Verdict) {
	v.Total = l.Study.Workload.Total
	if v.Total == 0 {
		return
	}
	confirm := h.Role(trial.RoleConfirm)
	v.BaselineHours = l.Study.jobHours(l.Workload, measuredAs(confirm, h, func(t *trial.Trial) bool { return sameConfig(t.Config, l.Study.Baseline) }))
	v.Hours = l.Study.jobHours(l.Workload, measuredAs(confirm, h, func(t *trial.Trial) bool { return sameConfig(t.Config, v.Config) }))
}

// measuredAs are a configuration's confirmation launches, its other trials where it has none.
func measuredAs(confirm, all History, side func(*trial.Trial) bool) History {
	mine := func(t *trial.Trial) bool { return counts(t) && side(t) }
	if fresh := confirm.where(mine); len(fresh) > 0 {
		return fresh
	}
	return all.where(mine)
}

// jobHours are the hours that the whole job takes at the throughput of these trials' best levels, 0 when it is
// not known.
func (s *Study) jobHours(w *benchmark.Workload, trials History) float64 {
	rate, n := 0.0, 0
	for _, t := range trials {
		if r := bestReport(t); r != nil && requestRate(w, r) > 0 {
			rate, n = rate+requestRate(w, r), n+1
		}
	}
	if n == 0 || s.Workload.Total <= 0 {
		return 0
	}
	return float64(s.Workload.Total) * float64(n) / rate / 3600
}

// requestRate is how many requests a second a level serves: its tokens over those of the workload's mean
// request. The count of requests that ended within the level is coarser, and is used only where the file does
// not say how long answers are.
func requestRate(w *benchmark.Workload, r *benchmark.Report) float64 {
	if w != nil && w.MeanOutput() > 0 {
		requests := max(w.Len(), w.Summary().Requests) // a conversation's turns are requests each
		return r.OutputTokS * float64(requests) / (w.MeanOutput() * float64(w.Len()))
	}
	if r.Requests.OK > 0 && r.Tokens.Got > 0 {
		return r.OutputTokS * float64(r.Requests.OK) / float64(r.Tokens.Got)
	}
	return r.RequestsS
}

// jobText says the hours of the whole job in a verdict, "" when they are not known. Where nothing is to be
// changed only what runs today matters.
func (v *Verdict) jobText() string {
	after := 0.0
	if v.Answer == benchmark.AnswerBetter || v.Answer == benchmark.AnswerNotConfirmed {
		after = v.Hours
	}
	if text := JobText(v.Total, v.BaselineHours, after); text != "" {
		return "; " + text
	}
	return ""
}

// jobOf are the hours of the whole job with the baseline and with the best trial so far, 0 where not known.
func (l *Loop) jobOf(h History) (now, after float64) {
	one := func(t *trial.Trial) float64 {
		if t == nil || !counts(t) {
			return 0
		}
		return l.Study.jobHours(l.Workload, History{t})
	}
	return one(h.Baseline()), one(h.Best())
}

// JobText says how long a job of so many requests takes, now and with something better: "all 88,000 requests
// in 22.4 h instead of 29.8 h"; "" when that is not known. after is 0 where there is nothing better.
func JobText(total int, now, after float64) string {
	switch {
	case total <= 0 || now <= 0:
		return ""
	case after <= 0 || after == now:
		return fmt.Sprintf("all %s in %s", requests(total), hours(now))
	}
	return fmt.Sprintf("all %s in %s instead of %s", requests(total), hours(after), hours(now))
}

// hours spells a length of work with three digits: "22.4 h", below one hour "14 min".
func hours(h float64) string {
	switch {
	case h < 1:
		return fmt.Sprintf("%.3g min", 60*h)
	case h < 100:
		return fmt.Sprintf("%.3g h", h)
	}
	return fmt.Sprintf("%.0f h", h)
}

// requests is a count with thousands separators.
func requests(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if n == 1 {
		return text + " request"
	}
	return text + " requests"
}
