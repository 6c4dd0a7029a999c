package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// layout is how a file is read: what its rows are and how they stand in it.
type layout struct {
	name   string
	format format
	parse  parser
	array  bool   // elements of a JSON array, otherwise one row a line
	key    string // of the object the array is in, "" when the array is the text
	header bool   // the first line is no row
}

// rows reads the file from its first row on.
func (l *layout) rows(b *fileBytes) (rowReader, error) {
	if l.array {
		a := newArrayRows(b.section(0, b.size), 0, 1, b.buffer())
		_, err := a.enter(l.key)
		return a, err
	}
	lines := newLineRows(b.section(0, b.size), 0, 0, b.buffer())
	if l.header {
		_, err := lines.next()
		return lines, err
	}
	return lines, nil
}

// again reads the rows whose texts lie in [from, to).
func (l *layout) again(b *fileBytes, from, to int64) rowReader {
	buffer := int(min(to-from, 64<<10))
	if l.array {
		return newArrayRows(b.section(from, to), from, 1, buffer)
	}
	return newLineRows(b.section(from, to), from, 0, buffer)
}

// buffer is how many bytes are read at once.
func (b *fileBytes) buffer() int { return int(min(b.size, 256<<10)) }

// sample is what the first rows of a JSON file look like: detection goes by it.
type sample struct {
	keys   map[string]json.RawMessage // of all the rows looked at, each with its first value
	array  bool                       // the rows stand in an array
	arrays bool                       // the rows are arrays themselves
	line   int                        // of the first row
}

func (s *sample) has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := s.keys[k]; !ok {
			return false
		}
	}
	return true
}

const (
	sampleRows  = 100
	sampleBytes = 1 << 20
)

// detectLayout looks at the start of a file. said is the name of the format, "" for any.
func detectLayout(b *fileBytes, said string) (*layout, error) {
	if said != "" && !slices.ContainsFunc(formats(), func(f format) bool { return f.name == said }) {
		return nil, fmt.Errorf("%s: no workload format is called %q; known are %s", b.path, said, formatNames())
	}
	first, err := newLineRows(b.section(0, b.size), 0, 0, b.buffer()).next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: is empty; a workload needs at least one row", b.path)
	}
	if err != nil {
		return nil, b.readError(first.line, err)
	}
	if first.text[0] != '{' && first.text[0] != '[' {
		if name, parse, ok := csvHeader(first.text, said); ok {
			return csvLayout(name, parse), nil
		}
	}
	l := &layout{}
	if l.array, l.key, err = arrayIn(b, first.text); err != nil {
		return nil, err
	}
	s, err := look(b, l)
	if err != nil {
		return nil, err
	}
	if s == nil && !l.array && (strings.Contains(string(first.text), ",") || onlyCSV(said)) {
		return nil, fmt.Errorf("%s:%d: %w", b.path, first.line, csvProblem(first.text))
	}
	return l, l.choose(b.path, s, said)
}

func csvLayout(name string, parse parser) *layout {
	i := slices.IndexFunc(formats(), func(f format) bool { return f.csv && f.name == name })
	return &layout{name: name, format: formats()[i], parse: parse, header: true}
}

func onlyCSV(name string) bool {
	return name != "" && !slices.ContainsFunc(formats(), func(f format) bool { return !f.csv && f.name == name })
}

// arrayIn reports whether the rows are the elements of an array: of the one the text is, or of the list
// of lists under "conversations" of the one object it is.
func arrayIn(b *fileBytes, firstLine []byte) (array bool, key string, err error) {
	switch firstLine[0] {
	case '[':
		return true, "", nil
	case '{':
		const list = "conversations"
		a := newArrayRows(b.section(0, min(b.size, maxRowBytes)), 0, 1, b.buffer())
		ok, err := a.enter(list)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errTooLong) {
			return false, "", b.readError(a.line, err)
		}
		if err != nil || !ok {
			return false, "", nil //nolint:nilerr // a text that ends or breaks before such a list has rows of another kind
		}
		if c, err := a.token(); err == nil && c == '[' {
			return true, list, nil
		}
	}
	return false, "", nil
}

// look takes the sample of a JSON file; nil when no row of it is JSON.
func look(b *fileBytes, l *layout) (*sample, error) {
	rows, err := l.rows(b)
	if err != nil {
		return nil, b.readError(1, err)
	}
	var s *sample
	for n := 0; n < sampleRows; n++ {
		row, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, b.readError(row.line, err)
		}
		if s == nil {
			n = 0 // broken rows before the first good one decide nothing
		} else if row.offset > sampleBytes {
			break
		}
		var keys map[string]json.RawMessage
		list := row.text[0] == '[' && l.array && json.Valid(row.text)
		if !list && json.Unmarshal(row.text, &keys) != nil || keys == nil && !list {
			continue
		}
		if s == nil {
			s = &sample{keys: map[string]json.RawMessage{}, array: l.array, arrays: list, line: row.line}
		}
		for key, value := range keys {
			if _, there := s.keys[key]; !there {
				s.keys[key] = value
			}
		}
	}
	return s, nil
}

// choose sets the format: the one said, else the first that the sample matches.
func (l *layout) choose(path string, s *sample, said string) error {
	for _, f := range formats() {
		if f.csv || said != "" && f.name != said || said == "" && (s == nil || !f.match(s)) {
			continue
		}
		l.name, l.format, l.parse = f.name, f, f.parse
		return nil
	}
	if s == nil { // nothing but broken rows: count them
		l.format = formats()[0]
		l.parse = func(text []byte, _ *entry) string { return badText(text) }
		return nil
	}
	if onlyCSV(said) {
		return fmt.Errorf("%s:%d: is JSON, and %s files are not; a header looks like %s", path, s.line, said, csvLayout(said, nil).format.example)
	}
	return fmt.Errorf("%s:%d: %w", path, s.line, unknownKeys(s))
}

// unknownKeys is the error for rows of no known format.
func unknownKeys(s *sample) error {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if plain := strconv.Quote(key); plain != `"`+key+`"` { // the message stays one line whatever the file holds
			key = plain
		}
		found = append(found, shorten(key, 40))
	}
	if len(found) > 8 {
		found = append(found[:8], "...")
	}
	return fmt.Errorf("no known workload format has the keys %s; a row looks like %s", shorten(strings.Join(found, ", "), 120), examples())
}

// examples are the two rows people most often write themselves.
func examples() string {
	var texts []string
	for _, f := range formats() {
		if f.name == "mooncake" || f.name == "prompts" {
			texts = append(texts, f.example)
		}
	}
	return strings.Join(texts, " or ")
}
