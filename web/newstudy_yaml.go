package web

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlNode is a node of a text, with its place as check counts it and the bytes that it takes.
type yamlNode struct {
	kind      yamlKind
	flow      bool   // in brackets, or a single value: from and to are its bytes
	text      string // of a single value
	line, col int
	from, to  int
	items     []*yamlNode
	keys      []yamlKey
}

type yamlKey struct {
	name      string
	line, col int
	at, colon int // bytes
	value     *yamlNode
}

type yamlKind int

const (
	yamlOther yamlKind = iota // anchors, tags and such: no study file has them
	yamlNull
	yamlScalar
	yamlList
	yamlMapping
)

// yamlText is a text on its way to nodes.
type yamlText struct {
	text   string
	starts []int // of lines

	// Where offset was asked for last: nodes are met in the order of the text, and a text may be one long line.
	line, col, found int
}

// hasContent reports whether a text has more than blanks and comments.
func hasContent(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return true
		}
	}
	return false
}

// readYAML reads a text that the study file's reader can read; ok is false for one that is no mapping.
func readYAML(text string) (root *yamlNode, ok bool) {
	defer func() {
		if recover() != nil { // the library panics on some malformed texts
			root, ok = nil, false
		}
	}()
	if !hasContent(text) {
		return &yamlNode{kind: yamlMapping, col: 1}, true
	}
	source := []byte(text)
	if json.Valid(source) {
		source = []byte(strings.ReplaceAll(text, "\t", " ")) // as the reader of study files has it
	}
	file, err := parser.ParseBytes(source, 0, parser.AllowDuplicateMapKey())
	if err != nil || len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, false
	}
	root = linesOf(text).node(file.Docs[0].Body)
	return root, root.kind == yamlMapping
}

func linesOf(text string) *yamlText {
	t := &yamlText{text: text, starts: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	return t
}

// offset is the byte at a line and column.
func (t *yamlText) offset(p *token.Position) int {
	if p.Line < 1 || p.Line > len(t.starts) {
		return len(t.text)
	}
	if p.Line != t.line || p.Column < t.col {
		t.line, t.col, t.found = p.Line, 1, t.starts[p.Line-1]
	}
	for ; t.col < p.Column; t.col++ {
		_, n := utf8.DecodeRuneInString(t.text[t.found:])
		t.found += n
	}
	return t.found
}

func (t *yamlText) node(n ast.Node) *yamlNode {
	first := n.GetToken()
	out := &yamlNode{line: first.Position.Line, col: first.Position.Column, from: t.offset(first.Position), text: first.Value}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.kind, out.flow = yamlMapping, n.IsFlowStyle
		t.keysOf(out, n.Values)
		if n.IsFlowStyle && n.End != nil {
			out.to = t.offset(n.End.Position) + 1
		}
	case *ast.MappingValueNode:
		out.kind, out.flow = yamlMapping, n.IsFlowStyle
		t.keysOf(out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.kind, out.flow = yamlList, n.IsFlowStyle
		for _, v := range n.Values {
			if v == nil {
				out.items = append(out.items, &yamlNode{kind: yamlNull, line: out.line, col: out.col})
				continue
			}
			out.items = append(out.items, t.node(v))
		}
		if n.IsFlowStyle && n.End != nil {
			out.to = t.offset(n.End.Position) + 1
		}
	case *ast.NullNode:
		out.kind = yamlNull
		if out.text != "" && strings.HasPrefix(t.text[out.from:], out.text) {
			out.flow, out.to = true, out.from+len(out.text)
		}
	case *ast.StringNode:
		out.kind, out.text = yamlScalar, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = yamlScalar, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.kind = yamlScalar
	}
	return out
}

func (t *yamlText) keysOf(out *yamlNode, values []*ast.MappingValueNode) {
	for i, v := range values {
		p := v.Key.GetToken().Position
		if i == 0 && !out.flow { // the library places a block at its first colon
			out.line, out.col, out.from = p.Line, p.Column, t.offset(p)
		}
		k := yamlKey{name: v.Key.GetToken().Value, line: p.Line, col: p.Column, at: t.offset(p), colon: t.offset(v.Start.Position)}
		if k.colon > len(t.text)-1 || t.text[k.colon] != ':' {
			k.colon = -1 // "? key" and such
		}
		k.value = &yamlNode{kind: yamlNull, line: p.Line, col: p.Column}
		if v.Value != nil {
			k.value = t.node(v.Value)
		}
		if v := k.value; v.kind == yamlScalar {
			v.to = t.scalarEnd(v.from, out.flow)
			quoted := strings.ContainsRune(`"'`, rune(t.text[v.from]))
			v.flow = v.to > v.from && (quoted || t.text[v.from:v.to] == v.text) // else it goes on in the next line
		}
		out.keys = append(out.keys, k)
	}
}

// scalarEnd is where a single value ends that begins at a byte: within its line, or at its closing quote. A value over several
// lines is given back as none, -1.
func (t *yamlText) scalarEnd(from int, inBrackets bool) int {
	rest := t.text[from:]
	switch {
	case rest == "" || rest[0] == '|' || rest[0] == '>':
		return -1
	case rest[0] == '"':
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case '"':
				return from + i + 1
			}
		}
		return -1
	case rest[0] == '\'':
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\'' && (i+1 == len(rest) || rest[i+1] != '\'') {
				return from + i + 1
			} else if rest[i] == '\'' {
				i++
			}
		}
		return -1
	}
	ends, line := "\n", rest
	if inBrackets {
		ends = ",]}\n"
	}
	if i := strings.IndexAny(rest, ends); i >= 0 {
		line = rest[:i]
	}
	if i := strings.Index(line, " #"); i >= 0 {
		line = line[:i]
	}
	return from + len(strings.TrimRight(line, " \t"))
}

