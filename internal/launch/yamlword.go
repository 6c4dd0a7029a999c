package launch

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sgtune/sglang"
)

// plainWord are texts that YAML reads as themselves, also between brackets.
var plainWord = regexp.MustCompile(`^(?:-{0,2}[A-Za-z]|[/_])[A-Za-z0-9_./@+=-]*$`)

// reserved are plain words that some YAML reader takes for something else.
var reserved = []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"}

// word spells a text for YAML: plain where that is safe, else in quotes.
func word(s string) string {
	if plainWord.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)) {
		return s
	}
	return quoted(s)
}

// quoted spells a text in quotes: single ones where it holds double ones, like JSON.
func quoted(s string) string {
	control := strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || !unicode.IsPrint(r) })
	if strings.Contains(s, `"`) && !strings.Contains(s, "'") && !control {
		return "'" + s + "'"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a text always encodes
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// flow spells words as a list in one line.
func flow(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = word(w)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// pair spells one flag with its value.
func pair(e Entry) string {
	switch v := e.Value.(type) {
	case string:
		return e.Name + ": " + word(v)
	case []any:
		words := make([]string, len(v))
		for i, x := range v {
			if s, ok := x.(string); ok {
				words[i] = word(s)
				continue
			}
			words[i] = sglang.FormatValue(x)
		}
		return e.Name + ": [" + strings.Join(words, ", ") + "]"
	}
	return e.Name + ": " + sglang.FormatValue(e.Value)
}

// oneLine replaces what would break a comment or steer a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufffd' {
			return ' '
		}
		return r
	}, s)
}
