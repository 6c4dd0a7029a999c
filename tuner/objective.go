package tuner

import (
	"slices"
	"time"

	"sgtune/benchmark"
	"sgtune/trial"
)

// Objective is what a trial is worth.
type Objective struct {
	Metric string // output_tok_s | requests_s | goodput | concurrency
	SLO    SLO
}

// SLO holds the limits a load level must meet to count; a zero limit is none.
type SLO struct {
	TTFTP95, TPOTP95, E2EP95 time.Duration
}

// limits says each limit in words: "p95 TTFT 30 s".
func (s SLO) limits() []string {
	var list []string
	for _, l := range []struct {
		of    string
		limit time.Duration
	}{{"TTFT", s.TTFTP95}, {"TPOT", s.TPOTP95}, {"E2E", s.E2EP95}} {
		if l.limit > 0 {
			list = append(list, "p95 "+l.of+" "+FormatDuration(l.limit))
		}
	}
	return list
}

// Met reports whether a level meets the limits. Answers of a single token have no time between tokens, so no
// limit on that is broken by them.
func (s SLO) Met(l trial.Level) bool {
	r := l.Report
	if r == nil {
		return false
	}
	within := func(limit time.Duration, d *benchmark.Distribution, without bool) bool {
		return limit <= 0 || d == nil && without || d != nil && d.P95 <= ms(limit)
	}
	answered := r.TTFTms != nil
	return within(s.TTFTP95, r.TTFTms, false) && within(s.TPOTP95, r.TPOTms, answered) && within(s.E2EP95, r.E2Ems, false)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Score is the value of a trial: the objective at its best valid load level among those that meet
// the SLO (design: "value of a trial"). A level that was stopped early counts only where all were: the value of
// such a trial is a bound, whether or not the SLO was met until then. ok is false when there is none.
func (o Objective) Score(levels []trial.Level) (value float64, concurrency int, ok bool) {
	full := slices.ContainsFunc(levels, inFull)
	for _, l := range levels {
		if l.Report == nil || !l.Report.Valid || full && (!inFull(l) || !o.SLO.Met(l)) {
			continue
		}
		if v := o.of(l); !ok || v > value {
			value, concurrency, ok = v, l.Concurrency, true
		}
	}
	return value, concurrency, ok
}

// levelTie is the relative difference that two load levels of one launch must have before the busier one
// counts as better: a level ends at an interval of ±3%, so less is noise, and a plan that follows it never
// looks at the lower level again.
const levelTie = 0.03

// lowestBest is the load level that the next trials are planned around: the lowest whose value equals, within
// the noise, that of the trial's best. It costs nothing: fewer clients wait less for the same.
func (o Objective) lowestBest(t *trial.Trial) int {
	best := t.Best
	if t.Value == nil {
		return best
	}
	for _, l := range t.Levels {
		if l.Concurrency < best && inFull(l) && l.Report.Valid && o.SLO.Met(l) && o.of(l) >= *t.Value*(1-levelTie) {
			best = l.Concurrency
		}
	}
	return best
}

// inFull reports whether a level ran to its end.
func inFull(l trial.Level) bool { return l.Report != nil && !l.Report.Pruned }

// of is the objective's figure of a level, whether or not it meets the SLO.
func (o Objective) of(l trial.Level) float64 {
	switch o.Metric {
	case "requests_s":
		return l.Report.RequestsS
	case "goodput":
		return l.Report.GoodputS
	case "concurrency":
		return float64(l.Concurrency)
	}
	return l.Report.OutputTokS
}
