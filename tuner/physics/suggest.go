package physics

import (
	"math"
	"slices"
)

// Suggestion is the next trial.
type Suggestion struct {
	Point      Point
	Frac       float64 // share of the full measuring time worth spending, above 0 up to 1
	AbortBelow float64 // value below which the trial may be ended once AbortFrac has passed, 0 = never
	AbortFrac  float64
	Why        Why
}

// Why is the reason for a suggestion, in figures.
type Why struct {
	Kind     string  // "start", "search", "jump", "finish", "recover": what the turn was for
	Mean     float64 // expected value of the objective
	Spread   float64 // relative standard deviation of that
	Best     float64 // expected value of the best configuration so far, 0 before there is one
	Gain     float64 // expected improvement over it, relative (0.02 = 2%)
	OOM      float64 // chance that it runs out of GPU memory, starting or under load
	Crash    float64 // chance that it does not start for another reason
	Tokens   float64 // KV tokens, Unknown before the first log
	FreeGiB  float64 // free GPU memory after graphs, Unknown before
	Teaches  string  // name of the knob the models are least sure of here, "" = none
	TeachesX float64 // its share of the variance of all knobs' own effects here
}

// How much of the full measuring time a trial gets, and when it may be ended early.
const (
	searchFrac = 0.5
	middleFrac = 0.75
	abortFrac  = 0.2
	abortSDs   = 2.5 // an estimate so many standard deviations of its own noise below the best is hopeless
)

// Suggest proposes the next trial beside the pending ones (launched elsewhere, no result yet). ok is
// false when no point is found that may be launched: spaces of up to fullSearch points are looked at
// in full, of larger ones randomSearch draws, should no candidate be admitted.
func (s *Search) Suggest(pending []Point) (sg Suggestion, ok bool) {
	a := s.newAcquisition(pending)
	if len(s.seen) == 0 && a.free(s.l.home) && s.l.admits(s.l.home) {
		return s.suggestion(a, s.l.home, "start"), true
	}
	p, kind, ok := a.choose()
	if !ok {
		return Suggestion{}, false
	}
	return s.suggestion(a, p, kind), true
}

func (s *Search) suggestion(a *acquisition, p Point, kind string) Suggestion {
	at := s.predict(p, 1)
	sg := Suggestion{Point: slices.Clone(p), Frac: a.frac, Why: Why{
		Kind: kind, Mean: at.Mean, Spread: at.Spread, OOM: 1 - at.Survive, Crash: at.Crash,
		Tokens: at.Tokens, FreeGiB: at.FreeGiB,
	}}
	if len(s.residual.y) == 0 && !s.throughput.Able() {
		sg.Why.Mean, sg.Why.Spread = 0, 0
	}
	if a.known {
		sg.Why.Best = math.Exp(a.best)
		sg.Why.Gain = expected(at.logMean-a.best, at.Spread)
		sg.AbortFrac = abortFrac
		sg.AbortBelow = math.Exp(a.best - s.abortMargin())
	}
	sg.Why.Teaches, sg.Why.TeachesX = s.residual.teaches(p)
	return sg
}

// abortMargin is how far below the best, in log value, an early estimate must lie.
func (s *Search) abortMargin() float64 {
	sd := s.noise.SD(abortFrac, Unknown) * s.residual.noiseFactor()
	return abortSDs*math.Sqrt(sd*sd+biasSD*biasSD) + 0.02
}

// expected is the expected improvement of a normal variable over 0.
func expected(mean, sd float64) float64 {
	if sd <= 0 {
		return math.Max(mean, 0)
	}
	u := mean / sd
	if u < -30 {
		return 0
	}
	return math.Max(sd*(u*normalCDF(u)+math.Exp(-.5*u*u)/math.Sqrt(2*math.Pi)), 0)
}
