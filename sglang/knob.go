package sglang

import (
	_ "embed"
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

// Knob is what sgtune knows about one SGLang flag. Bounds are SGLang's own, not advice: a value
// outside is refused, or takes a server nowhere.
type Knob struct {
	Name    string // flag name without dashes
	Meaning string // one plain sentence fragment, for a person
	Unit    string // "GB per rank", "tokens"; "" for none
	Kind    Kind
	Default any     // of SGLang 0.5.23; nil = chosen by the server
	Min     float64 // of numbers
	Max     float64 // 0 = unbounded
	Choices []string
	Lossy   []string // choices that may change the model's answers
	Dead    bool     // parsed, but read by nothing in any version checked
	Since   Version  // first version that has it; zero = all
	Until   Version  // first version that lacks it; zero = none
	Renamed string   // the flag that took its place at Until
	Tunable bool     // worth a place in a search space
}

// Lookup returns the knob of a flag name (without dashes).
func Lookup(name string) (Knob, bool) {
	for _, k := range knobs {
		if k.Name == name {
			return k, true
		}
	}
	return Knob{}, false
}

// Knobs returns the whole table in its order of meaning: memory, scheduling, cache, graphs, ...
func Knobs() []Knob { return slices.Clone(knobs) }

//go:embed flags.txt
var flagList string

// flagNames are the long options of SGLang 0.5.23, from its own --help.
var flagNames = sync.OnceValue(func() []string { return strings.Fields(flagList) })

// Known reports whether a name is a flag of SGLang 0.5.23, or of an older version as far as the
// table knows it. Environment variables ("env.NAME") are always known.
func Known(name string) bool {
	if rest, ok := strings.CutPrefix(name, EnvPrefix); ok {
		return rest != ""
	}
	_, inTable := Lookup(name)
	return inTable || slices.Contains(flagNames(), name)
}

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
	out := make([]string, 0, len(knobs)+len(flagNames()))
	for _, k := range knobs {
		if k.Until == (Version{}) && !k.Dead {
			out = append(out, k.Name)
		}
	}
	return append(out, flagNames()...)
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

// CurrentName is the name of a flag in a version: renamed flags are mapped in both directions. A
// flag the table does not know keeps its name; an unknown version counts as the newest.
func CurrentName(name string, v Version) string {
	if v == (Version{}) {
		v = Version{Major: math.MaxInt}
	}
	for range knobs { // a chain of renames is never longer than the table
		k, ok := Lookup(name)
		if !ok {
			return name
		}
		switch {
		case k.Renamed != "" && k.Until != (Version{}) && v.Compare(k.Until) >= 0:
			name = k.Renamed
		case k.Since != (Version{}) && v.Compare(k.Since) < 0 && oldName(name) != "":
			return oldName(name)
		default:
			return name
		}
	}
	return name
}

func oldName(name string) string {
	for _, k := range knobs {
		if k.Renamed == name {
			return k.Name
		}
	}
	return ""
}
