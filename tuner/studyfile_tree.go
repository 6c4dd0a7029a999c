package tuner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// node is one value of a study file with its place: goccy's tree without what study files do not
// have (anchors, tags, merges), so that only this file knows the library.
type node struct {
	kind      kind
	text      string // scalars: the words as written, without quotes
	raw       string // scalars: exactly as in the file, quotes included
	value     any    // scalars: float64, bool, string; nil for null
	line, col int
	items     []*node // lists
	fields    []field // mappings, in file order, duplicates included
}

type field struct {
	name      string
	line, col int
	value     *node
}

type kind string

const (
	scalar  kind = "a single value"
	list    kind = "a list"
	mapping kind = "a mapping"
	null    kind = "nothing"
)

const (
	maxFile  = 128 << 10
	maxDepth = 64
)

// parseTree reads YAML (or JSON, a subset) into nodes. The error is a Mistake without a file name.
func parseTree(source []byte) (root *node, problem *Mistake) {
	defer func() { // the library panics on some malformed files
		if r := recover(); r != nil {
			root, problem = nil, &Mistake{Line: 1, Col: 1, Text: "the file is not readable YAML; check quotes, brackets and indentation"}
		}
	}()
	if p := unreadable(source); p != nil {
		return nil, p
	}
	text := bytes.TrimPrefix(source, []byte("\xef\xbb\xbf"))
	if json.Valid(text) {
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" ")) // tabs indent JSON, never YAML
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxProblem(err)
	}
	if len(file.Docs) > 1 {
		line, col := place(file.Docs[1].Start, 1, 1)
		return nil, &Mistake{Line: line, Col: col, Text: "a second document starts here; keep one study a file"}
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, &Mistake{Text: "the file is empty; start from examples/quickstart.yaml"}
	}
	return convert(file.Docs[0].Body, 0)
}

// unreadable finds what cannot be a study file before the parser sees it. The library's time grows
// with the square of the nesting, hence the limits.
func unreadable(source []byte) *Mistake {
	switch {
	case len(bytes.TrimSpace(source)) == 0:
		return &Mistake{Text: "the file is empty; start from examples/quickstart.yaml"}
	case bytes.IndexByte(source, 0) >= 0 || !isText(source):
		return &Mistake{Text: "this is a binary file, not a study file; give the path of a YAML or JSON file"}
	case len(source) > maxFile:
		return &Mistake{Text: fmt.Sprintf("the file is larger than the %d bytes a study file may have; is this the workload?", maxFile)}
	}
	line, col, open, dashes, indent := 1, 0, 0, 0, true
	for _, b := range source {
		col++
		switch b {
		case '\n':
			line, col, dashes, indent = line+1, 0, 0, true
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		case '-', '?': // "- - - " at the start of a line nests too
			dashes++
		}
		indent = indent && (b == '-' || b == '?' || b == ' ' || b == '\n')
		if open > maxDepth || (indent && b == ' ' && dashes > maxDepth) {
			return &Mistake{Line: line, Col: col, Text: "brackets or lists are nested too deep for a study file; close them"}
		}
	}
	return nil
}

// isText reports whether source looks like text: hardly any control characters.
func isText(source []byte) bool {
	strange := 0
	for _, b := range source {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' {
			strange++
		}
	}
	return strange*50 <= len(source)
}

func syntaxProblem(err error) *Mistake {
	p := &Mistake{Text: "the file is not readable YAML; check quotes, brackets and indentation"}
	var y yaml.Error
	if errors.As(err, &y) {
		p.Line, p.Col = place(y.GetToken(), 1, 1)
		p.Text = fmt.Sprintf("not readable as YAML: %s; check quotes, brackets and indentation here", y.GetMessage())
	}
	return p
}

func place(t *token.Token, line, col int) (int, int) {
	if t == nil || t.Position == nil {
		return line, col
	}
	return max(1, t.Position.Line), max(1, t.Position.Column)
}

func convert(n ast.Node, depth int) (*node, *Mistake) {
	out := &node{}
	out.line, out.col = place(n.GetToken(), 1, 1)
	if depth > maxDepth {
		return nil, &Mistake{Line: out.line, Col: out.col, Text: "brackets or lists are nested too deep for a study file; close them"}
	}
	if t := n.GetToken(); t != nil {
		out.text, out.raw = t.Value, strings.TrimSpace(t.Origin)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return out.mappingOf(n.Values, depth)
	case *ast.MappingValueNode:
		return out.mappingOf([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		return out.listOf(n.Values, depth)
	case *ast.NullNode:
		out.kind = null
	case *ast.BoolNode:
		out.kind, out.value = scalar, n.Value
	case *ast.IntegerNode, *ast.FloatNode:
		out.kind, out.value = scalar, out.text
		if v, err := plainNumber(out.text); err == nil {
			out.value = v
		}
	case *ast.StringNode:
		out.kind, out.text, out.value = scalar, n.Value, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = scalar, n.Value.Value
		out.raw, out.value = n.Value.Value, n.Value.Value
	case *ast.InfinityNode, *ast.NanNode:
		out.kind, out.value = scalar, out.text
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return nil, &Mistake{Line: out.line, Col: out.col, Text: "YAML anchors and aliases are not read in study files; write the value out"}
	case *ast.TagNode:
		return nil, &Mistake{Line: out.line, Col: out.col, Text: "YAML tags are not read in study files; write the plain value, in quotes if it is text"}
	default:
		return nil, &Mistake{Line: out.line, Col: out.col, Text: "this YAML form is not read in study files; write the plain value"}
	}
	return out, nil
}

func (n *node) mappingOf(values []*ast.MappingValueNode, depth int) (*node, *Mistake) {
	n.kind = mapping
	for i, v := range values {
		line, col := place(v.Key.GetToken(), n.line, n.col)
		if i == 0 && (line < n.line || (line == n.line && col < n.col)) {
			n.line, n.col = line, col // the library places a block mapping at its first colon
		}
		if v.Key.IsMergeKey() {
			return nil, &Mistake{Line: line, Col: col, Text: "YAML anchors and aliases are not read in study files; write the value out"}
		}
		key, problem := convert(v.Key, depth+1)
		if problem != nil {
			return nil, problem
		}
		value := &node{kind: null, line: line, col: col}
		if v.Value != nil {
			if value, problem = convert(v.Value, depth+1); problem != nil {
				return nil, problem
			}
		}
		n.fields = append(n.fields, field{name: key.text, line: line, col: col, value: value})
	}
	return n, nil
}

func (n *node) listOf(values []ast.Node, depth int) (*node, *Mistake) {
	n.kind = list
	for _, v := range values {
		if v == nil {
			n.items = append(n.items, &node{kind: null, line: n.line, col: n.col})
			continue
		}
		item, problem := convert(v, depth+1)
		if problem != nil {
			return nil, problem
		}
		n.items = append(n.items, item)
	}
	return n, nil
}
