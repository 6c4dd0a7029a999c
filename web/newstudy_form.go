package web

import (
	"slices"
	"strconv"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner"
)

// A new study's text as a form. The text is the study; a field shows one place of it, and a changed field changes that place and
// not a byte beside it, so that comments and keys without a field stay.

// studyForm is the form of a text.
type studyForm struct {
	Unread bool // the text cannot be shown as a form
	Groups []fieldGroup
	Knobs  []knobField // with an empty one to add another
	Others int         // knobs that are only in the text
	Known  []string    // names of knobs worth a place
}

// fieldGroup is some fields under a heading; the knobs stand behind the group that says so.
type fieldGroup struct {
	Title  string
	Fields []studyField
	Knobs  bool
}

// studyField is a field for one place of the text.
type studyField struct {
	ID      string // of its input, and its name in the form
	Label   string
	Hint    string
	Kind    fieldKind
	Options []fieldOption
	path    []string
	Value   string
	Away    bool     // what stands there is not for a form
	Wrong   []string // what check says of it
}

type fieldKind string

const (
	fieldWord   fieldKind = "word"
	fieldList   fieldKind = "list"
	fieldFlags  fieldKind = "flags" // key=value, one a line
	fieldChoice fieldKind = "choice"
)

type fieldOption struct{ Value, Text string }

// knobField is a row for one knob of the space.
type knobField struct {
	ID                           string
	Name, Min, Max, Step, Values string
	Hint                         string
	Away                         bool
	Wrong                        []string
	unnamed                      bool // the cells are not in the text, for want of a name
}

// Was is what the text held of the row when the page was made, as the form carries it.
func (k knobField) Was() string {
	if k.unnamed {
		k = knobField{}
	}
	return strings.Join([]string{k.Name, k.Min, k.Max, k.Step, k.Values}, "\t")
}

// knobCells are the names of a row's inputs behind its ID.
var knobCells = []string{"name", "min", "max", "step", "values"}

// Bounds of the form.
const (
	mostKnobs   = 24   // rows
	mostWrong   = 3    // mistakes beside one field
	mostOfField = 8192 // bytes of a field that was changed
	mostRead    = 2e6  // bytes of text that the changes of one form may be tried on: each is made on a text of its own
)

const tpSize = "tp-size"

// studyFields are the fields in the order of the page, without values.
func studyFields() []fieldGroup {
	words := func(first string, words ...string) []fieldOption {
		options := []fieldOption{{"", first}}
		for _, w := range words {
			options = append(options, fieldOption{w, w})
		}
		return options
	}
	field := func(label, hint string, kind fieldKind, path ...string) studyField {
		return studyField{ID: strings.Join(path, "."), Label: label, Hint: hint, Kind: kind, path: path}
	}
	choice := func(label, hint string, options []fieldOption, path ...string) studyField {
		f := field(label, hint, fieldChoice, path...)
		f.Options = options
		return f
	}
	return []fieldGroup{
		{Title: "Study", Fields: []studyField{
			field("Name", "letters, digits, . _ -", fieldWord, "study"),
		}},
		{Title: "Server", Fields: []studyField{
			field("Model", "the folder or name that SGLang is given", fieldWord, "server", "model"),
			field("tp-size", "GPUs that share the model", fieldWord, "server", "flags", tpSize),
			field("Other flags of every launch", "flag=value by SGLang's names, one a line", fieldFlags, "server", "flags"),
			field("Baseline: flags that run today", "flag=value, one a line", fieldFlags, "server", "baseline"),
		}},
		{Title: "Host", Fields: []studyField{
			choice("Kind", "where the server runs", words("not set: local", tuner.HostLocal, tuner.HostSSH, tuner.HostSlurm, tuner.HostSimulated), "host", "kind"),
			field("Address", "for ssh: what you write after ssh", fieldWord, "host", "address"),
			choice("Profile", "for simulated: the machine", words("not set", tuner.Profiles...), "host", "profile"),
			field("RAM for host pools", "all ranks together, like 400GB, or 50GB/rank", fieldWord, "host", "ram_budget"),
		}},
		{Title: "Knobs to search", Knobs: true},
		{Title: "Workload", Fields: []studyField{
			field("File", "your requests, beside the study file", fieldWord, "workload", "file"),
			field("Clients at once", "a load level each, like 80, 120", fieldList, "workload", "load", "concurrency"),
		}},
		{Title: "Budget: whichever comes first", Fields: []studyField{
			field("Trials", "at most", fieldWord, "budget", "trials"),
			field("Time", "with a unit, like 9h", fieldWord, "budget", "wall"),
			field("Until", "the host's clock, like 07:00", fieldWord, "budget", "until"),
		}},
		{Title: "Search and proof", Fields: []studyField{
			choice("Sampler", "what proposes the next trial", words("not set: physics", "physics", "tpe", "random", "grid"), "sampler"),
			field("Confirmation launches", "each side: auto, or 1 to 5", fieldWord, "confirm", "launches"),
		}},
	}
}

