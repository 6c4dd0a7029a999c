package tuner

import (
	"time"

	"sgtune/trial"
)

// Objective is what a trial is worth.
type Objective struct {
	Metric string // output_tok_s | requests_s | goodput | concurrency
	SLO    SLO
}

// SLO holds the limits a load level must meet to count; a zero limit is none.
type SLO struct {
	TTFTP95, TPOTP95 time.Duration
}

// Met reports whether a level meets the limits.
func (s SLO) Met(l trial.Level) bool {
	r := l.Report
	if r == nil {
		return false
	}
	if s.TTFTP95 > 0 && (r.TTFTms == nil || r.TTFTms.P95 > ms(s.TTFTP95)) {
		return false
	}
	return s.TPOTP95 == 0 || (r.TPOTms != nil && r.TPOTms.P95 <= ms(s.TPOTP95))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Score is the value of a trial: the objective at its best valid load level among those that meet
// the SLO (design: "value of a trial"). ok is false when there is none.
func (o Objective) Score(levels []trial.Level) (value float64, concurrency int, ok bool) {
	for _, l := range levels {
		if l.Report == nil || !l.Report.Valid || !o.SLO.Met(l) {
			continue
		}
		v := l.Report.OutputTokS
		switch o.Metric {
		case "requests_s":
			v = l.Report.RequestsS
		case "goodput":
			v = l.Report.GoodputS
		case "concurrency":
			v = float64(l.Concurrency)
		}
		if !ok || v > value {
			value, concurrency, ok = v, l.Concurrency, true
		}
	}
	return value, concurrency, ok
}
