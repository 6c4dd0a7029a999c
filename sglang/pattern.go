package sglang

import (
	"bytes"
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
	literal  []byte // starts or has
	second   []byte // also
}

// kindException is the kind of the rows for any exception at all.
const kindException = "traceback_last"

// index is the table prepared for matching.
type index struct {
	starts [256][]*pattern // by first byte of the message
	has    []*pattern
	finder *finder             // of the literals of has
	kinds  map[string]*pattern // first row of each kind
}

var table = buildIndex(patterns)

func buildIndex(rows []pattern) *index {
	idx := &index{kinds: make(map[string]*pattern, len(rows))}
	for i := range rows {
		p := &rows[i]
		p.literal, p.second = []byte(p.starts+p.has), []byte(p.also)
		if p.re != "" {
			p.compiled = regexp.MustCompile(p.re)
			p.groups = p.compiled.SubexpNames()
		}
		if p.starts != "" {
			idx.starts[p.starts[0]] = append(idx.starts[p.starts[0]], p)
		} else {
			idx.has = append(idx.has, p)
		}
		if idx.kinds[p.kind] == nil {
			idx.kinds[p.kind] = p
		}
	}
	literals := make([]string, len(idx.has))
	for i, p := range idx.has {
		literals[i] = p.has
	}
	idx.finder = newFinder(literals...)
	return idx
}

// match finds the first row that fits a message and returns the event's kind, numbers and words. A
// message that fits none costs no memory.
func (idx *index) match(msg []byte, prefixed bool) (*pattern, Event) {
	if len(msg) == 0 {
		return nil, Event{}
	}
	for _, p := range idx.starts[msg[0]] {
		if bytes.HasPrefix(msg, p.literal) {
			if ev, ok := p.apply(msg); ok {
				return p, ev
			}
		}
	}
	if prefixed && !looksLikeException(msg) && !isNCCL(msg) {
		return nil, Event{}
	}
	set, any := idx.finder.find(msg)
	if !any || isEcho(msg) {
		return nil, Event{}
	}
	for i := set.next(); i >= 0; i = set.next() {
		if ev, ok := idx.has[i].apply(msg); ok {
			return idx.has[i], ev
		}
	}
	return nil, Event{}
}

func (p *pattern) apply(msg []byte) (Event, bool) {
	ev := Event{Kind: p.kind, Rank: -1, DP: -1, PP: -1}
	if len(p.second) > 0 && !bytes.Contains(msg, p.second) {
		return ev, false
	}
	if p.compiled == nil {
		return ev, true
	}
	if p.kind == kindException && !endsTraceback(msg) {
		return ev, false // its literals are everywhere; this spares the expression
	}
	at := p.compiled.FindSubmatchIndex(msg)
	if at == nil {
		return ev, false
	}
	for i, name := range p.groups {
		if name == "" || at[2*i] < 0 {
			continue
		}
		ev.set(name, string(msg[at[2*i]:at[2*i+1]]))
	}
	return ev, true
}

// set stores one captured group as pattern describes.
func (ev *Event) set(name, text string) {
	if name[0] >= 'A' && name[0] <= 'Z' {
		ev.word(strings.ToLower(name[:1])+name[1:], text)
		return
	}
	if v, ok := printedNumber(text, name); ok {
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

// printedNumber reads "12", "0.5", "448.00 MiB" (converted to the unit name ends in).
func printedNumber(text, name string) (float64, bool) {
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

// isNCCL reports whether msg is NCCL's own: it frames its warnings with a time as SGLang does.
func isNCCL(msg []byte) bool { return bytes.Contains(msg, []byte(" NCCL WARN ")) }

// looksLikeException reports whether msg has the shape "SomeError: text" (with a dotted name).
func looksLikeException(msg []byte) bool {
	const longest = 160
	end := bytes.IndexByte(msg[:min(len(msg), longest)], ':')
	if end < 0 || end+1 < len(msg) && msg[end+1] != ' ' || bytes.ContainsAny(msg[:end], " \t='\"(") {
		return false
	}
	return bytes.HasSuffix(msg[:end], []byte("Error")) || bytes.HasSuffix(msg[:end], []byte("Exception"))
}

// endsTraceback reports whether msg can be the exception that ends an open traceback: a class name
// and its text ("zmq.error.Again: no"), or a class name alone ("KeyboardInterrupt").
func endsTraceback(msg []byte) bool {
	const longest = 160
	name, _, text := bytes.Cut(msg[:min(len(msg), longest)], []byte(": "))
	if !text {
		name = bytes.TrimRight(name, ": ")
	}
	if !isDottedName(name) {
		return false
	}
	class := name[bytes.LastIndexByte(name, '.')+1:]
	if !text {
		return isExceptionName(class)
	}
	return class[0] >= 'A' && class[0] <= 'Z' && !bytes.Equal(class, bytes.ToUpper(class)) || len(class) < len(name)
}

func isExceptionName(class []byte) bool {
	for _, end := range []string{"Error", "Exception", "Interrupt", "Exit"} {
		if bytes.HasSuffix(class, []byte(end)) {
			return true
		}
	}
	return false
}

func isDottedName(name []byte) bool {
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && isDigit(c):
		case i > 0 && i+1 < len(name) && c == '.' && name[i-1] != '.':
		default:
			return false
		}
	}
	return len(name) > 2
}