// key finds a key of a mapping, the first of doubled ones, -1 for none.
func (n *yamlNode) key(name string) int {
	return slices.IndexFunc(n.keys, func(k yamlKey) bool { return k.name == name })
}

// at is the node at a path below n, nil for none.
func (n *yamlNode) at(path ...string) *yamlNode {
	for _, name := range path {
		i := n.key(name)
		if i < 0 {
			return nil
		}
		n = n.keys[i].value
	}
	return n
}

// word is a single value.
func (n *yamlNode) word() (string, bool) {
	return n.text, n.kind == yamlScalar && !strings.ContainsAny(n.text, "\n\t")
}

// listed is a list of words as a field shows it.
func (n *yamlNode) listed() (string, bool) {
	if n.kind == yamlScalar {
		return n.word()
	}
	words := make([]string, len(n.items))
	for i, item := range n.items {
		var ok bool
		if words[i], ok = item.word(); !ok || words[i] == "" || strings.ContainsAny(words[i], " ,[]") {
			return "", false
		}
	}
	return strings.Join(words, ", "), n.kind == yamlList
}

// flags are a mapping's entries as lines. What a line cannot hold is left out, and stays in the text as it is.
func (n *yamlNode) flags() (string, bool) {
	var lines []string
	for _, k := range n.keys {
		value, ok := k.value.listed()
		if k.value.kind == yamlList {
			value = "[" + value + "]"
		}
		if ok && k.name != "" && k.name != tpSize && !strings.ContainsAny(k.name, "= \n") && !strings.HasPrefix(k.name, "-") {
			lines = append(lines, k.name+"="+value)
		}
	}
	return strings.Join(lines, "\n"), n.kind == yamlMapping
}

// pathAt is the path of the node that begins at a place, else of the last one that begins before it.
func (n *yamlNode) pathAt(line, col int) []string {
	var best []string
	bestLine, bestCol := 0, 0
	var look func(n *yamlNode, path []string)
	meet := func(l, c int, path []string) {
		if (l < line || l == line && c <= col) && (l > bestLine || l == bestLine && c >= bestCol) {
			best, bestLine, bestCol = path, l, c
		}
	}
	look = func(n *yamlNode, path []string) {
		for _, k := range n.keys {
			below := append(slices.Clone(path), k.name)
			meet(k.line, k.col, below)
			meet(k.value.line, k.value.col, below)
			look(k.value, below)
		}
		for _, item := range n.items {
			meet(item.line, item.col, path)
			look(item, path)
		}
	}
	look(n, nil)
	return best
}

// leaves are all single values by their path.
func (n *yamlNode) leaves() map[string]string {
	out := map[string]string{}
	var look func(n *yamlNode, path string)
	look = func(n *yamlNode, path string) {
		if n.kind == yamlScalar || n.kind == yamlOther {
			for _, twice := out[path]; twice; _, twice = out[path] { // a key that is given twice
				path += "\x01"
			}
			out[path] = n.text
		}
		for _, k := range n.keys {
			look(k.value, path+"\x00"+k.name)
		}
		for i, item := range n.items {
			look(item, path+"\x00"+strconv.Itoa(i))
		}
	}
	look(n, "")
	return out
}
