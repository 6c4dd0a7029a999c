package sglang

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Flag is one option an installed server's --help lists.
type Flag struct {
	Name       string   // without dashes, as spelt
	Choices    []string // nil when any value goes
	TakesValue bool
	Deprecated bool // its help text starts with "Deprecated"
}

// Flags are the options of one installed server, by every name they have.
type Flags map[string]Flag

var (
	optionName    = regexp.MustCompile(`--([A-Za-z0-9][\w-]*)`)
	optionChoices = regexp.MustCompile(`\{([^}]*)\}`)
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
	var current []string
	for _, line := range strings.Split(body, "\n") {
		if strings.HasPrefix(line, "  -") {
			current = flags.addOption(line)
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(line), "Deprecated") {
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
		flag.Name = name
		f[name] = flag
	}
	if strings.HasPrefix(strings.TrimSpace(help), "Deprecated") {
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
