package sglang

import (
	"regexp"
	"strconv"
	"strings"
)

// level says what an event means for the server's life.
type level int

const (
	progress level = iota // normal life
	note                  // worth showing, not fatal
	fatal                 // the server, or a rank of it, dies of this
)

// pattern is one row of the table of log lines: a cheap literal first, then the expression that
// takes the line apart.
//
// Exactly one of starts and has is set. starts must be the first words of the message, which also
// keeps quoted user text out. has may stand anywhere, but only in lines that SGLang's logger did
// not frame (exceptions, argparse, the kernel) or that look like a Python exception: a logger's
// line that merely mentions an error is not one.
//
// In re, a named group is a number in Values; a name that starts with a capital letter is a word in
// Words (its first letter lowered). A number with a binary unit ("1.75 GiB") is converted to the
// unit its name ends in (_mib, _gib). An empty re takes nothing apart.
type pattern struct {
	kind   string
	starts string
	has    string
	also   string // second literal that must be in the message: spares the expression
	re     string
	phase  Phase // reaching this line means at least this phase; "" says nothing
	level  level

	compiled *regexp.Regexp
	groups   []string
}

// index is the table prepared for matching.
type index struct {
	starts [256][]*pattern // by first byte of the message
	has    []*pattern
}

var table = buildIndex(patterns)

func buildIndex(rows []pattern) *index {
	idx := &index{}
	for i := range rows {
		p := &rows[i]
		if p.re != "" {
			p.compiled = regexp.MustCompile(p.re)
			p.groups = p.compiled.SubexpNames()
		}
		if p.starts != "" {
			idx.starts[p.starts[0]] = append(idx.starts[p.starts[0]], p)
		} else {
			idx.has = append(idx.has, p)
		}
	}
	return idx
}

// match finds the first row that fits a message and returns the event's kind, numbers and words.
func (idx *index) match(msg string, prefixed bool) (*pattern, Event) {
	if msg == "" {
		return nil, Event{}
	}
	for _, p := range idx.starts[msg[0]] {
		if strings.HasPrefix(msg, p.starts) {
			if ev, ok := p.apply(msg); ok {
				return p, ev
			}
		}
	}
	if prefixed && !looksLikeException(msg) || isEcho(msg) {
		return nil, Event{}
	}
	for _, p := range idx.has {
		if strings.Contains(msg, p.has) {
			if ev, ok := p.apply(msg); ok {
				return p, ev
			}
		}
	}
	return nil, Event{}
}

func (p *pattern) apply(msg string) (Event, bool) {
	ev := Event{Kind: p.kind, Rank: -1}
	if p.also != "" && !strings.Contains(msg, p.also) {
		return ev, false
	}
	if p.compiled == nil {
		return ev, true
	}
	at := p.compiled.FindStringSubmatchIndex(msg)
	if at == nil {
		return ev, false
	}
	for i, name := range p.groups {
		if name == "" || at[2*i] < 0 {
			continue
		}
		ev.set(name, msg[at[2*i]:at[2*i+1]])
	}
	return ev, true
}

// set stores one captured group as pattern describes.
func (ev *Event) set(name, text string) {
	if name[0] >= 'A' && name[0] <= 'Z' {
		ev.word(strings.ToLower(name[:1])+name[1:], strings.Clone(text))
		return
	}
	if v, ok := parseNumber(text, name); ok {
		if ev.Values == nil {
			ev.Values = make(map[string]float64, 8)
		}
		ev.Values[name] = v
	}
}

func (ev *Event) word(name, text string) {
	if text == "" {
		return
	}
	if ev.Words == nil {
		ev.Words = make(map[string]string, 2)
	}
	ev.Words[name] = text
}

// parseNumber reads "12", "0.5", "448.00 MiB" (converted to the unit name ends in).
func parseNumber(text, name string) (float64, bool) {
	text = strings.TrimRight(text, ".,")
	number, unit, hasUnit := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	if hasUnit {
		v *= map[string]float64{"KiB": 1.0 / 1024, "MiB": 1, "GiB": 1024, "TiB": 1024 * 1024}[unit] // in MiB
		if strings.HasSuffix(name, "_gib") {
			v /= 1024
		}
	}
	return v, true
}

// isEcho reports whether a line repeats what a client sent (--log-requests and debug dumps).
// Failure words in it mean nothing.
func isEcho(msg string) bool {
	if msg[0] == '{' { // --log-requests-format json
		return true
	}
	for _, sign := range echoes {
		if strings.Contains(msg, sign) {
			return true
		}
	}
	return false
}

var echoes = []string{
	"Receive: obj=", "Receive OpenAI", "Finish: obj=", "ReqInput(", "Req(rid=", "text='", `text="`, "origin_input_text",
	"'messages': ", `"messages": `, "prompt='", `prompt="`, `"prompt": `, `"text": `, "'text': ",
}

// looksLikeException reports whether msg has the shape "SomeError: text" (with a dotted name).
func looksLikeException(msg string) bool {
	name, _, ok := strings.Cut(msg, ": ")
	if !ok || strings.ContainsAny(name, " \t='\"(") {
		return false
	}
	return strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception")
}
