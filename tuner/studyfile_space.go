package tuner

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/sglang"
)

// readSpace reads the search space: knob to range, {values: [...]} or plain list.
func (d *decoder) readSpace(f field) {
	if f.value.kind != mapping {
		d.wrong(f.value, "`space` must be a mapping of knobs to values, not %s; write it like {hicache-size: [0, 16, 32]}", found(f.value))
		return
	}
	if len(f.value.fields) == 0 {
		d.wrong(f.value, "`space` is empty; add at least one knob with its values, like hicache-size: [0, 16, 32]")
		return
	}
	handlers := map[string]handler{}
	for _, g := range f.value.fields {
		handlers[g.name] = d.readKnob
	}
	d.keys(f.value, "space", handlers)
}

// readKnob reads one dimension and leaves out the values that the quality rule excludes.
func (d *decoder) readKnob(f field) {
	name, ok := d.knobName(f, "space", true)
	if !ok {
		return
	}
	if _, twice := d.knobs[name]; twice {
		d.at(f.line, f.col, "%s is given twice under two names; keep one of them", quote(path("space", name)))
		return
	}
	d.knobs[name] = f.value
	dim := Dimension{Name: name, Kind: Categorical}
	switch f.value.kind {
	case list:
		ok = d.readValues(&dim, f.value)
	case mapping:
		ok = d.readRange(&dim, f)
	default:
		d.wrong(f.value, "%s must be a list of values or a range, not %s; write [1, 2] or {min: 1, max: 2, step: 1}",
			quote(path("space", name)), found(f.value))
		return
	}
	if !ok {
		return
	}
	dim = d.exclude(dim, f.value)
	if len(dim.Values) > 0 {
		d.study.Space = append(d.study.Space, dim)
	}
}

// exclude applies the quality rule to a dimension and records what it leaves out.
func (d *decoder) exclude(dim Dimension, n *node) Dimension {
	var kept []any
	for _, v := range dim.Values {
		why := keptOut(dim.Name, v)
		if why == "" {
			kept = append(kept, v)
			continue
		}
		d.study.Excluded = append(d.study.Excluded, Exclusion{
			Knob: dim.Name, Value: v, Rule: RuleQuality,
			Text: fmt.Sprintf("rule %s: %s %s is left out of the space: %s", RuleQuality, dim.Name, sglang.FormatValue(v), why),
		})
	}
	if len(kept) == 0 {
		d.wrong(n, "`space.%s` holds only values that the rule quality (bf16-only) excludes: %s; remove the knob or add a lossless value",
			dim.Name, clip(sglang.FormatValue(dim.Values)))
	}
	dim.Values = kept
	return dim
}

// readRange reads {min, max, step[, log]} or {values: [...][, log]}.
func (d *decoder) readRange(dim *Dimension, f field) bool {
	where := path("space", dim.Name)
	var values *node
	numbers := map[string]float64{}
	before := len(d.problems)
	number := func(key string) handler {
		return func(g field) {
			if v, ok := d.number(g, path(where, key), "0.8"); ok {
				numbers[key] = v
			}
		}
	}
	seen := d.keys(f.value, where, map[string]handler{
		"min": number("min"), "max": number("max"), "step": number("step"),
		"values": func(g field) { values = g.value },
		"log":    func(g field) { dim.Log = d.boolean(g, path(where, "log")) },
	})
	if len(d.problems) > before {
		return false
	}
	if seen["values"] {
		if seen["min"] || seen["max"] || seen["step"] {
			d.wrong(f.value, "%s has both values and a range; keep one of them", quote(where))
			return false
		}
		return d.readValues(dim, values)
	}
	for _, key := range []string{"min", "max", "step"} {
		if !seen[key] {
			d.wrong(f.value, "%s has no `%s`; write {min: ..., max: ..., step: ...} or a list of values", quote(where), key)
			return false
		}
	}
	return d.readGrid(dim, f.value, where, numbers["min"], numbers["max"], numbers["step"])
}

func (d *decoder) readGrid(dim *Dimension, n *node, where string, low, high, step float64) bool {
	format := sglang.FormatValue
	switch {
	case step <= 0:
		d.wrong(n, "%s: step %s is not above 0; write the distance between two values, like step: 0.01", quote(where), format(step))
		return false
	case low > high:
		d.wrong(n, "%s: min %s is above max %s; swap them", quote(where), format(low), format(high))
		return false
	case dim.Log && low <= 0:
		d.wrong(n, "%s: a log range needs a min above 0; write one or remove log", quote(where))
		return false
	}
	values, err := grid(low, high, step)
	if err != nil {
		d.wrong(n, "%s %v; make the step larger", quote(where), err)
		return false
	}
	dim.Kind, dim.Values = Numeric, values
	for _, v := range []any{values[0], values[len(values)-1], values[min(1, len(values)-1)]} {
		if !d.knobValue(n, dim.Name, v) {
			return false
		}
	}
	return true
}

// readValues reads a list of values: all numbers (then sorted), or words and booleans.
func (d *decoder) readValues(dim *Dimension, n *node) bool {
	where := path("space", dim.Name)
	if n.kind != list || len(n.items) == 0 {
		d.wrong(n, "%s has no values; write a list like [0, 16, 32]", quote(where))
		return false
	}
	if len(n.items) > maxGrid {
		d.wrong(n, "%s has more than %d values; shorten the list", quote(where), maxGrid)
		return false
	}
	seen := map[any]bool{}
	good, numeric := true, true
	for _, item := range n.items {
		v, ok := d.value(item, where)
		if !ok || !d.knobValue(item, dim.Name, v) {
			good = false
			continue
		}
		if seen[v] {
			d.wrong(item, "%s holds %s twice; keep one of them", quote(where), quote(item.text))
			good = false
			continue
		}
		seen[v] = true
		_, isNumber := v.(float64)
		numeric = numeric && isNumber
		dim.Values = append(dim.Values, v)
	}
	if numeric {
		dim.Kind = Numeric
		slices.SortFunc(dim.Values, func(a, b any) int {
			x, y := a.(float64), b.(float64)
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
	}
	if numeric && dim.Log && good && dim.Values[0].(float64) <= 0 {
		d.wrong(n, "%s: log needs values above 0; remove log", quote(where))
		return false
	}
	return good
}

func (d *decoder) boolean(f field, where string) bool {
	v, ok := f.value.value.(bool)
	if !ok {
		d.wrong(f.value, "%s must be true or false, not %s", quote(where), found(f.value))
	}
	return v
}

// crossCheckSpace finds what only the whole file shows about the space.
func (d *decoder) crossCheckSpace() {
	for _, dim := range d.study.Space {
		if at, fixed := d.flags[dim.Name]; fixed {
			d.at(at.line, at.col, "`%s` is both a fixed flag and a knob of the space; keep one of them", dim.Name)
		}
		if key, ok := strings.CutPrefix(dim.Name, sglang.EnvPrefix); ok {
			if _, fixed := d.study.Server.Env[key]; fixed {
				d.wrong(d.knobs[dim.Name], "`%s` is both in server.env and a knob of the space; keep one of them", key)
			}
		}
	}
	if n, ok := d.knobs[hicacheSize]; ok && d.study.Server.Flags["disable-radix-cache"] == true {
		d.wrong(n, "`space.hicache-size` needs the radix cache, which server.flags turns off; remove disable-radix-cache or the knob")
	}
}