// formOf shows a text as a form, with what check says beside the fields that it concerns.
func formOf(text string, mistakes []tuner.Mistake) studyForm {
	if unread(mistakes) && hasContent(text) {
		return studyForm{Unread: true}
	}
	root, ok := readYAML(text)
	if !ok {
		return studyForm{Unread: true}
	}
	f := studyForm{Groups: studyFields()}
	for g := range f.Groups {
		for i := range f.Groups[g].Fields {
			f.Groups[g].Fields[i].read(root)
		}
	}
	if space := root.at("space"); space != nil {
		for _, k := range space.keys {
			if len(f.Knobs) == mostKnobs {
				f.Others = len(space.keys) - mostKnobs
				break
			}
			f.Knobs = append(f.Knobs, knobOf(k))
		}
	}
	if len(f.Knobs) < mostKnobs {
		f.Knobs = append(f.Knobs, knobField{})
	}
	for i := range f.Knobs {
		f.Knobs[i].ID = "knob." + strconv.Itoa(i)
	}
	for _, k := range sglang.Knobs() {
		if k.Tunable {
			f.Known = append(f.Known, k.Name)
		}
	}
	for _, m := range mistakes {
		path := strings.Split(between(m.Text, "`"), ".")
		if m.Line > 0 {
			path = root.pathAt(m.Line, m.Col)
		}
		if wrong := f.owner(path); wrong != nil && len(*wrong) < mostWrong {
			*wrong = append(*wrong, m.Text)
		}
	}
	return f
}

// unread reports whether nothing of the text was understood, so that no library but the guarded reader of study files may see it.
func unread(mistakes []tuner.Mistake) bool { return len(mistakes) > 0 && mistakes[0].Unread }

// read takes a field's value out of the text.
func (f *studyField) read(root *yamlNode) {
	n := root.at(f.path...)
	if n == nil || n.kind == yamlNull {
		return
	}
	ok := true
	switch f.Kind {
	case fieldFlags:
		f.Value, ok = n.flags()
	case fieldList:
		f.Value, ok = n.listed()
	default:
		f.Value, ok = n.word()
	}
	f.Away = !ok
	known := func(o fieldOption) bool { return o.Value == f.Value }
	if f.Kind == fieldChoice && !slices.ContainsFunc(f.Options, known) {
		f.Options = append(f.Options, fieldOption{f.Value, f.Value})
	}
}

// knobOf reads a row out of the space.
func knobOf(key yamlKey) knobField {
	k, n, ok := knobField{Name: key.name}, key.value, true
	if known, found := sglang.Lookup(key.name); found {
		k.Hint = known.Meaning
		if known.Unit != "" {
			k.Hint += ", in " + known.Unit
		}
	}
	cell := func(name string) string {
		v := n.at(name)
		if v == nil || v.kind == yamlNull {
			return ""
		}
		read := v.word
		if name == "values" {
			read = v.listed
		}
		text, readable := read()
		ok = ok && readable
		return text
	}
	switch n.kind {
	case yamlNull:
	case yamlMapping:
		k.Min, k.Max, k.Step, k.Values = cell("min"), cell("max"), cell("step"), cell("values")
	default:
		k.Values, ok = n.listed()
	}
	k.Away = !ok || strings.ContainsAny(key.name, "\t\n")
	return k
}

// owner is where mistakes about a place of the text are told: the field whose place holds it, else the first one inside it.
func (f *studyForm) owner(path []string) *[]string {
	if len(path) == 0 {
		return nil
	}
	if path[0] == "space" && len(f.Knobs) > 0 {
		last := len(f.Knobs) - 1
		if len(path) == 1 {
			return &f.Knobs[last].Wrong
		}
		if i := slices.IndexFunc(f.Knobs, func(k knobField) bool { return k.Name == path[1] && k.Name != "" }); i >= 0 {
			return &f.Knobs[i].Wrong
		}
		return nil
	}
	var best, inside *studyField
	for g := range f.Groups {
		for i := range f.Groups[g].Fields {
			one := &f.Groups[g].Fields[i]
			switch {
			case isUnder(path, one.path) && (best == nil || len(one.path) > len(best.path)):
				best = one
			case inside == nil && isUnder(one.path, path):
				inside = one
			}
		}
	}
	if best == nil {
		best = inside
	}
	if best == nil {
		return nil
	}
	return &best.Wrong
}

// refusal is a change of the form that did not get into the text.
type refusal struct {
	id    string
	cells []string // of a row whose knob has no name yet
}

// refuse says beside the fields that they did not change the text.
func (f *studyForm) refuse(refused []refusal) {
	const words = "the form cannot change what stands here; change it in the text"
	for _, r := range refused {
		for i := range f.Knobs {
			switch k := &f.Knobs[i]; {
			case k.ID != r.id:
			case r.cells == nil:
				k.Wrong = append(k.Wrong, words)
			default:
				k.unnamed, k.Min, k.Max, k.Step, k.Values = true, r.cells[1], r.cells[2], r.cells[3], r.cells[4]
				k.Wrong = append(k.Wrong, "these values have no knob; write its name")
			}
		}
		for g := range f.Groups {
			for i := range f.Groups[g].Fields {
				if one := &f.Groups[g].Fields[i]; one.ID == r.id {
					one.Wrong = append(one.Wrong, words)
				}
			}
		}
	}
}

func isUnder(path, above []string) bool {
	return len(path) >= len(above) && slices.Equal(path[:len(above)], above)
}

// between is what stands between the first two marks, "" without them.
func between(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	word, _, _ := strings.Cut(rest, mark)
	return word
}
