package sglang

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

const (
	maxConfigBytes = 8 << 20 // a config.json is some KB; one with a long ignore list some 100 KB
	maxLayers      = 4096
	maxWidth       = 1 << 20 // heads, head sizes, hidden sizes, experts
	maxVocab       = 1 << 26
)

// configJSON is a config.json while it is read. Language models inside a multimodal one keep their
// numbers in a section of their own; what is absent there is looked up at the top.
type configJSON struct {
	text, top map[string]any
	err       error // first field that cannot be used
}

// textSections are the names of the language model's section, in SGLang's order of preference
// (utils/hf_transformers/common.py, get_hf_text_config).
var textSections = []string{"thinker_config", "llm_config", "language_config", "text_config"}

func decodeConfig(data []byte) (*configJSON, error) {
	if len(data) > maxConfigBytes {
		return nil, fmt.Errorf("config.json: %d bytes is too much for a model configuration; is it the right file?", len(data))
	}
	var top map[string]any
	if err := json.Unmarshal(pythonJSON(data), &top); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return nil, errors.New("config.json: not a JSON object; give the model's own config.json")
		}
		return nil, fmt.Errorf("config.json: not valid JSON (%w); give the model's own config.json", err)
	}
	if top == nil {
		return nil, errors.New("config.json: not a JSON object; give the model's own config.json")
	}
	c := &configJSON{top: top, text: top}
	for _, name := range textSections {
		if section, ok := top[name].(map[string]any); ok {
			if inner, ok := section["text_config"].(map[string]any); ok { // thinker_config
				section = inner
			}
			c.text = section
			break
		}
	}
	return c, nil
}

// pythonJSON makes what Python's json module writes readable for Go: no byte order mark, and
// NaN and Infinity outside strings become null.
func pythonJSON(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	out := make([]byte, 0, len(data))
	quoted := false
	for i := 0; i < len(data); i++ {
		b := data[i]
		switch {
		case quoted && b == '\\' && i+1 < len(data):
			out = append(out, b)
			i++
			b = data[i]
		case b == '"':
			quoted = !quoted
		case !quoted:
			if n := pythonNumber(data[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

// pythonNumber is the length of a number at the start of data that JSON does not have, else 0.
func pythonNumber(data []byte) int {
	for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
		if bytes.HasPrefix(data, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// value is the first of the names that is present and not null, in the text section or at the top.
func (c *configJSON) value(names ...string) (v any, name string) {
	for _, section := range []map[string]any{c.text, c.top} {
		for _, name := range names {
			if v := section[name]; v != nil {
				return v, name
			}
		}
	}
	return nil, ""
}

// count is a field the arithmetic rests on: a whole number from 0 to limit. 0 means absent; a value
// that is none is an error.
func (c *configJSON) count(limit int, names ...string) int {
	v, name := c.value(names...)
	if v == nil {
		return 0
	}
	n, ok := whole(v, limit)
	if !ok && c.err == nil {
		c.err = fmt.Errorf("config.json: %s is %s; want a whole number from 0 to %d", name, shortJSON(v), limit)
	}
	return n
}

// hint is a field that only refines a figure: 0 when absent or unusable.
func (c *configJSON) hint(limit int, names ...string) int {
	v, _ := c.value(names...)
	n, _ := whole(v, limit)
	return n
}

func whole(v any, limit int) (int, bool) {
	f, ok := v.(float64)
	if !ok || f != math.Trunc(f) || f < 0 || f > float64(limit) { // NaN and infinities fail too
		return 0, false
	}
	return int(f), true
}

func shortJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "unreadable"
	}
	if len(b) > 40 {
		return string(bytes.ToValidUTF8(b[:40], nil)) + "..."
	}
	return string(b)
}

func (c *configJSON) word(names ...string) string {
	v, _ := c.value(names...)
	s, _ := v.(string)
	return s
}

func (c *configJSON) flag(name string) (on, present bool) {
	v, _ := c.value(name)
	on, present = v.(bool)
	return on, present
}

func (c *configJSON) number(name string) (float64, bool) {
	v, _ := c.value(name)
	f, ok := v.(float64)
	return f, ok
}

func (c *configJSON) list(names ...string) []any {
	v, _ := c.value(names...)
	l, _ := v.([]any)
	return l
}

// section is a nested object as a config of its own.
func (c *configJSON) section(names ...string) *configJSON {
	v, _ := c.value(names...)
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	return &configJSON{text: m, top: m}
}
