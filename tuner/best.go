package tuner

import (
	"cmp"
	"fmt"
	"math"

	"sgtune/sglang"
	"sgtune/trial"
)

// What counts as equal when the best candidate is picked.
const (
	mostTie     = 0.01 // relative difference of expected values, at most, however large the noise
	marginStep  = 0.5  // GiB of free memory that make a difference
	startupStep = 1.15 // ratio of start-up times that makes one
)

// merit is what decides among equals, in order: farther from the learnt memory line, less host
// RAM, faster start, fewer changed flags.
type merit struct {
	margin  float64 // steps of marginStep, higher is better
	ram     float64 // GB a rank of host pool
	startup float64 // steps of startupStep
	changed int     // knobs that differ from the baseline
	value   float64 // expected log value
}

func meritOf(t *trial.Trial, f *Frontier, baseline sglang.Config, expected float64) merit {
	m := merit{ram: t.Memory.HostPoolGB, changed: len(changes(baseline, t.Config)), value: expected}
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

// choice is the configuration to confirm, by the trial that measured it.
type choice struct {
	trial *trial.Trial // nil when nothing but the baseline has a value
	why   string       // in words, with the tie-break if there was one

	expected bool    // gain and chance are known
	gain     float64 // expected beside the baseline, relative
	chance   float64 // that it is better at all
}

// candidate picks the search trial whose configuration is confirmed: the one that is expected to be worth most,
// its value and its distance from the memory line weighed; among those that the noise cannot tell from it, the
// one with the best merit. out are the keys of configurations that cannot be it.
func candidate(h History, baseline sglang.Config, out map[string]bool, s standings) choice {
	h = h.where(func(t *trial.Trial) bool { return t.Role != trial.RoleConfirm }) // the choice came before these
	field := h.where(func(t *trial.Trial) bool {
		return t.Role == trial.RoleSearch && counts(t) && *t.Value > 0 && !out[Key(t.Config)] && !sameConfig(t.Config, baseline)
	})
	if len(field) == 0 {
		return choice{}
	}
	worth := func(t *trial.Trial) float64 { return s.of[Key(t.Config)].worth() }
	top, highest := field[0], field[0]
	for _, t := range field {
		if worth(t) > worth(top) {
			top = t
		}
		if *t.Value > *highest.Value {
			highest = t
		}
	}
	c := choice{trial: top, why: s.words(top, highest)}
	f, tie := NewFrontier(h), math.Min(s.noise.Launch, mostTie)
	best := meritOf(top, f, baseline, worth(top))
	first := best
	for _, t := range field {
		if worth(t) < worth(top)-tie {
			continue
		}
		m := meritOf(t, f, baseline, worth(t))
		if order, _ := m.compare(best); order < 0 {
			c.trial, best = t, m
		}
	}
	if c.trial != top {
		_, reason := best.compare(first)
		c.why = fmt.Sprintf("%s is within %.1f%% of %s and %s", s.value(c.trial), 100*tie, s.value(top), reason)
	}
	c.gain, c.chance, c.expected = s.gain(c.trial.Config, baseline)
	return c
}

// words say why a trial leads, and how its value compares with what was expected of it.
func (s standings) words(top, highest *trial.Trial) string {
	if top == highest {
		return fmt.Sprintf("trial %d has the highest value, %s", top.Number, s.amount(*top.Value))
	}
	text := fmt.Sprintf("by all that was measured %s is the better choice beside the highest value, %s", s.value(top), s.value(highest))
	if a, b := s.of[Key(top.Config)], s.of[Key(highest.Config)]; a.Survive-b.Survive > 0.01 {
		text += fmt.Sprintf("; it survives with a chance of %.0f%%, that one with %.0f%%", 100*a.Survive, 100*b.Survive)
	}
	return text
}

// value names a trial with its value, and what is expected of its configuration where that is something else.
func (s standings) value(t *trial.Trial) string {
	seen, expected := s.objective.figure(*t.Value), s.objective.figure(math.Exp(s.of[Key(t.Config)].Mean))
	if seen == expected {
		return fmt.Sprintf("trial %d (%s)", t.Number, s.amount(*t.Value))
	}
	return fmt.Sprintf("trial %d (%s, expected %s)", t.Number, s.amount(*t.Value), thousands(expected))
}

// amount is a value as a page shows it: "2,104 output tok/s".
func (s standings) amount(v float64) string { return thousands(s.objective.Amount(v)) }

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
