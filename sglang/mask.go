package sglang

import (
	"regexp"
	"strings"
)

// masked stands where a secret was.
const masked = "***"

// secretName matches the end of the name of an option, variable or field whose value is a secret.
// "token" counts only with a word before it that makes it a credential: SGLang has many harmless
// fields about tokens.
const secretName = `(?:api[_-]?key|secret(?:[_-]?key)?|access[_-]?key|private[_-]?key|passw(?:or)?d|` +
	`(?:hf|hub|auth|access|api|bearer|refresh|session|github|gitlab|wandb)[_-]token)`

// secretValue is a quoted text (an unfinished one too: lines get cut) or a run of characters that
// cannot end an argument.
const secretValue = `(?:'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|[^\s'",)\]}]+)`

// maskRules replace a value and keep its name, so that a masked line still says what was there.
// Order matters only for speed. Every rule leaves its own result unchanged.
var maskRules = []*regexp.Regexp{
	// --api-key X, --api-key=X, '--api-key', 'X' (an argv printed as a list)
	regexp.MustCompile(`(?i)(--(?:[\w-]*-)?` + secretName + `\b['"]?(?:\s*,\s*|\s+|=))` + secretValue),
	// api_key='X', 'api_key': 'X', "hf_token": "X", x-api-key: X
	regexp.MustCompile(`(?i)((?:\b|_)` + secretName + `\b\\?['"]?\s*[:=]\s*)` + secretValue),
	// environment: NAME_TOKEN=X, NAME_KEY=X, NAME_SECRET=X, NAME_PASSWORD=X, and their repr
	regexp.MustCompile(`((?:\b|_)(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD)\b['"]?\s*[:=]\s*)` + secretValue),
	// Authorization: Bearer X, Basic X
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9*._~+/=-]{3,}`),
	// scheme://user:X@host
	regexp.MustCompile(`(\w://[^\s/:@]*:)[^\s/@]+@`),
}

// tokenShapes are secrets that give themselves away without a name beside them.
var tokenShapes = regexp.MustCompile(`\b(?:hf_[A-Za-z0-9]{6,}|sk-[A-Za-z0-9_-]{6,}|gh[pousr]_[A-Za-z0-9]{16,})`)

// maskHints are such that every line a rule can change contains one of them once it is in lower
// case. They exist for speed: a batch line contains none ("#new-token" is no credential).
var maskHints = []string{
	"key", "_token", "secret", "passw", "bearer", "basic ", "hf_", "sk-", "://",
	"hf-token", "hub-token", "auth-token", "access-token", "api-token", "bearer-token",
	"refresh-token", "session-token", "github-token", "gitlab-token", "wandb-token",
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_",
}

// Mask returns text with every secret replaced by "***": values of flags, fields and variables
// whose name says so (--api-key X, api_key='X', HF_TOKEN=X), Bearer and Basic credentials, passwords
// in URLs, and tokens of a known shape (hf_..., sk-..., ghp_...). None, null, true, false and empty
// values are no secrets. Mask(Mask(x)) equals Mask(x).
func Mask(text string) string {
	if !mayHoldSecret(text) {
		return text
	}
	for i, rule := range maskRules {
		if i == len(maskRules)-1 {
			text = rule.ReplaceAllString(text, "${1}"+masked+"@")
			continue
		}
		text = replaceValue(rule, text)
	}
	return tokenShapes.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "hf_") && s == strings.ToLower(s) && !strings.ContainsAny(s, "0123456789") {
			return s // hf_transfer and the like: a word, not a token
		}
		return masked
	})
}

// MaskBytes is Mask for a raw log line; bytes that are not UTF-8 stay as they are. It returns line
// itself when there is nothing to mask.
func MaskBytes(line []byte) []byte {
	text := string(line)
	if out := Mask(text); out != text {
		return []byte(out)
	}
	return line
}

func mayHoldSecret(text string) bool {
	lower := strings.ToLower(text)
	for _, hint := range maskHints {
		if strings.Contains(lower, hint) {
			return true
		}
	}
	return strings.Contains(text, "TOKEN")
}

// replaceValue masks what follows group 1 of every match, keeping quotes.
func replaceValue(rule *regexp.Regexp, text string) string {
	found := rule.FindAllStringSubmatchIndex(text, -1)
	if found == nil {
		return text
	}
	var b strings.Builder
	last := 0
	for _, m := range found {
		value := text[m[3]:m[1]]
		b.WriteString(text[last:m[3]])
		b.WriteString(maskValue(value))
		last = m[1]
	}
	b.WriteString(text[last:])
	return b.String()
}

func maskValue(value string) string {
	quote, inner := "", value
	if len(value) > 0 && (value[0] == '\'' || value[0] == '"') {
		quote, inner = value[:1], strings.Trim(value, value[:1])
	}
	switch inner {
	case "", "None", "null", "True", "False", "true", "false":
		return value
	}
	if quote != "" && !strings.HasSuffix(value[1:], quote) {
		return quote + masked // cut off in the middle
	}
	return quote + masked + quote
}
