package sglang

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Kind is the type of a flag's value.
type Kind string

// Kinds of values.
const (
	KindFloat  Kind = "float"
	KindInt    Kind = "int"
	KindBool   Kind = "bool" // a bare flag
	KindChoice Kind = "choice"
	KindText   Kind = "text"
	KindList   Kind = "list" // several whole numbers
)

// Group is a heading of the knob table.
type Group string

// Groups, in the order of docs/knobs.md.
const (
	GroupMemory   Group = "Memory"
	GroupSchedule Group = "Scheduling"
	GroupCache    Group = "Prefix cache and hierarchical cache"
	GroupGraphs   Group = "CUDA graphs and compilation"
	GroupParallel Group = "Parallelism"
	GroupKernels  Group = "Kernels"
	GroupSpec     Group = "Speculative decoding"
	GroupWeights  Group = "Weights and number formats"
	GroupService  Group = "Service"
)

// Knob is what sgtune knows about one SGLang flag. Bounds are SGLang's own, not advice: a value
// outside is refused, or takes a server nowhere.
type Knob struct {
	Name    string // flag name without dashes
	Group   Group
	Meaning string // one plain sentence fragment, for a person
	Effect  string // what a larger value, or turning it on, does to speed
	Risk    string // what can go wrong with it
	Use     string // what sgtune itself does with it, "" when nothing special
	Unit    string // "GB per rank", "tokens"; "" for none
	Kind    Kind
	Default any     // in force in SGLang 0.5.23 when the flag is not given; nil = chosen by the server
	Min     float64 // of numbers
	Max     float64 // 0 = unbounded
	Choices []string
	Lossy   []string // choices that may change the model's answers
	Dead    bool     // parsed, but read by nothing in any version checked
	Tunable bool     // worth a place in a search space

	// From the release table.
	Since   Version // first known release that has it; zero = all have
	Until   Version // first known release that lacks it; zero = the newest has it
	Renamed string  // the flag that took its place at Until, or that it is deprecated for
}

// knobTable is the table with what the release table says of every flag.
var knobTable = sync.OnceValue(func() []Knob {
	table := slices.Concat(memoryKnobs, cacheKnobs, gpuKnobs, serviceKnobs)
	oldest := known().versions[0]
	for i := range table {
		k := &table[i]
		if first, _, ok := firstAndLast(k.Name); ok && first != oldest {
			k.Since = first
		}
		k.Until, _ = goneSince(k.Name)
		for _, r := range renames {
			if r.old == k.Name {
				k.Renamed = r.new
			}
		}
	}
	return table
})

// Lookup returns the knob of a flag name (without dashes).
func Lookup(name string) (Knob, bool) {
	for _, k := range knobTable() {
		if k.Name == name {
			return k, true
		}
	}
	return Knob{}, false
}

// Knobs returns the whole table in its order of meaning: memory, scheduling, cache, graphs, ...
func Knobs() []Knob { return slices.Clone(knobTable()) }

// Suggest returns the known flag nearest to a misspelt one, or "" when none is near. Underscores
// for hyphens and leading dashes are the commonest mistakes.
func Suggest(name string) string {
	want := strings.ToLower(strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-"))
	if want == "" {
		return ""
	}
	best, bestDistance := "", len(want)/3+2 // a third of the letters may be wrong
	for _, candidate := range candidates() {
		if candidate == want {
			return candidate
		}
		d := editDistance(want, candidate)
		if strings.HasPrefix(candidate, want) && len(want) >= 6 {
			d = min(d, 2) // a shortened name
		}
		if d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// candidates are the table's names first: among equally near names the better known one wins.
func candidates() []string {
	newest, _ := FlagsOf(Version{})
	out := make([]string, 0, len(knobTable())+len(newest))
	for _, k := range knobTable() {
		if k.Until == (Version{}) && !k.Dead {
			out = append(out, k.Name)
		}
	}
	return append(out, newest.Names()...)
}

// editDistance is the number of single-letter changes between two words, a swap of neighbours
// counting as one.
func editDistance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

// CheckValue says why a value cannot be one of a knob's, in words for a person; nil when it can, or
// when the flag is not in the table.
func CheckValue(name string, value any) error {
	k, ok := Lookup(name)
	if !ok {
		return nil
	}
	switch k.Kind {
	case KindFloat, KindInt:
		return k.checkNumber(value)
	case KindBool:
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("%s is a bare flag: give true or false, not %q", name, FormatValue(value))
		}
	case KindChoice:
		text, isText := value.(string)
		if !isText || !slices.Contains(k.Choices, text) {
			return fmt.Errorf("%s has no value %q; choose from %s", name, FormatValue(value), strings.Join(k.Choices, ", "))
		}
	case KindList:
		list, ok := value.([]any)
		if !ok || len(list) == 0 {
			return fmt.Errorf("%s takes a list of whole numbers, not %q", name, FormatValue(value))
		}
		for _, x := range list {
			if err := k.checkNumber(x); err != nil {
				return err
			}
		}
	case KindText:
		if _, ok := value.([]any); ok {
			return fmt.Errorf("%s takes one value, not a list", name)
		}
	}
	return nil
}

func (k Knob) checkNumber(value any) error {
	v, ok := value.(float64)
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%s takes a number, not %q", k.Name, FormatValue(value))
	}
	if k.Kind != KindFloat && v != math.Trunc(v) {
		return fmt.Errorf("%s takes a whole number, not %s", k.Name, FormatValue(v))
	}
	if v < k.Min || k.Max != 0 && v > k.Max {
		if k.Max == 0 {
			return fmt.Errorf("%s must be at least %s, not %s", k.Name, FormatValue(k.Min), FormatValue(v))
		}
		return fmt.Errorf("%s must be between %s and %s, not %s", k.Name, FormatValue(k.Min), FormatValue(k.Max), FormatValue(v))
	}
	if k.Name == "mem-fraction-static" && v >= 1 {
		return fmt.Errorf("mem-fraction-static must be below 1, not %s", FormatValue(v))
	}
	return nil
}
