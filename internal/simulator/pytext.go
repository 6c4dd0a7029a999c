package simulator

import (
	"strconv"
	"strings"
)

// pyFloat prints a float as Python's repr does: 0.85, 1.0.
func pyFloat(x float64) string {
	t := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(t, ".en") {
		t += ".0"
	}
	return t
}

// pyString prints a string as Python's repr does.
func pyString(s string) string {
	q := `'`
	if strings.Contains(s, `'`) && !strings.Contains(s, `"`) {
		q = `"`
	}
	r := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, q, `\`+q)
	return q + r.Replace(s) + q
}

// unquote undoes pyString; other literals come back as they are.
func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '\'' || v[0] == '"') && v[len(v)-1] == v[0] {
		q := v[:1]
		return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\`+q, q).Replace(v[1 : len(v)-1])
	}
	return v
}

// pyJSON turns a Python literal of the flag table into JSON.
func pyJSON(v string) string {
	switch v {
	case "None":
		return "null"
	case "True":
		return "true"
	case "False":
		return "false"
	}
	if v == "" {
		return `""`
	}
	switch v[0] {
	case '\'', '"':
		return strconv.Quote(unquote(v))
	case '[':
		inner := strings.TrimSpace(v[1 : len(v)-1])
		if inner == "" {
			return "[]"
		}
		items := strings.Split(inner, ", ")
		for i := range items {
			items[i] = pyJSON(items[i])
		}
		return "[" + strings.Join(items, ", ") + "]"
	case '{':
		return "{}"
	}
	return v
}

// pyOfJSON prints a JSON value as Python's repr does; a text that is no JSON comes back as it is.
func pyOfJSON(text []byte) string {
	var out strings.Builder
	s := scanner{b: text}
	if err := s.python(&out); err != nil {
		return string(text)
	}
	return out.String()
}

// python prints the next value.
func (s *scanner) python(out *strings.Builder) error {
	switch s.peek() {
	case '"':
		text, err := s.text()
		out.WriteString(pyString(text))
		return err
	case '[':
		first := true
		out.WriteByte('[')
		err := s.array(func() error {
			if !first {
				out.WriteString(", ")
			}
			first = false
			return s.python(out)
		})
		out.WriteByte(']')
		return err
	case '{':
		first := true
		out.WriteByte('{')
		err := s.object(func(key []byte) error {
			if !first {
				out.WriteString(", ")
			}
			first = false
			out.WriteString(pyString(string(key)) + ": ")
			return s.python(out)
		})
		out.WriteByte('}')
		return err
	}
	w, err := s.word()
	switch string(w) {
	case "null":
		out.WriteString("None")
	case "true":
		out.WriteString("True")
	case "false":
		out.WriteString("False")
	default:
		out.Write(w)
	}
	return err
}
