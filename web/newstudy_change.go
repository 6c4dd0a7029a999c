package web

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fillIn writes into the text what was changed in the form since the page was made, and names the fields that it could not change.
// The form carries what each field held then (was.ID), so a text that was changed meanwhile keeps its changes.
func fillIn(text string, sent url.Values) (changed string, refused []refusal) {
	c := &formChange{text: text, sent: sent}
	for _, g := range studyFields() {
		for _, f := range g.Fields {
			c.field(f)
		}
		for i := 0; g.Knobs && i < mostKnobs; i++ {
			c.knob("knob." + strconv.Itoa(i))
		}
	}
	return c.text, c.refused
}

// formChange is a text on its way to what a form makes of it.
type formChange struct {
	text    string
	sent    url.Values
	read    int // bytes of text that changes were tried on
	refused []refusal
}

// try takes over a change of the text, or notes that it was refused.
func (c *formChange) try(id string, write func() (string, bool)) {
	if c.read += len(c.text); c.read < mostRead {
		if next, ok := write(); ok {
			c.text = next
			return
		}
	}
	if n := len(c.refused); n == 0 || c.refused[n-1].id != id {
		c.refused = append(c.refused, refusal{id: id})
	}
}

func (c *formChange) write(f studyField, value string, below ...string) {
	c.try(f.ID, func() (string, bool) { return writeYAML(c.text, slices.Concat(f.path, below), value) })
}

// cell is what an input holds, or held.
func (c *formChange) cell(name string) string {
	return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(c.sent.Get(name), "\r\n", "\n"), "\uFFFD"))
}

func (c *formChange) field(f studyField) {
	now, was := c.cell(f.ID), c.cell("was."+f.ID)
	switch {
	case !c.sent.Has(f.ID) || now == was:
	case len(now)+len(was) > mostOfField:
		c.refused = append(c.refused, refusal{id: f.ID})
	case f.Kind == fieldFlags:
		before, after := flagLines(was), flagLines(now)
		for _, old := range before {
			if !slices.ContainsFunc(after, old.same) {
				c.write(f, "", old.name)
			}
		}
		for _, flag := range after {
			if !slices.Contains(before, flag) {
				c.write(f, flagYAML(flag.value), flag.name)
			}
		}
	case f.Kind == fieldList && now != "":
		c.write(f, listYAML(now))
	default:
		c.write(f, wordYAML(now))
	}
}

func (c *formChange) knob(id string) {
	var now, was [5]string
	before := strings.Split(c.sent.Get("was."+id), "\t")
	long := 0
	for i, name := range knobCells {
		now[i] = c.cell(id + "." + name)
		if i < len(before) {
			was[i] = strings.TrimSpace(before[i])
		}
		long += len(now[i]) + len(was[i])
	}
	switch {
	case !c.sent.Has(id+".name") || now == was:
	case long > mostOfField:
		c.refused = append(c.refused, refusal{id: id})
	case now[0] == "" && was[0] == "":
		c.refused = append(c.refused, refusal{id: id, cells: now[:]})
	default:
		c.try(id, func() (string, bool) { return changeKnob(c.text, was, now) })
	}
}

// changeKnob writes a row into the text.
func changeKnob(text string, was, now [5]string) (string, bool) {
	name, path := now[0], []string{"space", now[0]}
	switch {
	case name == "":
		return writeYAML(text, []string{"space", was[0]}, "")
	case was[0] != "" && name != was[0]:
		renamed, ok := renameYAML(text, []string{"space", was[0]}, name)
		if !ok {
			return text, false
		}
		text = renamed
	}
	if was[0] != "" && [4]string(now[1:]) == [4]string(was[1:]) {
		return text, true
	}
	value := func(c int) string {
		switch {
		case now[c] == "":
			return ""
		case knobCells[c] == "values":
			return listYAML(now[c])
		}
		return wordYAML(now[c])
	}
	root, ok := readYAML(text)
	if !ok || was[0] == "" && root.at(path...) != nil { // a knob that is there already
		return text, false
	}
	if n := root.at(path...); n != nil && n.kind == yamlMapping && now[1]+now[2]+now[3]+now[4] != "" { // each cell where it stands
		for _, gone := range []bool{false, true} { // what goes goes last: the knob is never empty
			for c := 1; c < len(now); c++ {
				if now[c] == was[c] || (now[c] == "") != gone {
					continue
				}
				if text, ok = writeYAML(text, append(slices.Clone(path), knobCells[c]), value(c)); !ok {
					return text, false
				}
			}
		}
		return text, true
	}
	if now[1]+now[2]+now[3] == "" {
		return writeYAML(text, path, listYAML(now[4]))
	}
	var cells []string
	for c := 1; c < len(now); c++ {
		if now[c] != "" {
			cells = append(cells, knobCells[c]+": "+value(c))
		}
	}
	return writeYAML(text, path, "{"+strings.Join(cells, ", ")+"}")
}

// flagLine is a line of a field of flags.
type flagLine struct{ name, value string }

func (l flagLine) same(other flagLine) bool { return l.name == other.name }

// flagLines takes lines apart: name=value, name value, --name value; a name alone is turned on. Of two lines for a flag the first counts.
func flagLines(text string) []flagLine {
	var out []flagLine
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSpace(line), "-")
		flag := flagLine{line, "true"}
		if at := strings.IndexAny(line, "= "); at >= 0 {
			flag = flagLine{line[:at], strings.TrimSpace(line[at+1:])}
		}
		if flag.name != "" && !slices.ContainsFunc(out, flag.same) {
			out = append(out, flag)
		}
	}
	return out
}

// plainWord is what YAML reads as it stands, within brackets too.
var plainWord = regexp.MustCompile(`^-?[A-Za-z0-9_./][A-Za-z0-9_./+@%-]*$`)

// wordYAML spells a single value, "" for none.
func wordYAML(word string) string {
	if word == "" || plainWord.MatchString(word) && !strings.EqualFold(word, "null") {
		return word
	}
	return strconv.Quote(word)
}

func listYAML(text string) string {
	words := strings.FieldsFunc(strings.Trim(text, "[] "), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
	for i := range words {
		words[i] = wordYAML(words[i])
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// flagYAML spells a flag's value; one in brackets is a list.
func flagYAML(text string) string {
	switch {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		return listYAML(text)
	case text == "":
		return `""`
	}
	return wordYAML(text)
}
