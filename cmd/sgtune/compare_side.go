package main

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/web"
)

// loadLevel is one measured load level of a launch.
type loadLevel struct {
	load    string  // "32 clients", "2.5 requests/s (poisson)", "" unknown
	clients int     // of a closed loop, 0 otherwise
	rate    float64 // requests/s of an open loop, 0 otherwise
	meets   bool    // the SLO, if one was given
	report  *benchmark.Report
	facts   runFacts // what should be alike on both sides
}

// at is the number by which --level names a load level: clients or requests/s, 0 for neither.
func (l *loadLevel) at() float64 {
	if l.clients > 0 {
		return float64(l.clients)
	}
	return l.rate
}

// comparedLaunch is the unit of a comparison: one replay report, or one launch of a trial.
type comparedLaunch struct {
	name      string // "base-1.json", "trial 12"
	levels    []*loadLevel
	decides   float64  // the level that decides (a trial's), 0 = the best by the metric
	simulated bool     // labelled wherever it is shown
	digest    [32]byte // of the file, to tell a report that was given twice
	started   int64    // Unix seconds, 0 unknown

	level *loadLevel // picked by pick
}

// leftOut is a launch that cannot count.
type leftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// side is one of the two that are compared.
type side struct {
	role     string // base, candidate
	name     string // as the person named it
	noun     string // report, launch
	launches []*comparedLaunch
	out      []leftOut
	failed   int      // of out: launches that should have counted but failed, or invalid reports
	config   string   // of a trial, for a person
	notes    []string // how the launches were chosen
}

// pick chooses the load level of each launch and leaves out those without a valid one. want is a level's
// number, 0 for the level that decides. The error is a person's mistake: no launch has that level.
func (s *side) pick(m metric, want float64) error {
	var have []float64
	for _, l := range s.launches {
		for _, level := range l.levels {
			if at := level.at(); at > 0 && !slices.Contains(have, at) {
				have = append(have, at)
			}
		}
	}
	if want > 0 && !slices.Contains(have, want) {
		slices.Sort(have)
		words := make([]string, len(have))
		for i, at := range have {
			words[i] = web.Number(at)
		}
		return usagef("--level %g: %s was not measured at that load; it has %s", want, s.name, orNone(strings.Join(words, ", "), "no load level with a number"))
	}
	kept := s.launches[:0:0]
	for _, l := range s.launches {
		why := l.pick(m, want)
		if why == "" {
			kept = append(kept, l)
			continue
		}
		s.out, s.failed = append(s.out, leftOut{l.name, why}), s.failed+1
	}
	s.launches = kept
	return nil
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// pick chooses the level that decides; why says why there is none.
func (l *comparedLaunch) pick(m metric, want float64) (why string) {
	if want == 0 {
		want = l.decides
	}
	by := m
	if m.lower { // the level a person would run at, not the one with the least load
		by = rateMetrics[0]
	}
	why = "nothing was measured"
	best := 0.0
	for _, level := range l.levels {
		if want > 0 && level.at() != want {
			continue
		}
		if text := level.unfit(m); text != "" {
			why = text
			continue
		}
		if v, _ := by.of(level); l.level == nil || v > best {
			l.level, best = level, v
		}
	}
	if l.level != nil {
		return ""
	}
	return why
}

// unfit says why a level cannot be compared by a metric, "" when it can.
func (l *loadLevel) unfit(m metric) string {
	switch _, has := m.of(l); {
	case l.report.Valid && m.name == "concurrency" && !l.meets:
		return "it is not known to meet an SLO; give sgtune replay one with --slo"
	case l.report.Valid && !has:
		return "no " + m.label + " in it"
	case l.report.Valid:
		return ""
	case l.report.Advice != "":
		return fmt.Sprintf("not valid (%s): %s", l.report.Invalid, l.report.Advice)
	}
	return fmt.Sprintf("not valid (%s)", orNone(l.report.Invalid, "it does not say why"))
}

// values are the launches' figures at the levels picked; one that a launch lacks is left out.
func (s *side) values(m metric) []float64 {
	var out []float64
	for _, l := range s.launches {
		if v, ok := m.of(l.level); ok {
			out = append(out, v)
		}
	}
	return out
}

// simulated reports whether any launch was of a simulated server.
func (s *side) simulated() bool {
	return slices.ContainsFunc(s.launches, func(l *comparedLaunch) bool { return l.simulated })
}

// total adds up a count over the launches.
func (s *side) total(of func(r *benchmark.Report) int64) int64 {
	var n int64
	for _, l := range s.launches {
		n += of(l.level.report)
	}
	return n
}

// mean is the mean over the launches, 0 without one.
func (s *side) mean(of func(r *benchmark.Report) float64) float64 {
	var sum float64
	for _, l := range s.launches {
		sum += of(l.level.report)
	}
	if len(s.launches) == 0 {
		return 0
	}
	return sum / float64(len(s.launches))
}

// cacheHits is the share of the prompt tokens that the server had in its cache, over all launches.
func (s *side) cacheHits() float64 {
	prompt := s.total(func(r *benchmark.Report) int64 { return r.Tokens.Prompt })
	if prompt == 0 {
		return 0
	}
	return float64(s.total(func(r *benchmark.Report) int64 { return r.Tokens.Cached })) / float64(prompt)
}

// perRequest is the mean over the complete requests of all launches, 0 without one.
func (s *side) perRequest(tokens func(r *benchmark.Report) int64) float64 {
	ok := s.total(func(r *benchmark.Report) int64 { return int64(r.Requests.OK) })
	if ok == 0 {
		return 0
	}
	return float64(s.total(tokens)) / float64(ok)
}
