package main

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/web"
)

// compareResult is the answer, in the shape that --json prints (docs/compare.md).
type compareResult struct {
	Metric       string          `json:"metric"`
	Unit         string          `json:"unit,omitempty"`
	Better       string          `json:"better"` // higher, lower
	Answer       string          `json:"answer"`
	Text         string          `json:"text"`
	Gain         *float64        `json:"gain,omitempty"` // how much better the candidate is; of a latency: how much lower
	Low          *float64        `json:"gain_low,omitempty"`
	High         *float64        `json:"gain_high,omitempty"`
	N            [2]int          `json:"n"`
	Detectable   *float64        `json:"detectable,omitempty"`
	MannWhitneyP *float64        `json:"mann_whitney_p,omitempty"`
	Needed       int             `json:"needed,omitempty"` // fresh launches of each side that would show the gain seen
	Base         comparedSide    `json:"base"`
	Candidate    comparedSide    `json:"candidate"`
	Rows         []comparedRow   `json:"rows"`
	Levels       []comparedLevel `json:"levels,omitempty"`
	Warnings     []string        `json:"warnings"`
}

// comparedSide is one side in numbers. Counts are sums over its launches, shares are of those sums.
type comparedSide struct {
	Name      string    `json:"name"`
	Launches  []string  `json:"launches"`
	Load      string    `json:"load,omitempty"`
	Value     *float64  `json:"value,omitempty"` // geometric mean of values
	Values    []float64 `json:"values"`
	WithinRun []span95  `json:"within_run,omitempty"` // of output tok/s, one a launch: how steady it was, never the verdict
	Requests  struct {
		Sent   int64 `json:"sent"`
		OK     int64 `json:"ok"`
		Failed int64 `json:"failed"`
	} `json:"requests"`
	PromptTokens  int64             `json:"prompt_tokens"`
	OutputTokens  int64             `json:"output_tokens"`
	CacheHitRatio float64           `json:"cache_hit_ratio"`
	CPUShare      float64           `json:"client_cpu_share"`
	SendLagP99    float64           `json:"send_lag_p99_ms"`
	Steady        int               `json:"steady"` // launches with a steady throughput
	Simulated     bool              `json:"simulated"`
	Facts         map[string]string `json:"facts"`
	Config        string            `json:"config,omitempty"`
	LeftOut       []leftOut         `json:"left_out,omitempty"`
}

// span95 is a 95% interval.
type span95 struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// comparedRow is one metric of both sides. Change is candidate over base, minus 1: of a latency below 0 is
// better.
type comparedRow struct {
	Metric    string   `json:"metric"`
	Base      *float64 `json:"base,omitempty"`
	Candidate *float64 `json:"candidate,omitempty"`
	Change    *float64 `json:"change,omitempty"`
	Low       *float64 `json:"change_low,omitempty"`
	High      *float64 `json:"change_high,omitempty"`
	Answer    string   `json:"answer"`

	metric metric
	halves [2]float64 // relative half-widths of the two means, 0 without
}

// comparedLevel is the metric at one load level that both sides have.
type comparedLevel struct {
	Load string `json:"load"`
	N    [2]int `json:"n"`
	comparedRow
}

// conclude fills the result. The sides' levels are picked.
func (c *comparison) conclude() {
	base, candidate := c.sides[0], c.sides[1]
	a, b := base.values(c.metric), candidate.values(c.metric)
	r := &c.result
	r.Metric, r.Unit, r.Better = c.metric.name, c.metric.unit, "higher"
	if c.metric.lower {
		r.Better = "lower"
	}
	r.Base, r.Candidate = base.numbers(c.metric), candidate.numbers(c.metric)
	r.Rows = []comparedRow{compareRow(c.metric, a, b)}
	for _, name := range shownMetrics {
		if m, err := findMetric(name); err == nil && name != c.metric.name {
			if row := compareRow(m, base.values(m), candidate.values(m)); row.Base != nil || row.Candidate != nil {
				r.Rows = append(r.Rows, row)
			}
		}
	}
	r.Levels = c.levels()
	cmp := c.metric.compare(a, b)
	r.Answer, r.N = cmp.Answer, cmp.N
	if r.Rows[0].Change != nil {
		r.Gain = &cmp.Gain
	}
	if base.failed > mostFailed || candidate.failed > mostFailed { // what is left are the lucky ones
		r.Answer = benchmark.AnswerNotConfirmed
	}
	if r.Answer != benchmark.AnswerNotConfirmed {
		r.Low, r.High, r.Detectable, r.MannWhitneyP = &cmp.Low, &cmp.High, &cmp.Detectable, cmp.MannWhitneyP
	}
	if r.Answer == benchmark.AnswerNoDifference {
		r.Needed = benchmark.Needed(a, b)
	}
	r.Text = c.text()
	r.Warnings = slices.Concat([]string{}, c.warnings())
}

