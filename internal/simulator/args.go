package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// flag is one row of flags_VERSION.tsv.
type flag struct {
	key      string   // Python attribute: mem_fraction_static
	options  []string // --mem-fraction-static
	kind     string   // int float str si json true switch internal
	many     string   // nargs: "+", "*", "?" or ""
	def, res string   // Python literals: parser default, resolved value in the server_args line
	unlisted bool     // an option that is no attribute of the arguments
	choices  []string
}

// flagSet is the options of one version.
type flagSet struct {
	rows  []flag
	index map[string]int // every spelling of an option -> its row
}

// readFlags reads the text of a flags_VERSION.tsv.
func readFlags(text string) *flagSet {
	set := &flagSet{index: map[string]int{}}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(f) != 7 {
			continue
		}
		x := flag{key: f[0], kind: f[2], def: f[4], res: f[5]}
		if f[1] != "-" {
			x.options = strings.Fields(f[1])
		}
		if f[3] != "-" {
			x.many = f[3]
		}
		if x.unlisted = x.res == "!" || x.key == "help" || x.key == "config" || x.key == "monokernel_backend"; x.unlisted || x.res == "=" {
			x.res = x.def
		}
		if f[6] != "-" {
			x.choices = strings.Split(f[6], "|")
		}
		for _, o := range x.options {
			set.index[o] = len(set.rows)
		}
		set.rows = append(set.rows, x)
	}
	return set
}

// Args is a parsed command line: attribute to Python value text, only what was given.
type Args struct {
	d     *dialect
	given map[string]string
	sim   SimSettings
	help  bool
}

// UsageError is what argparse says before it exits with status 2.
type UsageError struct {
	Prog    string // argparse's name of the program, "" = the newest version's
	Message string
}

// Error is the line argparse prints last.
func (e *UsageError) Error() string {
	prog := e.Prog
	if prog == "" {
		prog = newestDialect().prog
	}
	return prog + ": error: " + e.Message
}

func usage(format string, a ...any) error { return &UsageError{Message: fmt.Sprintf(format, a...)} }

// ParseArgs reads a command line as the argument parser of the asked SGLang version (--sim-version) does:
// options in any order, prefix abbreviations that are unique, --option=value, repeated options (the last
// wins). --sim-... are the simulator's own.
func ParseArgs(argv []string) (*Args, error) {
	d, err := dialectOf(argv)
	if err != nil {
		return nil, err
	}
	a, err := d.parse(argv)
	if u := (*UsageError)(nil); errors.As(err, &u) {
		u.Prog = d.prog
	}
	return a, err
}

func (d *dialect) parse(argv []string) (*Args, error) {
	argv, err := expandConfig(d.flags(), argv)
	if err != nil {
		return nil, err
	}
	a := &Args{d: d, given: map[string]string{}, sim: SimSettings{Profile: kimi8x96.Name, TimeScale: 1, Seed: 1, Faults: noFaults()}}
	var unknown []string
	for len(argv) > 0 {
		word := argv[0]
		argv = argv[1:]
		if !strings.HasPrefix(word, "-") || word == "-" {
			unknown = append(unknown, word)
			continue
		}
		name, value, inline := strings.Cut(word, "=")
		if strings.HasPrefix(name, "--sim-") {
			if !inline {
				if len(argv) == 0 {
					return nil, usage("argument %s: expected one argument", name)
				}
				value, argv = argv[0], argv[1:]
			}
			if err := a.own(name, value); err != nil {
				return nil, err
			}
			continue
		}
		if name == "-h" || name == "--help" {
			a.help = true
			return a, nil
		}
		i, full, err := d.flags().find(name)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			unknown = append(unknown, word)
			continue
		}
		if argv, err = a.take(d.flags().rows[i], full, value, inline, argv); err != nil {
			return nil, err
		}
	}
	if a.given["model_path"] == "" {
		return nil, usage("the following arguments are required: --model-path/--model")
	}
	if len(unknown) > 0 {
		return nil, usage("unrecognized arguments: %s", strings.Join(unknown, " "))
	}
	return a, nil
}

// own reads one of the simulator's own flags. The version has decided how this line is read, so it cannot
// change on the way (a config file).
func (a *Args) own(name, value string) error {
	if name != "--sim-version" {
		return a.sim.set(name, value)
	}
	d, err := lookupVersion(value)
	if err == nil && d != a.d {
		err = usage("argument --sim-version: give it once, on the command line")
	}
	return err
}

