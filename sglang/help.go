package sglang

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Form is what an option makes of the words after it.
type Form string

// Forms of options. FormNothing is an option that a release still knows only to warn of it or to
// refuse it.
const (
	FormBool    Form = "bool"    // bare: present or absent
	FormSwitch  Form = "switch"  // --x or --no-x
	FormConst   Form = "const"   // bare, sets another option
	FormNothing Form = "nothing" // bare, does nothing
	FormText    Form = "str"
	FormInt     Form = "int"
	FormCount   Form = "count" // a whole number, also written 150k or 2M
	FormFloat   Form = "float"
	FormJSON    Form = "json"
)

func (f Form) takesValue() bool {
	return f != FormBool && f != FormSwitch && f != FormConst && f != FormNothing
}

// Flag is one option of a server, by one of its names.
type Flag struct {
	Name       string   // without dashes, as spelt
	Canonical  string   // the name by which sgtune calls the option: hyphenated, the newest release's
	Choices    []string // nil when any value goes
	TakesValue bool
	Deprecated bool // the release warns of it
	Negates    bool // the --no-x of a switch: it sets Canonical to false

	// What only the tables of releases know (FlagsOf); --help does not say it.
	Form     Form
	Many     bool // takes several values
	Optional bool // its value may be left out
	Default  any  // nil = none, or chosen by the server
}

// Flags are the options of one installed server, by every name they have.
type Flags map[string]Flag

var (
	optionName    = regexp.MustCompile(`--([A-Za-z0-9][\w-]*)`)
	optionChoices = regexp.MustCompile(`\{([^}]*)\}`)
	// Help texts begin "Deprecated.", "[Deprecated] Use ...", "NOTE: --x is deprecated", "Removed. Use ...".
	deprecation = regexp.MustCompile(`(?i)^\W*(?:(?:note: *)?--[\w-]+ is )?deprecated\b|^\s*removed\b`)
)

// ParseHelp reads what "python -m sglang.launch_server --help" prints. Text that is no argparse help
// gives an empty result.
func ParseHelp(text string) Flags {
	flags := Flags{}
	_, body, ok := strings.Cut(text, "\noptions:")
	if !ok {
		_, body, ok = strings.Cut(text, "\noptional arguments:") // Python before 3.10
	}
	if !ok {
		return flags
	}
	// `sglang serve --help` prints a second server's help below; its options are not this one's.
	body, _, _ = strings.Cut(body, "\nusage:")
	var current []string
	for _, line := range strings.Split(body, "\n") {
		if strings.HasPrefix(line, "  -") {
			current = flags.addOption(line)
			continue
		}
		if deprecation.MatchString(line) {
			flags.deprecate(current)
		}
		if line != "" && line[0] != ' ' || strings.TrimSpace(line) != "" {
			current = nil // only the first line of a help text can say it
		}
	}
	return flags
}

// addOption reads "  --tp-size N, --tensor-parallel-size N  help text" and returns its names.
func (f Flags) addOption(line string) []string {
	head, help, _ := strings.Cut(strings.TrimSpace(line), "  ")
	flag := Flag{}
	if m := optionChoices.FindStringSubmatch(head); m != nil {
		flag.Choices = strings.Split(m[1], ",")
		head = optionChoices.ReplaceAllString(head, "VALUE")
	}
	var names []string
	for _, part := range strings.Split(head, ", ") {
		m := optionName.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		names = append(names, m[1])
		flag.TakesValue = flag.TakesValue || strings.Contains(part, " ")
	}
	for _, name := range names {
		flag.Name, flag.Canonical = name, newestName(names)
		f[name] = flag
	}
	if deprecation.MatchString(help) {
		f.deprecate(names)
		return nil
	}
	if help != "" {
		return nil
	}
	return names
}

func (f Flags) deprecate(names []string) {
	for _, name := range names {
		flag := f[name]
		flag.Deprecated = true
		f[name] = flag
	}
}

// Has reports whether the server knows a flag (name without dashes).
func (f Flags) Has(name string) bool {
	_, ok := f[name]
	return ok
}

// Accepts reports whether a flag takes a value, as far as its choices say.
func (f Flags) Accepts(name, value string) bool {
	flag, ok := f[name]
	return ok && (flag.Choices == nil || slices.Contains(flag.Choices, value))
}

// Names returns every name in sorted order.
func (f Flags) Names() []string { return slices.Sorted(maps.Keys(f)) }
