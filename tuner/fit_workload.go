package tuner

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/sglang"
)

// RuleWorkload is the rule that keeps out what the workload itself makes useless.
const RuleWorkload = "workload"

// FitWorkload fits a study to its workload: where fewer than leastReuse of the prompt tokens repeat,
// hicache-size is fixed to 0 in every trial but the baseline, because the hierarchical cache keeps evicted
// prefixes for those who come back and does nothing for answers that are being decoded (design 5). What it
// leaves out is in Excluded. reuse is the share of prompt tokens that an endless prefix cache would serve.
//
// A hierarchical cache that the study switches on for every launch is left alone.
func (s *Study) FitWorkload(reuse float64) {
	on, _ := sglang.Merge(s.Server.Flags, s.SearchBase())[hicacheOn].(bool)
	if reuse >= leastReuse || on {
		return
	}
	out, words := s.fixHostPool()
	if len(out) == 0 {
		return
	}
	s.Excluded = append(s.Excluded, Exclusion{
		Knob: hicacheSize, Value: out, Rule: RuleWorkload,
		Text: fmt.Sprintf("rule %s: %s is fixed to 0 (left out: %s): only %.1f%% of the workload's prompt tokens repeat, under %.0f%%, and the hierarchical cache helps only prompts that come back",
			RuleWorkload, hicacheSize, strings.Join(words, ", "), 100*reuse, 100*leastReuse),
	})
}

// fixHostPool leaves 0 as the only size of host pools in the space. It returns what it took out, and that in
// words; nothing where the space has no other.
func (s *Study) fixHostPool() (out []any, words []string) {
	for i, d := range s.Space {
		if d.Name != hicacheSize {
			continue
		}
		for _, v := range d.Values {
			if size, ok := v.(float64); !ok || size > 0 {
				out, words = append(out, v), append(words, sglang.FormatValue(v))
			}
		}
		if len(out) > 0 {
			d.Values = []any{float64(0)}
			s.Space[i] = d
		}
	}
	return out, words
}

// hostPoolFixed reports whether the events of a study say that its workload fixed host pools to 0.
func hostPoolFixed(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool {
		_, about := e.Config[hicacheSize]
		return e.Kind == "reject" && about && strings.HasPrefix(e.Text, "rule "+RuleWorkload+":")
	})
}
