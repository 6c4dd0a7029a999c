package tuner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sgtune/sglang"
)

// decoder turns the tree of a study file into a Study and collects every mistake on the way.
type decoder struct {
	file     string // as shown in messages
	dir      string // relative paths start here
	study    *Study
	problems Problems
	knobs    map[string]*node // where each knob of the space stands, for checks across sections
	flags    map[string]field // where each fixed flag stands
	secrets  []*node          // values to mask in Study.Source

	// Where values stand that are only judged together with others; nil when absent.
	objective, launch, loadCap, max *node
	foreign                         bool // the host's kind is not in this version: its other keys are not judged
	remote                          bool // the host is another machine
	inside                          bool // what is read is about a server in a container
	unseen                          bool // no file that the text names is looked at
	containerAt, recoverAt          field
}

// at notes a mistake at a place of the file.
func (d *decoder) at(line, col int, format string, args ...any) {
	d.problems = append(d.problems, Mistake{File: d.file, Line: line, Col: col, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) wrong(n *node, format string, args ...any) { d.at(n.line, n.col, format, args...) }

// missing notes something that stands nowhere in the file.
func (d *decoder) missing(text string) { d.at(0, 0, "%s", text) }

// handler reads one key of a mapping.
type handler func(f field)

// keys reads a mapping by its handlers: unknown keys, doubled keys and values that are no mapping
// are mistakes. It returns which known keys were there, also when only a misspelt one was.
func (d *decoder) keys(n *node, where string, handlers map[string]handler) map[string]bool {
	seen := map[string]bool{}
	if n.kind == null {
		d.wrong(n, "%s is empty; write its keys below it or remove it", quoteWhere(where))
		return seen
	}
	if n.kind != mapping {
		d.wrong(n, "%s must be a mapping of keys to values, not %s; known keys: %s", quoteWhere(where), n.kind, names(handlers))
		return seen
	}
	first := map[string]int{}
	for _, f := range n.fields {
		if line, twice := first[f.name]; twice {
			d.at(f.line, f.col, "%s is given twice, first on line %d; keep one of them", quote(path(where, f.name)), line)
			continue
		}
		first[f.name] = f.line
		if h, ok := handlers[f.name]; ok {
			seen[f.name] = true
			h(f)
			continue
		}
		if section := belongs[f.name]; where == "" && section != "" {
			top, _, _ := strings.Cut(section, ".")
			seen[top] = true // its place is the mistake, not that the section is missing
			d.at(f.line, f.col, "unknown key %s; it goes under %s: write %s", quote(f.name), quote(section), quote(path(section, f.name)))
			continue
		}
		if s := closest(f.name, sortedNames(handlers)); s != "" {
			seen[s] = true // the typo is the mistake, not that the key is missing
			d.at(f.line, f.col, "unknown key %s; did you mean `%s`?", quote(path(where, f.name)), s)
			continue
		}
		d.at(f.line, f.col, "unknown key %s; remove it; known keys: %s", quote(path(where, f.name)), names(handlers))
	}
	return seen
}

// belongs are keys that are easily written at the top of a file, with the section they are part of.
var belongs = map[string]string{
	"notify": "finish", "launch": "finish", "trials": "budget", "wall": "budget", "until": "budget", "model": "server", "command": "server", "flags": "server",
	"baseline": "server", "env": "server", "container": "server", "ready_timeout": "server", "file": "workload", "load": "workload", "concurrency": "workload.load",
	"ram_budget": "host", "profile": "host", "window": "measure", "canary": "measure", "fill": "measure",
}

func path(where, name string) string {
	if where == "" {
		return name
	}
	return where + "." + name
}

func quoteWhere(where string) string {
	if where == "" {
		return "the study file"
	}
	return quote(where)
}

func sortedNames(handlers map[string]handler) []string {
	out := make([]string, 0, len(handlers))
	for name := range handlers {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func names(handlers map[string]handler) string { return strings.Join(sortedNames(handlers), ", ") }

// word reads a single value as text; what is a number or a boolean in YAML stays as written.
func (d *decoder) word(f field, where, example string) (string, bool) {
	if f.value.kind != scalar || strings.TrimSpace(f.value.text) == "" {
		d.wrong(f.value, "%s must be a single value, not %s; write one like %s", quote(where), describe(f.value), example)
		return "", false
	}
	return f.value.text, true
}

func describe(n *node) string {
	if n.kind == scalar {
		return "empty"
	}
	return string(n.kind)
}

// choice reads one of a closed list of words.
func (d *decoder) choice(f field, where string, allowed ...string) (string, bool) {
	w, ok := d.word(f, where, allowed[0])
	if !ok || slices.Contains(allowed, w) {
		return w, ok
	}
	if s := closest(w, allowed); s != "" {
		d.wrong(f.value, "%s cannot be %s; did you mean `%s`?", quote(where), quote(w), s)
	} else {
		d.wrong(f.value, "%s cannot be %s; write one of: %s", quote(where), quote(w), strings.Join(allowed, ", "))
	}
	return "", false
}

func (d *decoder) duration(f field, where string) (time.Duration, bool) {
	w, ok := d.word(f, where, "90s")
	if !ok {
		return 0, false
	}
	v, err := ParseDuration(w)
	if err != nil {
		d.wrong(f.value, "%s: %v", where, err)
	}
	return v, err == nil
}

// positive reads a duration above 0.
func (d *decoder) positive(f field, where string) (time.Duration, bool) {
	v, ok := d.duration(f, where)
	if ok && v == 0 {
		d.wrong(f.value, "%s is 0; write a duration above 0, like 90s", quote(where))
		return 0, false
	}
	return v, ok
}

func (d *decoder) size(f field, where string) (float64, bool) {
	w, ok := d.word(f, where, "400GB")
	if !ok {
		return 0, false
	}
	v, err := ParseSize(w)
	if err == nil && v == 0 {
		err = fmt.Errorf("it is 0; write a size above 0, like 400GB")
	}
	if err != nil {
		d.wrong(f.value, "%s: %v", where, err)
	}
	return v, err == nil
}

// number reads a finite number.
func (d *decoder) number(f field, where, example string) (float64, bool) {
	v, ok := f.value.value.(float64)
	if f.value.kind != scalar || !ok {
		d.wrong(f.value, "%s must be a number, not %s; write one like %s", quote(where), found(f.value), example)
		return 0, false
	}
	return v, true
}

// whole reads a whole number between low and high.
func (d *decoder) whole(f field, where string, low, high int) (int, bool) {
	v, ok := d.number(f, where, fmt.Sprint(max(low, 1)))
	if !ok {
		return 0, false
	}
	switch {
	case v < 0 && low >= 0:
		d.wrong(f.value, "%s is negative; write a whole number from %d to %d", quote(where), low, high)
	case v != math.Trunc(v) || v < float64(low) || v > float64(high):
		d.wrong(f.value, "%s cannot be %s; write a whole number from %d to %d", quote(where), quote(f.value.text), low, high)
	default:
		return int(v), true
	}
	return 0, false
}

// found says what stands in place of what was wanted.
func found(n *node) string {
	if n.kind == scalar {
		return quote(n.text)
	}
	return string(n.kind)
}

// words reads a list of words, each a single value. {port} without quotes is read as what it means.
func (d *decoder) words(f field, where, example string) ([]string, bool) {
	if f.value.kind != list || len(f.value.items) == 0 {
		d.wrong(f.value, "%s must be a list of words, not %s; write it like %s", quote(where), found(f.value), example)
		return nil, false
	}
	var out []string
	for _, item := range f.value.items {
		switch {
		case item.kind == scalar:
			out = append(out, item.text)
		case item.kind == mapping && len(item.fields) == 1 && item.fields[0].name == "port" && item.fields[0].value.kind == null:
			out = append(out, "{port}")
		default:
			d.wrong(item, "%s holds %s; every word must be a single value, in quotes where YAML needs them", quote(where), item.kind)
			return nil, false
		}
	}
	return out, true
}

// value reads one knob value: a number, a word, a boolean.
func (d *decoder) value(n *node, where string) (any, bool) {
	if n.kind != scalar || n.value == nil || n.value == "" {
		d.wrong(n, "%s must be a number, a word or true/false, not %s; write SGLang's own value", quote(where), describe(n))
		return nil, false
	}
	return n.value, true
}

// config reads a mapping of flags to values; a value may be a list.
func (d *decoder) config(f field, where string, each func(name string, f field)) sglang.Config {
	c := sglang.Config{}
	if f.value.kind != mapping {
		d.wrong(f.value, "%s must be a mapping of SGLang flags to values, not %s; write it like {mem-fraction-static: 0.85}", quote(where), found(f.value))
		return c
	}
	handlers := map[string]handler{}
	for _, g := range f.value.fields {
		handlers[g.name] = func(g field) {
			name, ok := d.knobName(g, where, false)
			if !ok {
				return
			}
			v, ok := d.flagValue(g, path(where, name))
			if !ok || !d.knobValue(g.value, name, v) {
				return
			}
			if _, twice := c[name]; twice {
				d.at(g.line, g.col, "%s is given twice under two names; keep one of them", quote(path(where, name)))
				return
			}
			c[name] = v
			each(name, g)
		}
	}
	d.keys(f.value, where, handlers)
	return c
}

func (d *decoder) flagValue(g field, where string) (any, bool) {
	if g.value.kind != list {
		return d.value(g.value, where)
	}
	var out []any
	for _, item := range g.value.items {
		v, ok := d.value(item, where)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		d.wrong(g.value, "%s is an empty list; write its values or remove it", quote(where))
	}
	return out, len(out) > 0
}
