package main

import (
	"slices"
	"strings"

	"sgtune/benchmark"
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
	if c.lucky() {
		r.withdraw()
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

// lucky reports whether so many launches of a side failed that those which are left prove nothing.
func (c *comparison) lucky() bool {
	return max(c.sides[0].failed, c.sides[1].failed) > mostFailed
}

// withdraw takes back every answer.
func (r *compareResult) withdraw() {
	r.Answer = benchmark.AnswerNotConfirmed
	for i := range r.Rows {
		r.Rows[i].Low, r.Rows[i].High, r.Rows[i].Answer = nil, nil, benchmark.AnswerNotConfirmed
	}
	for i := range r.Levels {
		r.Levels[i].Low, r.Levels[i].High, r.Levels[i].Answer = nil, nil, benchmark.AnswerNotConfirmed
	}
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

func promptTokens(r *benchmark.Report) int64 { return r.Tokens.Prompt }

func outputTokens(r *benchmark.Report) int64 { return r.Tokens.Got }
