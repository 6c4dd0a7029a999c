package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/web"
)

// runFacts are what should be alike on both sides, in words; "" is unknown and warns of nothing. What two
// studies differ in is told by studyDifferences.
type runFacts struct {
	workload string // "chat.jsonl (mooncake, 1,200 requests)"
	model    string
	server   string // "sglang 0.5.23"
	endpoint string
	cache    string // "cold", "warm", "flushed", "unknown", ...
	slo      string
}

// factNames are the facts in the order of their warnings, with their JSON keys.
var factNames = []struct {
	name, key string
	of        func(l *comparedLaunch) string
}{
	{"workload", "workload", func(l *comparedLaunch) string { return l.level.facts.workload }},
	{"load", "load", func(l *comparedLaunch) string { return l.level.load }},
	{"cache state", "cache_state", func(l *comparedLaunch) string { return l.level.facts.cache }},
	{"endpoint", "endpoint", func(l *comparedLaunch) string { return l.level.facts.endpoint }},
	{"model", "model", func(l *comparedLaunch) string { return l.level.facts.model }},
	{"server", "server", func(l *comparedLaunch) string { return l.level.facts.server }},
	{"SLO", "slo", func(l *comparedLaunch) string { return l.level.facts.slo }},
}

// distinct are the known values of a fact on one side, in order of appearance.
func (s *side) distinct(of func(l *comparedLaunch) string) []string {
	var out []string
	for _, l := range s.launches {
		if v := of(l); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// lengthsDiffer is the relative difference of mean lengths that is warned of: the same rows with
// another salt tokenize within this.
const lengthsDiffer = 0.02

// warnings are those of the sides and of the studies they come from.
func (c *comparison) warnings() []string {
	out := warnings(c.sides[0], c.sides[1])
	a, b := c.studies[0], c.studies[1]
	if a == nil || b == nil {
		out = append(out, hitWarning(c.sides[0], c.sides[1])...)
	}
	switch {
	case a != nil && b != nil && a.Name != b.Name:
		out = append(out, studyDifferences(a, b)...)
	case (a == nil) != (b == nil):
		out = append(out, "one side is a trial, the other a replay: see for yourself that workload and cache state were the same")
	}
	if c.metric.name == "goodput" && len(c.result.Base.Facts["slo"]+c.result.Candidate.Facts["slo"]) == 0 && a == nil && b == nil {
		out = append(out, "no SLO was given to these replays: their goodput is all requests that were answered")
	}
	for _, s := range c.sides {
		for _, note := range s.notes {
			out = append(out, s.role+": "+note)
		}
	}
	return append(out, c.overlap()...)
}

// overlap tells of a launch that stands on both sides.
func (c *comparison) overlap() []string {
	for _, l := range c.sides[0].launches {
		for _, other := range c.sides[1].launches {
			if l.digest == other.digest && l.digest != [32]byte{} || c.studies[0] != nil && c.studies[1] != nil && c.studies[0].Name == c.studies[1].Name && l.name == other.name {
				return []string{fmt.Sprintf("%s and %s are the same %s", l.name, other.name, c.sides[0].noun)}
			}
		}
	}
	return nil
}

// warnings are what a reader must know before believing the answer.
func warnings(base, candidate *side) []string {
	out := simulatedWarning(base, candidate)
	for _, fact := range factNames {
		a, b := base.distinct(fact.of), candidate.distinct(fact.of)
		switch {
		case len(a) > 1 || len(b) > 1:
			for _, s := range []*side{base, candidate} {
				if all := s.distinct(fact.of); len(all) > 1 {
					out = append(out, fmt.Sprintf("the %ss of %s differ in %s: %s", s.noun, s.role, fact.name, some(all)))
				}
			}
		case len(a) == 1 && len(b) == 1 && a[0] != b[0]:
			out = append(out, fmt.Sprintf("%s differs: base %s; candidate %s", fact.name, a[0], b[0]))
		}
	}
	out = append(out, lengthWarnings(base, candidate)...)
	for _, s := range []*side{base, candidate} {
		out = append(out, s.qualityWarnings()...)
	}
	return append(out, orderWarning(base, candidate)...)
}

// simulatedWarning labels what no machine has measured, and says how coarse its latencies are.
func simulatedWarning(base, candidate *side) []string {
	who := ""
	switch {
	case base.simulated() && candidate.simulated():
		who = "both sides are"
	case base.simulated():
		who = "base is"
	case candidate.simulated():
		who = "candidate is"
	default:
		return nil
	}
	coarse := 0.0
	for _, l := range slices.Concat(base.launches, candidate.launches) {
		coarse = max(coarse, l.level.report.TTFTResolutionMs)
	}
	text := who + " SIMULATED: the figures are a model's, not a machine's"
	if coarse > 0 {
		text += fmt.Sprintf(", and no latency is known better than %s ms", web.Number(coarse))
	}
	return []string{text}
}

// lengthWarnings tell of prompts or answers that differ in length: then the sides did different work.
func lengthWarnings(base, candidate *side) []string {
	var out []string
	for _, part := range []struct {
		name string
		of   func(r *benchmark.Report) int64
	}{
		{"prompts", func(r *benchmark.Report) int64 { return r.Tokens.Prompt }},
		{"answers", func(r *benchmark.Report) int64 { return r.Tokens.Got }},
	} {
		a, b := base.perRequest(part.of), candidate.perRequest(part.of)
		if a > 0 && b > 0 && math.Abs(b/a-1) > lengthsDiffer {
			out = append(out, fmt.Sprintf("lengths differ: %s have %s tokens on average in base, %s in candidate", part.name, grouped(int(math.Round(a))), grouped(int(math.Round(b)))))
		}
	}
	return out
}

// hitsDiffer is the difference of cache hit ratios that is warned of.
const hitsDiffer = 0.02

// hitWarning tells of replays that found different things in the server's cache: one sent what another had
// sent before, or the cache is what was changed. Trials share a protocol that rules the first out.
func hitWarning(base, candidate *side) []string {
	a, b := base.cacheHits(), candidate.cacheHits()
	if len(base.launches) == 0 || len(candidate.launches) == 0 || math.Abs(a-b) <= hitsDiffer {
		return nil
	}
	return []string{fmt.Sprintf("cache hits differ: %.1f%% of the prompt tokens in base, %.1f%% in candidate: unless the cache is what you changed, replay with --flush", 100*a, 100*b)}
}

// qualityWarnings tell of what is wrong with the launches of one side.
func (s *side) qualityWarnings() []string {
	var out []string
	for _, o := range s.out {
		out = append(out, fmt.Sprintf("%s: %s is left out: %s", s.role, o.Name, o.Why))
	}
	unsteady := 0
	var kinds []string
	for _, l := range s.launches {
		r := l.level.report
		if !r.Steady {
			unsteady++
		}
		for kind := range r.Requests.Failed {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	slices.Sort(kinds)
	sent := s.total(func(r *benchmark.Report) int64 { return int64(r.Requests.Sent) })
	if failed := s.failures(); failed > 0 {
		out = append(out, fmt.Sprintf("%s: %s of %s requests failed (%s)", s.role, grouped(int(failed)), grouped(int(sent)), orNone(strings.Join(kinds, ", "), "kind not said")))
	}
	switch {
	case unsteady > 0 && unsteady == len(s.launches):
		out = append(out, s.role+": throughput was not steady")
	case unsteady > 0:
		out = append(out, fmt.Sprintf("%s: throughput was not steady in %d of %s", s.role, unsteady, count(len(s.launches), s.noun)))
	}
	return append(out, s.remarks()...)
}

// remarks are what the reports say of themselves beside that: interrupted, at odds with the server's own
// figure, lengths that are approximate.
func (s *side) remarks() []string {
	var texts []string
	for _, l := range s.launches {
		for _, flag := range l.level.report.Flags {
			if !strings.HasPrefix(flag, "not steady") && !slices.Contains(texts, flag) { // steadiness is told already
				texts = append(texts, flag)
			}
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return []string{s.role + ": " + some(texts)}
}

// failures counts the requests that failed, over all launches.
func (s *side) failures() int64 {
	return s.total(func(r *benchmark.Report) int64 { return int64(r.Requests.Sent - r.Requests.OK) })
}

// orderWarning tells of sides that were measured one after the other: whatever changed on the host
// meanwhile looks like a difference. Launches in ABBA order share it.
func orderWarning(base, candidate *side) []string {
	if min(len(base.launches), len(candidate.launches)) < benchmark.LeastLaunches {
		return nil
	}
	firstA, lastA, okA := base.times()
	firstB, lastB, okB := candidate.times()
	if !okA || !okB || (lastA >= firstB && lastB >= firstA) {
		return nil
	}
	order := "base before candidate"
	if lastB < firstA {
		order = "candidate before base"
	}
	return []string{fmt.Sprintf("all of %s: a drift of the host would look like a difference; alternate them", order)}
}

// times are the first and the last start of a side; not ok where one is unknown.
func (s *side) times() (first, last int64, ok bool) {
	for i, l := range s.launches {
		if l.started == 0 {
			return 0, 0, false
		}
		if i == 0 {
			first, last = l.started, l.started
		}
		first, last = min(first, l.started), max(last, l.started)
	}
	return first, last, len(s.launches) > 0
}
