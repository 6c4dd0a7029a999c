package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"sgtune/sglang"
	"sgtune/tuner/physics"
)

// ranks is how many processes share the host's memory.
func (f *suggestFacts) ranks() float64 { return max(f.TP, 1) }

// fits is the hard rule: host pools of gb a rank stay within the budget.
func (f *suggestFacts) fits(gb float64) bool {
	return f.HostBudgetGB == nil || gb*f.ranks() <= *f.HostBudgetGB
}

// admit is the rule of the host's memory for a whole point, and nil without a host pool or a known
// budget.
func (s suggestSpace) admit(facts *suggestFacts) func(physics.Point) bool {
	pool := slices.IndexFunc(s, func(k *suggestKnob) bool { return k.knob.Role == physics.RoleHostPool })
	if pool < 0 || facts.HostBudgetGB == nil {
		return nil
	}
	return func(p physics.Point) bool { return facts.fits(s[pool].number(p[pool])) }
}

// rule is what keeps values of a knob out of the search, and the largest number that it admits.
func (f *suggestFacts) rule(s *suggestSpec) (keptOut func(v any) string, top float64) {
	switch physics.RoleOf(flagOf(s.Name)) {
	case physics.RoleHostPool:
		if f.HostBudgetGB != nil {
			return f.hostRule(s.Name), *f.HostBudgetGB / f.ranks()
		}
	case physics.RoleKVDtype:
		if !f.FP8OptIn {
			return f.qualityRule(s), math.Inf(1)
		}
	default: // the others have no rule
	}
	return func(any) string { return "" }, math.Inf(1)
}

func (f *suggestFacts) hostRule(name string) func(v any) string {
	return func(v any) string {
		gb, isNumber := v.(float64)
		switch {
		case !isNumber:
			return fmt.Sprintf("%s %s is no number of GB a rank, so it is not known to fit the host", name, inJSON(v))
		case f.fits(gb):
			return ""
		}
		return fmt.Sprintf("%s %v x tp %v is above host_budget_gb %v", name, gb, f.ranks(), *f.HostBudgetGB)
	}
}

// qualityRule keeps KV caches below 16 bits out, and auto, which may become one, unless nothing
// else is there.
func (f *suggestFacts) qualityRule(s *suggestSpec) func(v any) string {
	lossless := func(v any) bool {
		text, isText := v.(string)
		return isText && text != "" && !sglang.LossyDtype(text)
	}
	explicit := slices.ContainsFunc(s.Choices, func(raw json.RawMessage) bool {
		v, err := scalar(raw)
		return err == nil && lossless(v)
	})
	return func(v any) string {
		if lossless(v) || v == "auto" && !explicit {
			return ""
		}
		return fmt.Sprintf("%s %s is below 16 bits or may be, and answers may get worse; facts.fp8_opt_in true admits it", s.Name, inJSON(v))
	}
}

// inJSON is a decoded choice as a message shows it: a text without its quotes, what has no value as null.
func inJSON(v any) string {
	if v == nil {
		return "null"
	}
	return shortened(fmt.Sprint(v))
}