// find resolves a spelling or a unique prefix; -1 when nothing fits.
func (set *flagSet) find(name string) (int, string, error) {
	if i, ok := set.index[name]; ok {
		return i, name, nil
	}
	if !strings.HasPrefix(name, "--") {
		return -1, "", nil
	}
	var found []string
	for _, f := range set.rows {
		for _, o := range f.options {
			if strings.HasPrefix(o, name) {
				found = append(found, o)
			}
		}
	}
	switch len(found) {
	case 0:
		return -1, "", nil
	case 1:
		return set.index[found[0]], found[0], nil
	}
	return -1, "", usage("ambiguous option: %s could match %s", name, strings.Join(found, ", "))
}

// take consumes a flag's values from argv and stores them as Python text.
func (a *Args) take(f flag, option, value string, inline bool, argv []string) ([]string, error) {
	label := strings.Join(f.options, "/")
	if f.kind == "true" || f.kind == "switch" {
		if inline {
			return nil, usage("argument %s: ignored explicit argument '%s'", label, value)
		}
		a.given[f.key] = "True"
		if f.kind == "switch" && strings.HasPrefix(option, "--no-") {
			a.given[f.key] = "False"
		}
		return argv, nil
	}
	words := []string{value}
	if !inline {
		n := 0
		for n < len(argv) && !isOption(argv[n]) && (n == 0 || f.many == "+" || f.many == "*") {
			n++
		}
		words, argv = argv[:n:n], argv[n:]
	}
	if len(words) == 0 {
		switch f.many {
		case "*", "?":
		case "+":
			return nil, usage("argument %s: expected at least one argument", label)
		default:
			return nil, usage("argument %s: expected one argument", label)
		}
	}
	texts := make([]string, len(words))
	for i, w := range words {
		t, err := f.convert(a.d, label, w)
		if err != nil {
			return nil, err
		}
		texts[i] = t
	}
	if f.many == "+" || f.many == "*" {
		a.given[f.key] = "[" + strings.Join(texts, ", ") + "]"
	} else if len(texts) == 1 {
		a.given[f.key] = texts[0]
	}
	return argv, nil
}

// isOption tells an option from a value: negative numbers are values.
func isOption(word string) bool {
	if !strings.HasPrefix(word, "-") || word == "-" {
		return false
	}
	_, err := strconv.ParseFloat(word, 64)
	return err != nil
}

// convert checks one value and returns it as a Python literal.
func (f flag) convert(d *dialect, label, w string) (string, error) {
	if len(f.choices) > 0 && !slices.Contains(f.choices, w) {
		return "", usage("argument %s: invalid choice: '%s' (choose from %s)", label, w, d.choiceText(f.choices))
	}
	switch f.kind {
	case "int":
		n, err := strconv.Atoi(w)
		if err != nil {
			return "", usage("argument %s: invalid int value: '%s'", label, w)
		}
		return strconv.Itoa(n), nil
	case "float":
		x, err := strconv.ParseFloat(w, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return "", usage("argument %s: invalid float value: '%s'", label, w)
		}
		return pyFloat(x), nil
	case "si":
		n, err := siInt(w)
		if err != nil {
			return "", usage("argument %s: invalid human_readable_int value: '%s'", label, w)
		}
		return strconv.Itoa(n), nil
	case "json":
		if !json.Valid([]byte(w)) {
			return "", usage("argument %s: invalid loads value: '%s'", label, w)
		}
	}
	return pyString(w), nil
}

var errNumber = errors.New("not a number")

// siInt reads 4096, 150k, 1Ki: SI suffixes may have decimals, IEC ones not.
func siInt(w string) (int, error) {
	mult := 1.0
	for _, u := range []struct {
		suffix string
		mult   float64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}} {
		if rest, ok := strings.CutSuffix(w, u.suffix); ok {
			if len(u.suffix) == 2 && strings.Contains(rest, ".") {
				return 0, errNumber
			}
			w, mult = rest, u.mult
			break
		}
	}
	x, err := strconv.ParseFloat(w, 64)
	if err != nil || mult == 1 && strings.ContainsAny(w, ".eE") || math.Abs(x*mult) > 1e15 {
		return 0, errNumber
	}
	return int(x * mult), nil
}

// Python returns an attribute's value as the server_args line prints it.
func (a *Args) Python(key string) string {
	if v, ok := a.given[key]; ok {
		return v
	}
	for _, f := range a.d.flags().rows {
		if f.key == key {
			return f.res
		}
	}
	return "None"
}

// Text reads an attribute, as Int, Float and Bool do; absent and None are zero values.
func (a *Args) Text(key string) string {
	v := a.Python(key)
	if v == "None" {
		return ""
	}
	return unquote(v)
}

// Int reads a whole number.
func (a *Args) Int(key string) int { n, _ := strconv.Atoi(a.Text(key)); return n }

// Float reads a number.
func (a *Args) Float(key string) float64 { x, _ := strconv.ParseFloat(a.Text(key), 64); return x }

// Bool reads a switch.
func (a *Args) Bool(key string) bool { return a.Python(key) == "True" }
