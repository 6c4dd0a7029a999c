package web

import (
	"maps"
	"slices"
	"strings"
)

// writeYAML puts a value, spelt as YAML, at a path of the text; "" takes away what is there. ok is false, and the text as it was,
// when that would change anything else.
func writeYAML(text string, path []string, value string) (changed string, ok bool) {
	root, ok := readYAML(text)
	if !ok {
		return text, false
	}
	changed, ok = linesOf(text).write(root, path, value)
	if !ok || !sameBeside(root, changed, path, path) {
		return text, false
	}
	return changed, true
}

// renameYAML gives the key at a path another name.
func renameYAML(text string, path []string, name string) (changed string, ok bool) {
	root, ok := readYAML(text)
	if !ok {
		return text, false
	}
	last := len(path) - 1
	parent := root.at(path[:last]...)
	if parent == nil || parent.key(path[last]) < 0 || parent.key(name) >= 0 {
		return text, false
	}
	k := parent.keys[parent.key(path[last])]
	if k.colon < 0 {
		return text, false
	}
	end := k.at + len(strings.TrimRight(text[k.at:k.colon], " "))
	changed = text[:k.at] + wordYAML(name) + text[end:]
	if !sameBeside(root, changed, path, append(slices.Clone(path[:last]), name)) {
		return text, false
	}
	return changed, true
}

// sameBeside compares all values of two texts but those below a path.
func sameBeside(root *yamlNode, changed string, before, after []string) bool {
	now, ok := readYAML(changed)
	if !ok {
		return false
	}
	beside := func(n *yamlNode, path []string) map[string]string {
		out, prefix := n.leaves(), "\x00"+strings.Join(path, "\x00")
		maps.DeleteFunc(out, func(p, _ string) bool {
			return p == prefix || strings.HasPrefix(p, prefix+"\x00") || strings.HasPrefix(p, prefix+"\x01")
		})
		return out
	}
	return maps.Equal(beside(root, before), beside(now, after))
}

// write makes the text with a value at a path.
func (t *yamlText) write(root *yamlNode, path []string, value string) (string, bool) {
	var above []*yamlNode // mappings on the way
	n := root
	for i, name := range path {
		at, last := n.key(name), i == len(path)-1
		if at < 0 && value == "" {
			return t.text, true
		}
		if at < 0 {
			return t.insert(n, path[i:], value), true
		}
		above = append(above, n)
		switch k := n.keys[at]; {
		case last && value == "":
			return t.remove(above, path)
		case k.value.kind == yamlNull && value == "":
			return t.text, true
		case last:
			return t.replace(k, value)
		case k.value.kind == yamlNull: // a section with nothing in it
			return t.replace(k, inBrackets(path[i+1:], value))
		case k.value.kind != yamlMapping:
			return "", false
		default:
			n = k.value
		}
	}
	return "", false
}

// replace puts another value at a key.
func (t *yamlText) replace(k yamlKey, value string) (string, bool) {
	if k.colon < 0 {
		return "", false
	}
	head := t.text[:k.colon+1] + " " + value
	switch v := k.value; {
	case v.flow:
		return t.text[:v.from] + value + commentMoved(t.text[v.to:], v.to-v.from-len(value)), true
	case v.kind == yamlNull:
		return head + t.text[k.colon+1:], true
	case v.line == k.line: // it begins here and goes on in the next lines
		return head + "\n" + t.text[t.blockEnd(k):], true
	}
	end := len(t.text)
	if k.line < len(t.starts) {
		end = t.starts[k.line]
	}
	return head + t.text[k.colon+1:end] + t.text[t.blockEnd(k):], true
}

// commentMoved is the rest of a line whose value has become shorter by so many bytes: a comment behind it keeps its column, where there is room.
func commentMoved(rest string, shorter int) string {
	comment := strings.TrimLeft(rest, " ")
	gap := len(rest) - len(comment)
	if gap < 2 || !strings.HasPrefix(comment, "#") {
		return rest
	}
	return strings.Repeat(" ", max(1, gap+shorter)) + comment
}

// insert adds keys to a mapping that lacks the first of them.
func (t *yamlText) insert(n *yamlNode, names []string, value string) string {
	if n.flow {
		head, mark := strings.TrimRight(t.text[:n.to-1], " \n"), ", "
		if len(n.keys) == 0 {
			mark = ""
		} else if strings.HasSuffix(head, ",") {
			mark = " "
		}
		pair := inBrackets(names, value)
		return head + mark + pair[1:len(pair)-1] + t.text[n.to-1:]
	}
	at := len(t.text)
	if len(n.keys) > 0 {
		at = t.blockEnd(n.keys[len(n.keys)-1])
	}
	var b strings.Builder
	b.WriteString(t.text[:at])
	if at > 0 && t.text[at-1] != '\n' {
		b.WriteString("\n")
	}
	indent := strings.Repeat(" ", n.col-1)
	for i, name := range names {
		b.WriteString(indent + strings.Repeat("  ", i) + wordYAML(name) + ":")
		if i == len(names)-1 {
			b.WriteString(" " + value)
		}
		b.WriteString("\n")
	}
	b.WriteString(t.text[at:])
	return b.String()
}

// inBrackets is a value below some keys: {a: {b: value}}.
func inBrackets(names []string, value string) string {
	for _, name := range slices.Backward(names) {
		value = "{" + wordYAML(name) + ": " + value + "}"
	}
	return value
}

// remove takes a key away, and those above it that would be left empty.
func (t *yamlText) remove(above []*yamlNode, path []string) (string, bool) {
	i := len(above) - 1
	for i > 0 && len(above[i].keys) == 1 {
		i--
	}
	n := above[i]
	k := n.keys[n.key(path[i])]
	if n.flow {
		from, to := k.at, max(k.value.to, k.colon+1)
		tail := strings.TrimLeft(t.text[to:], " \n")
		if rest, more := strings.CutPrefix(tail, ","); more {
			return t.text[:from] + strings.TrimLeft(rest, " "), true
		}
		return strings.TrimRight(t.text[:from], " \n,") + t.text[to:], true
	}
	from := t.starts[k.line-1]
	if strings.TrimSpace(t.text[from:k.at]) != "" {
		return "", false
	}
	return t.text[:from] + t.text[t.blockEnd(k):], true
}

// blockEnd is the first byte behind the lines of a block's key.
func (t *yamlText) blockEnd(k yamlKey) int {
	last := k.line
	if k.value.flow {
		last += strings.Count(t.text[k.at:k.value.to], "\n")
	}
	for i := last; i < len(t.starts); i++ {
		line, _, _ := strings.Cut(t.text[t.starts[i]:], "\n")
		body := strings.TrimLeft(line, " ")
		indent := len(line) - len(body)
		if body == "" || body[0] == '#' {
			continue
		}
		if indent < k.col-1 || indent == k.col-1 && body != "-" && !strings.HasPrefix(body, "- ") {
			break
		}
		last = i + 1
	}
	if last >= len(t.starts) {
		return len(t.text)
	}
	return t.starts[last]
}