// compareRow is one metric of both sides.
func compareRow(m metric, a, b []float64) comparedRow {
	row := comparedRow{Metric: m.name, Answer: benchmark.AnswerNotConfirmed, metric: m}
	for i, values := range [][]float64{a, b} {
		mean, half, ok := benchmark.GeometricMean(values)
		if !ok && len(values) > 0 { // a zero among them: it has a mean, but no ratio
			mean, half = plainMean(values), 0
		}
		if len(values) == 0 {
			continue
		}
		row.halves[i] = half
		if i == 0 {
			row.Base = &mean
		} else {
			row.Candidate = &mean
		}
	}
	cmp := benchmark.Compare(a, b)
	if _, _, ok := benchmark.GeometricMean(slices.Concat(a, b)); !ok || len(a) == 0 || len(b) == 0 {
		return row
	}
	row.Change = &cmp.Gain
	if cmp.Answer != benchmark.AnswerNotConfirmed {
		row.Low, row.High, row.Answer = &cmp.Low, &cmp.High, m.compare(a, b).Answer
	}
	return row
}

func plainMean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// levels compare the metric at each load level that both sides have, where those are several. Levels that
// are not valid do not count.
func (c *comparison) levels() []comparedLevel {
	collect := func(s *side) map[string][]float64 {
		out := map[string][]float64{}
		for _, l := range s.launches {
			for _, level := range l.levels {
				if v, ok := c.metric.of(level); ok && level.report.Valid && level.load != "" {
					out[level.load] = append(out[level.load], v)
				}
			}
		}
		return out
	}
	a, b := collect(c.sides[0]), collect(c.sides[1])
	var out []comparedLevel
	for _, l := range c.sides[0].launches {
		for _, level := range l.levels {
			load := level.load
			if len(a[load]) == 0 || len(b[load]) == 0 || slices.ContainsFunc(out, func(o comparedLevel) bool { return o.Load == load }) {
				continue
			}
			out = append(out, comparedLevel{Load: load, N: [2]int{len(a[load]), len(b[load])}, comparedRow: compareRow(c.metric, a[load], b[load])})
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// numbers sums up one side.
func (s *side) numbers(m metric) comparedSide {
	n := comparedSide{
		Name: s.name, Launches: []string{}, Values: slices.Concat([]float64{}, s.values(m)), Simulated: s.simulated(), LeftOut: s.out, Config: s.config,
		Facts: map[string]string{}, CacheHitRatio: s.cacheHits(), PromptTokens: s.total(promptTokens), OutputTokens: s.total(outputTokens),
		CPUShare:   s.mean(func(r *benchmark.Report) float64 { return r.Client.CPUShare }),
		SendLagP99: s.mean(func(r *benchmark.Report) float64 { return r.Client.SendLagMs.P99 }),
	}
	n.Requests.Sent = s.total(func(r *benchmark.Report) int64 { return int64(r.Requests.Sent) })
	n.Requests.Failed = s.failures()
	n.Requests.OK = n.Requests.Sent - n.Requests.Failed
	for _, l := range s.launches {
		n.Launches = append(n.Launches, l.name)
		r := l.level.report
		if r.OutputHigh > 0 {
			n.WithinRun = append(n.WithinRun, span95{r.OutputLow, r.OutputHigh})
		}
		if r.Steady {
			n.Steady++
		}
	}
	if len(n.WithinRun) != len(s.launches) {
		n.WithinRun = nil // one a launch, or none
	}
	if row := compareRow(m, n.Values, nil); row.Base != nil {
		n.Value = row.Base
	}
	for _, fact := range factNames {
		if all := s.distinct(fact.of); len(all) > 0 {
			n.Facts[fact.key] = strings.Join(all, " / ")
		}
	}
	n.Load = n.Facts["load"]
	return n
}

// text is the answer in one sentence.
func (c *comparison) text() string {
	r, row := &c.result, c.result.Rows[0]
	for _, s := range c.sides {
		if len(s.launches) > 0 {
			continue
		}
		why := "nothing to compare"
		if len(s.out) > 0 {
			why = s.out[0].Name + ": " + s.out[0].Why
		}
		return fmt.Sprintf("not confirmed: %s has no %s that counts (%s)", s.role, s.noun, why)
	}
	values := fmt.Sprintf("%s %s against %s", row.metric.label, row.metric.amount(*row.Candidate), row.metric.amount(*row.Base))
	if row.Change != nil {
		values += ", " + percent(*row.Change)
	}
	each := fmt.Sprintf("%s of base, %d of candidate", count(r.N[0], c.sides[0].noun), r.N[1])
	if r.N[0] == r.N[1] {
		each = fmt.Sprintf("%s each", count(r.N[0], c.sides[0].noun))
	}
	switch r.Answer {
	case benchmark.AnswerBetter, benchmark.AnswerWorse:
		return fmt.Sprintf("%s: %s, 95%% interval %s to %s; %s%s", r.Answer, values, percent(*row.Low), percent(*row.High), each, c.rankText())
	case benchmark.AnswerNoDifference:
		text := fmt.Sprintf("%s: %s, 95%% interval %s to %s; %s could have shown %.1f%%%s",
			r.Answer, values, percent(*row.Low), percent(*row.High), each, 100**r.Detectable, c.rankText())
		if r.Needed > min(r.N[0], r.N[1]) {
			text += fmt.Sprintf("; about %d fresh ones of each side would show the difference seen", r.Needed)
		}
		return text
	}
	return "not confirmed: " + values + "; " + c.missing(each)
}

// missing says why there is no answer and what would give one.
func (c *comparison) missing(each string) string {
	for _, s := range c.sides {
		if s.failed > mostFailed {
			return fmt.Sprintf("%s of %s failed or are not valid, and those that are left may be the lucky ones: look at them first", count(s.failed, s.noun), s.role)
		}
	}
	if min(c.result.N[0], c.result.N[1]) >= benchmark.LeastLaunches {
		return "a value of 0 has no ratio to another"
	}
	var more []string
	for i, s := range c.sides {
		if n := benchmark.LeastLaunches - c.result.N[i]; n > 0 {
			more = append(more, fmt.Sprintf("%d more of %s", n, s.role))
		}
	}
	text := fmt.Sprintf("%s cannot tell a difference from chance; an answer needs %d of each side: %s", each, benchmark.LeastLaunches, strings.Join(more, " and "))
	if c.studies[0] != nil || c.studies[1] != nil {
		return text + "; a study takes them of its baseline and its best candidate, in its confirmation"
	}
	return text + ", taken in turns"
}

// rankText is the rank test beside the interval.
func (c *comparison) rankText() string {
	if p := c.result.MannWhitneyP; p != nil {
		return fmt.Sprintf("; Mann-Whitney p = %.3g", *p)
	}
	return ""
}

// amount is a value with its unit.
func (m metric) amount(v float64) string {
	if m.unit == "" {
		return web.Number(v)
	}
	return web.Number(v) + " " + m.unit
}

// percent is a relative change.
func percent(x float64) string { return signed(100*x) + "%" }

// signed is a number with one decimal and its sign; what rounds to nothing has none.
func signed(x float64) string {
	if text := fmt.Sprintf("%+.1f", x); text != "-0.0" && text != "+0.0" {
		return text
	}
	return "0.0"
}

func promptTokens(r *benchmark.Report) int64 { return r.Tokens.Prompt }

func outputTokens(r *benchmark.Report) int64 { return r.Tokens.Got }

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
