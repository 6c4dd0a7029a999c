package tuner

import (
	"fmt"
	"slices"

	"sgtune/sglang"
)

// RuleCombination is the rule against settings that SGLang does not take together.
const RuleCombination = "combination"

// Combination refuses configurations that the installed SGLang would refuse to start, and those it
// would turn into another point of the same space, so that one server is not measured twice.
type Combination struct {
	Fixed   sglang.Config  // flags laid under every configuration
	Version sglang.Version // zero = the newest known
	Space   Space
	// Runs are rules that what runs today breaks, by their names: then they are not true here.
	Runs []string
}

// newCombination builds the rule of a study. What the baseline does works, whatever the table says.
func newCombination(s *Study) Combination {
	c := Combination{Fixed: sglang.Merge(s.Server.Flags, s.Passed), Version: s.Server.Version, Space: s.Space}
	for _, x := range sglang.Rejected(sglang.Merge(s.Server.Flags, s.Baseline), s.Server.Version) {
		if x.Fatal {
			c.Runs = append(c.Runs, x.Rule)
		}
	}
	return c
}

// Check asks sglang.Rejected about the whole configuration.
func (r Combination) Check(c sglang.Config) error {
	for _, x := range sglang.Rejected(sglang.Merge(r.Fixed, c), r.Version) {
		switch {
		case slices.Contains(r.Runs, x.Rule):
		case x.Fatal:
			return &Infeasible{Rule: RuleCombination, Text: x.Text}
		case r.twin(c, x.Becomes):
			return &Infeasible{Rule: RuleCombination, Text: fmt.Sprintf("%s; with %s it is a configuration of its own", x.Text, pairs(x.Becomes))}
		}
	}
	return nil
}

// twin reports whether a configuration turns into another one of the space.
func (r Combination) twin(c, becomes sglang.Config) bool {
	if len(becomes) == 0 {
		return false
	}
	for name, v := range becomes {
		d, searched := r.Space.Dim(name)
		if !searched || d.Index(v) < 0 {
			return false
		}
	}
	return Key(sglang.Merge(c, becomes)) != Key(c)
}

// combinationNotes says what SGLang makes of what runs today and of what every trial has.
func combinationNotes(s *Study) (notes, against []string) {
	for _, x := range sglang.Rejected(sglang.Merge(s.Server.Flags, s.Baseline), s.Server.Version) {
		if x.Fatal {
			against = append(against, "the baseline would not start: "+x.Text)
			continue
		}
		notes = append(notes, "The baseline: "+x.Text+".")
	}
	return notes, against
}
