package launch

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// Limits that keep a hostile script from growing in memory: a script that doubles a variable sixty
// times ends as an unknown value.
const (
	maxValue  = 8 << 10 // bytes of one variable
	maxReads  = 1 << 20 // bytes of variables read in one script
	maxFields = 4096    // words of one command
)

// variables are a script's variables as far as they are known without running it.
type variables struct {
	set      map[string]expand.Variable
	exported map[string]bool
	empty    map[string]string // variables that are empty only because their source is unknown: what stands for them
	doubt    map[string]int    // set differently in branches nobody can choose between: the line
	overlay  map[string]string // what stands for unknown variables in the word being expanded
	params   []string
	opt      Options
	shared   *shared
}

// shared is what all copies of a script's variables have in common.
type shared struct {
	marks  []string        // source text of what is unknown, by mark
	reads  int             // bytes read so far
	asked  map[string]bool // variables taken from the reader's own environment
	allExp bool            // set -a
}

func newVariables(opt Options) *variables {
	return &variables{
		set: map[string]expand.Variable{}, exported: map[string]bool{}, empty: map[string]string{}, doubt: map[string]int{},
		opt: opt, shared: &shared{asked: map[string]bool{}},
	}
}

func (v *variables) clone() *variables {
	c := *v
	c.set, c.exported, c.empty, c.doubt = maps.Clone(v.set), maps.Clone(v.exported), maps.Clone(v.empty), maps.Clone(v.doubt)
	return &c
}

// take makes v what c is; both are copies of the same script's variables.
func (v *variables) take(c *variables) {
	v.set, v.exported, v.empty, v.doubt, v.params = c.set, c.exported, c.empty, c.doubt, c.params
}

// Unknown pieces travel through expansion as a mark, two private-use characters around a number, so
// that word splitting and quoting do not touch them.
const (
	markStart = '\ue000'
	markEnd   = '\ue001'
)

func (v *variables) mark(source string) string {
	i := slices.Index(v.shared.marks, source)
	if i < 0 {
		i = len(v.shared.marks)
		v.shared.marks = append(v.shared.marks, source)
	}
	return string(markStart) + strconv.Itoa(i) + string(markEnd)
}

func marked(s string) bool { return strings.ContainsRune(s, markStart) }

// unmark puts the source text of unknown pieces back.
func (v *variables) unmark(s string) string {
	if !marked(s) {
		return s
	}
	var b strings.Builder
	for {
		head, rest, ok := strings.Cut(s, string(markStart))
		b.WriteString(head)
		if !ok {
			return b.String()
		}
		number, tail, _ := strings.Cut(rest, string(markEnd))
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(v.shared.marks) {
			b.WriteString(v.shared.marks[i])
		}
		s = tail
	}
}

func text(s string) expand.Variable { return expand.Variable{Set: true, Kind: expand.String, Str: s} }

// list is an array; an empty one must not be nil, or "$@" would be read as one empty word.
func list(s []string) expand.Variable {
	if s == nil {
		s = []string{}
	}
	return expand.Variable{Set: true, Kind: expand.Indexed, List: s}
}

// Get implements expand.Environ.
func (v *variables) Get(name string) expand.Variable {
	if stand, ok := v.overlay[name]; ok {
		return text(stand)
	}
	out := v.known(name)
	v.shared.reads += len(out.Str) + 1
	for _, s := range out.List {
		v.shared.reads += len(s) + 16
	}
	if v.shared.reads > maxReads {
		return expand.Variable{}
	}
	return out
}

func (v *variables) known(name string) expand.Variable {
	if out, ok := v.set[name]; ok {
		return out
	}
	switch name {
	case "@", "*":
		return list(v.params)
	case "#":
		return text(strconv.Itoa(len(v.params)))
	case "0":
		return text(v.opt.Path)
	case "BASH_SOURCE":
		return list([]string{v.opt.Path})
	case "PWD":
		return text(v.dir())
	case "?":
		return text("0")
	}
	if i, err := strconv.Atoi(name); err == nil && i > 0 {
		if i <= len(v.params) {
			return text(v.params[i-1])
		}
		return expand.Variable{}
	}
	if v.opt.Lookup != nil && !pathLike[name] {
		if value, ok := v.opt.Lookup(name); ok && len(value) <= maxValue {
			v.shared.asked[name] = true
			return text(value)
		}
	}
	if pathLike[name] {
		return text("")
	}
	return expand.Variable{}
}

// pathLike variables are extended by scripts; unset, they are empty for all a server cares.
var pathLike = map[string]bool{"LD_LIBRARY_PATH": true, "PYTHONPATH": true, "LD_PRELOAD": true, "CPATH": true, "LIBRARY_PATH": true}

func (v *variables) dir() string {
	if d, ok := v.set["PWD"]; ok {
		return d.Str
	}
	return filepath.Dir(v.opt.Path)
}

// Each implements expand.Environ.
func (v *variables) Each(f func(name string, vr expand.Variable) bool) {
	for name, value := range v.set {
		if !f(name, value) {
			return
		}
	}
}

// Set implements expand.WriteEnviron: ${MODEL:=/models/x} sets variables too.
func (v *variables) Set(name string, value expand.Variable) error {
	size := len(value.Str)
	for _, s := range value.List {
		size += len(s) + 1
	}
	if size > maxValue {
		value = text(v.mark("${" + name + "}"))
	}
	if value.Kind == expand.KeepValue {
		return nil
	}
	delete(v.empty, name)
	delete(v.doubt, name)
	if !value.IsSet() {
		delete(v.set, name)
		return nil
	}
	v.set[name] = value
	if v.shared.allExp {
		v.exported[name] = true
	}
	return nil
}

// environ are the variables the script exports, as text.
func (v *variables) environ() map[string]string {
	env := map[string]string{}
	for name := range v.exported {
		if value, ok := v.set[name]; ok && value.Kind == expand.String {
			env[name] = v.unmark(value.Str)
		}
	}
	return env
}

// merge takes the variables of branches nobody can choose between: the first branch wins, and where
// they differ the line is remembered.
func (v *variables) merge(branches []*variables, line int) {
	if len(branches) == 0 {
		return
	}
	first := branches[0]
	for _, other := range branches[1:] {
		for name, value := range other.set {
			mine, ok := first.set[name]
			if !ok {
				first.set[name] = value
				first.exported[name] = other.exported[name] || first.exported[name]
			}
			if !ok || fmt.Sprint(mine) != fmt.Sprint(value) {
				first.doubt[name] = line
			}
		}
	}
	v.take(first)
}
