package launch

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

var yamlKey = regexp.MustCompile(`^(?:---|[A-Za-z_"'][\w."' -]*:(?:\s|$)|- |[\[{]\s*(?:"|$))`)

// isYAML reports whether a text is YAML or JSON, by its name or its first line.
func isYAML(base, first string) bool {
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		if strings.HasSuffix(strings.ToLower(base), ext) {
			return true
		}
	}
	return yamlKey.MatchString(first)
}

// readYAML tells the kinds of yaml apart by their keys.
func readYAML(source []byte, opt Options) ([]Launch, error) {
	docs, err := decodeYAML(source)
	if err != nil {
		return nil, err
	}
	var out []Launch
	for _, doc := range docs {
		switch root := doc.(type) {
		case []any: // an argv as JSON or YAML
			if words, ok := texts(root); ok {
				out = append(out, commandWords(words, around{kind: KindArgv}, opt)...)
			}
		case *mapping:
			launches, err := readMapping(root, opt)
			if err != nil {
				return nil, err
			}
			out = append(out, launches...)
		}
	}
	return out, nil
}

func readMapping(root *mapping, opt Options) ([]Launch, error) {
	has := func(key string) bool { return root.get(key) != nil }
	switch {
	case has("services"):
		return readCompose(root, opt)
	case has("kind") && (has("apiVersion") || has("spec")):
		return readKubernetes(root, opt)
	case has("space") && has("workload"), has("study") && has("server"):
		return nil, ErrStudy
	}
	return readConfig(root)
}

// mapping is a YAML mapping in file order.
type mapping struct {
	keys   []string
	values []any // *mapping, []any, string (any scalar, as written), bool, nil
	lines  []int
}

func (m *mapping) get(key string) any {
	if m == nil {
		return nil
	}
	for i, k := range m.keys {
		if k == key {
			return m.values[i]
		}
	}
	return nil
}

func (m *mapping) child(key string) *mapping {
	c, _ := m.get(key).(*mapping)
	return c
}

// text is a scalar as text, "" when it is none.
func (m *mapping) text(key string) string { s, _ := scalar(m.get(key)); return s }

// number is a scalar that YAML reads as a number; it prints as written.
type number string

func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case number:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

func texts(items []any) ([]string, bool) {
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := scalar(item)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// Limits of a YAML file: aliases multiply, and the library's time grows with the square of the
// nesting.
const (
	maxNodes   = 50_000
	maxNesting = 48
)

var errYAML = errors.New("the file is not readable YAML; check quotes, brackets and indentation")

// decodeYAML reads every document of a YAML file.
func decodeYAML(source []byte) ([]any, error) {
	if tooDeep(source) {
		return nil, errors.New("the YAML is nested too deep for a launch")
	}
	file, err := parser.ParseBytes(bytes.ReplaceAll(source, []byte("\t"), []byte("  ")), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("not readable as YAML: %s", first)
	}
	var out []any
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		d := yamlDecoder{anchors: map[string]any{}}
		v, err := d.value(doc.Body, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// tooDeep finds nesting before the parser does.
func tooDeep(source []byte) bool {
	open, dashes := 0, 0
	for _, b := range source {
		switch b {
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		case '-', '?':
			dashes++
		case '\n':
			dashes = 0
		case ' ':
		default:
			if b != '-' {
				dashes = 0
			}
		}
		if open > maxNesting || dashes > 4*maxNesting {
			return true
		}
	}
	return false
}

type yamlDecoder struct {
	anchors map[string]any
	nodes   int
}

func (d *yamlDecoder) value(n ast.Node, depth int) (any, error) {
	if d.nodes++; d.nodes > maxNodes || depth > maxNesting {
		return nil, errors.New("the YAML is too large or nested too deep for a launch")
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.mapping(n.Values, depth)
	case *ast.MappingValueNode:
		return d.mapping([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for _, item := range n.Values {
			v, err := d.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case *ast.AnchorNode:
		v, err := d.value(n.Value, depth+1)
		d.anchors[n.Name.GetToken().Value] = v
		return v, err
	case *ast.AliasNode:
		v := d.anchors[n.Value.GetToken().Value]
		d.nodes += size(v)
		return v, nil
	case *ast.TagNode:
		return d.value(n.Value, depth+1)
	case *ast.NullNode, nil:
		return nil, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return number(n.GetToken().Value), nil
	}
	return nil, errYAML
}

func (d *yamlDecoder) mapping(values []*ast.MappingValueNode, depth int) (any, error) {
	out := &mapping{}
	for _, v := range values {
		value, err := d.value(v.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if v.Key.IsMergeKey() {
			out.merge(value)
			continue
		}
		key := v.Key.GetToken()
		if key == nil {
			return nil, errYAML
		}
		out.put(key.Value, value, key.Position.Line)
	}
	return out, nil
}

func (m *mapping) put(key string, value any, line int) {
	for i, k := range m.keys {
		if k == key {
			m.values[i], m.lines[i] = value, line
			return
		}
	}
	m.keys, m.values, m.lines = append(m.keys, key), append(m.values, value), append(m.lines, line)
}

// merge takes keys of <<: that are not there yet.
func (m *mapping) merge(v any) {
	switch v := v.(type) {
	case *mapping:
		for i, k := range v.keys {
			if m.get(k) == nil {
				m.put(k, v.values[i], v.lines[i])
			}
		}
	case []any:
		for _, item := range v {
			m.merge(item)
		}
	}
}

// size counts the nodes of a value, so that aliases of aliases end.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case *mapping:
		for _, x := range v.values {
			if n += size(x); n > maxNodes {
				return n
			}
		}
	case []any:
		for _, x := range v {
			if n += size(x); n > maxNodes {
				return n
			}
		}
	}
	return n
}
