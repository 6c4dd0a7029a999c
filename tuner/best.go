package tuner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sgtune/sglang"
	"sgtune/trial"
)

// What counts as equal when the best candidate is picked.
const (
	leastNoise  = 0.005 // relative standard error believed of one launch at least
	mostNoise   = 0.02  // and at most, for ranking
	marginStep  = 0.5   // GiB of free memory that make a difference
	startupStep = 1.15  // ratio of start-up times that makes one
)

// noise is the relative standard error of one launch's value: the median over the launches' own
// 95% intervals. They cover the windows of one launch only, so it is a lower bound.
func noise(h History) float64 {
	var all []float64
	for _, t := range h {
		if !counts(t) {
			continue
		}
		for _, l := range t.Levels {
			if l.Concurrency != t.Best || l.Report == nil || l.Report.OutputTokS <= 0 || l.Report.OutputHigh <= l.Report.OutputLow {
				continue
			}
			all = append(all, (l.Report.OutputHigh-l.Report.OutputLow)/2/1.96/l.Report.OutputTokS)
		}
	}
	if len(all) == 0 {
		return mostNoise
	}
	slices.Sort(all)
	return math.Max(all[len(all)/2], leastNoise)
}

// merit is what decides among equals, in order: farther from the learnt memory line, less host
// RAM, faster start, fewer changed flags.
type merit struct {
	margin  float64 // steps of marginStep, higher is better
	ram     float64 // GB a rank of host pool
	startup float64 // steps of startupStep
	changed int     // knobs that differ from the baseline
	value   float64
}

func meritOf(t *trial.Trial, f *Frontier, baseline sglang.Config) merit {
	m := merit{ram: t.Memory.HostPoolGB, changed: len(changes(baseline, t.Config)), value: *t.Value}
	if m.ram == 0 {
		m.ram = hostPool(t.Config)
	}
	if gib, ok := f.Margin(t.Config); ok {
		m.margin = math.Floor(gib / marginStep)
	}
	if t.Startup > 0 {
		m.startup = math.Round(math.Log(t.Startup.Seconds()) / math.Log(startupStep))
	}
	return m
}

// compare orders merits, the better first; why names the first criterion that differs.
func (m merit) compare(o merit) (order int, why string) {
	if c := cmp.Compare(o.margin, m.margin); c != 0 {
		return c, "stays farther from the memory line"
	}
	if c := cmp.Compare(m.ram, o.ram); c != 0 {
		return c, "needs less host RAM"
	}
	if c := cmp.Compare(m.startup, o.startup); c != 0 {
		return c, "starts faster"
	}
	if c := cmp.Compare(m.changed, o.changed); c != 0 {
		return c, "changes fewer flags"
	}
	return cmp.Compare(o.value, m.value), "is the faster one"
}

// candidate picks the search trial whose configuration is confirmed: the highest value; among
// those that the noise seen cannot tell from it, the one with the best merit. out are the keys of
// configurations that failed their confirmation. nil when nothing but the baseline has a value.
func candidate(h History, baseline sglang.Config, out map[string]bool) (pick *trial.Trial, why string) {
	h = h.where(func(t *trial.Trial) bool { return t.Role != trial.RoleConfirm }) // the choice came before these
	f := NewFrontier(h)
	var top *trial.Trial
	var field History
	for _, t := range h.Role(trial.RoleSearch) {
		if !counts(t) || out[Key(t.Config)] || sameConfig(t.Config, baseline) {
			continue
		}
		field = append(field, t)
		if top == nil || *t.Value > *top.Value {
			top = t
		}
	}
	if top == nil {
		return nil, ""
	}
	tie := math.Min(noise(h), mostNoise)
	pick, best := top, meritOf(top, f, baseline)
	for _, t := range field {
		if *t.Value < *top.Value*(1-tie) {
			continue
		}
		if order, _ := meritOf(t, f, baseline).compare(best); order < 0 {
			pick, best = t, meritOf(t, f, baseline)
		}
	}
	if pick == top {
		return pick, fmt.Sprintf("trial %d has the highest value, %s", pick.Number, number(fourDigits(*pick.Value)))
	}
	_, reason := best.compare(meritOf(top, f, baseline))
	return pick, fmt.Sprintf("trial %d (%s) equals trial %d (%s) within the noise of %.1f%% and %s",
		pick.Number, number(fourDigits(*pick.Value)), top.Number, number(fourDigits(*top.Value)), 100*tie, reason)
}

// changes are the knobs in which a configuration differs from the baseline, sorted.
func changes(baseline, c sglang.Config) []string {
	a, b := Canonical(baseline), Canonical(c)
	var names []string
	for _, name := range sglang.Merge(a, b).Names() {
		if name == hicacheSize && hostPool(a) == 0 && hostPool(b) == 0 {
			continue
		}
		if a.Text(name) != b.Text(name) {
			names = append(names, name)
		}
	}
	return names
}

// fourDigits keeps four significant digits, enough to read and no false precision.
func fourDigits(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	r := math.Round(v/unit) * unit
	return math.Round(r*1e6) / 1e6
}
