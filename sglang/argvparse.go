package sglang

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Argument is one option of a launch command, as one version's parser reads it.
type Argument struct {
	Name   string   // the option's name in that version, without dashes; as written when it has no such option
	Typed  string   // the name as written, without dashes
	Words  []string // the values as written
	Value  any      // as in Config; nil when Err is set
	Note   string   // what is worth knowing, for a person: renamed, deprecated, does nothing
	Err    error    // why this version does not take it: a *FlagError, or a value that is none
	Stray  bool     // not an option but words that belong to none
	Repeat bool     // the same option comes again later and wins
}

// ParseArgs reads SGLang's own arguments as argparse does for a version (unknown counts as newest):
// --flag value and --flag=value, shortened names and aliases, options that take several values,
// negative numbers as values; of an option given twice the last one wins. The order is kept.
// Nothing is checked beyond a single option: what a server refuses in combination is not known here.
func ParseArgs(args []string, v Version) []Argument {
	var out []Argument
	for i := 0; i < len(args); {
		name, inline, hasInline := strings.Cut(args[i], "=")
		if !optionWord(args[i]) {
			end := i + 1
			for end < len(args) && !optionWord(args[end]) {
				end++
			}
			out = append(out, Argument{Words: args[i:end], Stray: true, Err: fmt.Errorf("%s belongs to no flag", strings.Join(args[i:end], " "))})
			i = end
			continue
		}
		a := Argument{Typed: strings.TrimLeft(name, "-")}
		flag := a.resolve(v)
		i++
		switch {
		case hasInline:
			a.Words = []string{inline}
		default:
			for i < len(args) && !optionWord(args[i]) && len(a.Words) < wordsTaken(flag, a.Err) {
				a.Words = append(a.Words, args[i])
				i++
			}
		}
		if a.Err == nil {
			a.Value, a.Err = flag.parse(a)
		}
		out = append(out, a)
	}
	markRepeats(out)
	return out
}

// resolve finds the option an argument names.
func (a *Argument) resolve(v Version) Flag {
	flags, _ := FlagsOf(v)
	a.Name, a.Note, a.Err = Resolve(a.Typed, v)
	if a.Err != nil {
		a.Name = a.Typed
		return Flag{}
	}
	if flag, err := flags.Find(a.Typed); err == nil { // the form of the name that was typed
		if negated, ok := strings.CutPrefix(flag.Name, "no-"); ok && flag.Form == FormSwitch && flags.Has(negated) {
			a.Name = flag.Name
		}
		return flag
	}
	flag, err := flags.Find(a.Name)
	if err != nil {
		a.Name, a.Err = a.Typed, err
	}
	return flag
}

// optionWord reports whether argparse takes a word for an option: it begins with a dash, is no
// negative number, and its name holds no blank.
func optionWord(w string) bool {
	name, _, _ := strings.Cut(w, "=")
	return len(w) > 1 && w[0] == '-' && !negativeNumber.MatchString(w) && !strings.ContainsAny(name, " \t\n")
}

var negativeNumber = regexp.MustCompile(`^-(?:\d+|\d*\.\d+)$`)

// wordsTaken is how many words after it an option takes. An option nobody knows takes what follows,
// so that its values do not look lost.
func wordsTaken(f Flag, err error) int {
	switch {
	case err != nil || f.Many:
		return math.MaxInt
	case f.TakesValue:
		return 1
	}
	return 0
}

// markRepeats marks what a later argument of the same option overrides.
func markRepeats(all []Argument) {
	last := map[string]int{}
	for i, a := range all {
		if a.Err != nil {
			continue
		}
		option := strings.TrimPrefix(a.Name, "no-")
		if before, ok := last[option]; ok {
			all[before].Repeat = true
		}
		last[option] = i
	}
}

// parse reads the values of one option as its form says.
func (f Flag) parse(a Argument) (any, error) {
	if !f.TakesValue {
		if len(a.Words) > 0 {
			return nil, fmt.Errorf("--%s takes no value, not %q", a.Typed, a.Words[0])
		}
		return true, nil
	}
	switch {
	case len(a.Words) == 0 && f.Optional:
		return true, nil
	case len(a.Words) == 0:
		return nil, fmt.Errorf("--%s has no value", a.Typed)
	case !f.Many:
		return f.parseWord(a.Typed, a.Words[0])
	}
	list := make([]any, len(a.Words))
	for i, w := range a.Words {
		v, err := f.parseWord(a.Typed, w)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (f Flag) parseWord(name, w string) (any, error) {
	var value any = w
	if f.Form == FormInt || f.Form == FormCount || f.Form == FormFloat {
		number, ok := readNumber(f.Form, strings.TrimSpace(w))
		if !ok {
			return nil, fmt.Errorf("--%s takes a number, not %q", name, w)
		}
		value = number
	}
	if len(f.Choices) > 0 && !slices.Contains(f.Choices, FormatValue(value)) {
		return nil, fmt.Errorf("--%s has no value %q in this version; it takes %s", name, w, strings.Join(f.Choices, ", "))
	}
	return value, nil
}

var suffixed = regexp.MustCompile(`^(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)$`)

var multiplier = map[string]int64{
	"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

// readNumber reads a number as Python does, and 150k or 2Mi where SGLang does (human_readable_int
// of srt/utils/common.py).
func readNumber(form Form, w string) (float64, bool) {
	w = strings.ReplaceAll(w, "_", "")
	if form == FormFloat {
		v, err := strconv.ParseFloat(w, 64)
		return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
	}
	if m := suffixed.FindStringSubmatch(w); m != nil && form == FormCount {
		r, ok := new(big.Rat).SetString(m[1])
		if !ok || len(m[2]) == 2 && strings.Contains(m[1], ".") {
			return 0, false
		}
		v, _ := r.Mul(r, new(big.Rat).SetInt64(multiplier[m[2]])).Float64()
		return math.Trunc(v), true
	}
	n, err := strconv.ParseInt(w, 10, 64)
	return float64(n), err == nil
}
