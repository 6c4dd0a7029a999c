package main

import (
	"slices"
	"strings"

	"sgtune/benchmark"
)

// metric is one figure of a load level that two sides can be compared by.
type metric struct {
	name  string // as --metric takes it
	label string // for a person
	unit  string
	lower bool // less is better
	of    func(l *loadLevel) (float64, bool)
}

// defaultMetric is compared by where neither --metric nor a study's objective says otherwise.
const defaultMetric = "output_tok_s"

// rateMetrics are the figures of which more is better, by the names of a study's objectives.
var rateMetrics = []metric{
	{name: "output_tok_s", label: "output tok/s", of: func(l *loadLevel) (float64, bool) { return l.report.OutputTokS, true }},
	{name: "requests_s", label: "requests/s", of: func(l *loadLevel) (float64, bool) { return l.report.RequestsS, true }},
	{name: "goodput", label: "goodput requests/s", of: func(l *loadLevel) (float64, bool) { return l.report.GoodputS, true }},
	{name: "concurrency", label: "clients within the SLO", of: func(l *loadLevel) (float64, bool) { return float64(l.clients), l.clients > 0 }},
}

// latencies are the distributions of a report; all are in ms.
var latencies = []struct {
	name string
	of   func(r *benchmark.Report) *benchmark.Distribution
}{
	{"ttft", func(r *benchmark.Report) *benchmark.Distribution { return r.TTFTms }},
	{"tpot", func(r *benchmark.Report) *benchmark.Distribution { return r.TPOTms }},
	{"itl", func(r *benchmark.Report) *benchmark.Distribution { return r.ITLms }},
	{"e2e", func(r *benchmark.Report) *benchmark.Distribution { return r.E2Ems }},
}

// statistics are the figures of a distribution.
var statistics = []struct {
	name string
	of   func(d *benchmark.Distribution) float64
}{
	{"p50", func(d *benchmark.Distribution) float64 { return d.P50 }},
	{"p90", func(d *benchmark.Distribution) float64 { return d.P90 }},
	{"p95", func(d *benchmark.Distribution) float64 { return d.P95 }},
	{"p99", func(d *benchmark.Distribution) float64 { return d.P99 }},
	{"mean", func(d *benchmark.Distribution) float64 { return d.Mean }},
	{"max", func(d *benchmark.Distribution) float64 { return d.Max }},
}

// metrics are all that --metric takes.
var metrics = func() []metric {
	all := slices.Clone(rateMetrics)
	for _, dist := range latencies {
		for _, figure := range statistics {
			all = append(all, metric{
				name: dist.name + "_" + figure.name, label: strings.ToUpper(dist.name) + " " + figure.name, unit: "ms", lower: true,
				of: func(l *loadLevel) (float64, bool) {
					if d := dist.of(l.report); d != nil {
						return figure.of(d), true
					}
					return 0, false
				},
			})
		}
	}
	return all
}()

// findMetric reads --metric.
func findMetric(name string) (metric, error) {
	for _, m := range metrics {
		if m.name == name {
			return m, nil
		}
	}
	var rates []string
	for _, m := range rateMetrics {
		rates = append(rates, m.name)
	}
	return metric{}, usagef("--metric %.60q is not known; take %s, or ttft_, tpot_, itl_ or e2e_ with p50, p90, p95, p99, mean or max (ttft_p95)", name, strings.Join(rates, ", "))
}

// compare is the test of this metric.
func (m metric) compare(base, candidate []float64) benchmark.Comparison {
	if m.lower {
		return benchmark.CompareLower(base, candidate)
	}
	return benchmark.Compare(base, candidate)
}

// shownMetrics are the rows of the table beside the metric that decides.
var shownMetrics = []string{"output_tok_s", "requests_s", "ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "e2e_p50", "e2e_p95"}
