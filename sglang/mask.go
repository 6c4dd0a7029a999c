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
const secretName = `(?:api[_-]?key|secret(?:[_-]?key)?|access[_-]?key(?:[_-]?id)?|account[_-]?key|private[_-]?key|keyfile[_-]password|passw(?:or)?d|` +
	`(?:hf|hub|auth|access|api|bearer|refresh|session|security|github|gitlab|wandb)[_-]token)`

// secretNameHints are such that whatever secretName matches contains one, in lower case.
var secretNameHints = []string{
	"api_key", "api-key", "apikey", "secret", "access_key", "access-key", "accesskey", "account_key", "account-key", "accountkey",
	"private_key", "private-key", "privatekey", "passwd", "password",
	"hf_token", "hub_token", "auth_token", "access_token", "api_token", "bearer_token", "refresh_token", "session_token", "security_token", "github_token", "gitlab_token", "wandb_token",
	"hf-token", "hub-token", "auth-token", "access-token", "api-token", "bearer-token", "refresh-token", "session-token", "security-token", "github-token", "gitlab-token", "wandb-token",
}

// secretValue is a quoted text (an unfinished one too: lines get cut), one whose quotes are escaped,
// or a run of characters that cannot end an argument.
const secretValue = `(?:` + quotedValue + `|\\"[^"\\]*(?:\\")?|\\'[^'\\]*(?:\\')?|[^\s'",)\]}\\][^\s'",)\]}]*)`

const quotedValue = `(?:b?'(?:[^'\\]|\\.)*'?|b?"(?:[^"\\]|\\.)*"?)`

// maskRule replaces what follows group 1 of its expression, up to group 2 if there is one. It can match only in a text that holds
// one of the hints: lower-case hints stand for every case, exact ones for themselves.
type maskRule struct {
	re    *regexp.Regexp
	hints []string
	exact []string
	keep  func(value string) bool // no secret after all; may be nil
}

// maskRules replace a value and keep its name, so that a masked line still says what was there.
// Every rule leaves the results of all unchanged.
var maskRules = []maskRule{
	{ // --api-key X, --api-key=X, '--api-key', 'X' (an argv printed as a list)
		re: regexp.MustCompile(`(?i)(--(?:[\w-]*-)?` + secretName + `\b\\?['"]?(?:\s*,\s*|\s+|=))` + secretValue), hints: secretNameHints,
	},
	{ // api_key='X', 'api_key': 'X', "hf_token": "X", x-api-key: X, AccountKey=X, awsSecretAccessKey: X
		re: regexp.MustCompile(`(?i)((?:\b|_)[a-z]*` + secretName + `\b\\?['"]?\s*[:=]\s*)` + secretValue), hints: secretNameHints,
	},
	{ // (b'x-api-key', b'X'), ("api_key", "X")
		re: regexp.MustCompile(`(?i)((?:\b|_)` + secretName + `['"]\s*,\s*)` + quotedValue), hints: secretNameHints,
	},
	{ // environment: NAME_TOKEN=X, NAME_KEY=X, NAME_SECRET=X, NAME_PASSWORD=X, and their repr
		re:    regexp.MustCompile(`((?:\b|_)(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD)\b\\?['"]?\s*[:=]\s*)` + secretValue),
		exact: []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD"},
	},
	{ // Authorization: X, 'authorization': 'Bearer X'
		re:    regexp.MustCompile(`(?i)(\bauthorization\\?['"]?\s*[:=,]\s*(?:b?\\?['"])?(?:(?:bearer|basic|token|digest|apikey)\s+)?)[^\s'",;)\]}\\]+`),
		hints: []string{"authorization"},
	},
	{ // Bearer X
		re: regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9*._~+/=-]{3,}`), hints: []string{"bearer"},
	},
	{ // Basic X, in base64
		re: regexp.MustCompile(`(?i)(\bbasic\s+)[A-Za-z0-9*+/=]{3,}`), hints: []string{"basic"}, keep: isWord,
	},
	{ // wandb login X, huggingface-cli login --token X, token='long one'
		re:    regexp.MustCompile(`(?i)((?:\bwandb\s+login(?:\s+--\w+)*|--token|\btoken['"]?\s*[:=])\s*=?\s*['"]?)[A-Za-z0-9*_.-]{16,}`),
		hints: []string{"login", "--token", "token=", "token'", "token\""}, keep: isWord,
	},
	{ // signed URLs: ?sig=X, &X-Amz-Signature=X, ?key=X
		re:    regexp.MustCompile(`(?i)([?&](?:sig|signature|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|key|token)=)[^&\s'",)\]}]+`),
		hints: []string{"?sig", "&sig", "?x-amz-", "&x-amz-", "?x-goog-", "&x-goog-", "?key=", "&key=", "?token=", "&token="},
	},
	{ // scheme://user:X@host
		re: regexp.MustCompile(`(\w://[^\s/:@]*:)[^\s/@]+(@)`), hints: []string{"://"},
	},
	{ // secrets that give themselves away without a name beside them
		re: regexp.MustCompile(`()\b(?:hf_[A-Za-z0-9]{6,}|sk-[A-Za-z0-9_-]{6,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|nvapi-[\w-]{16,}|dckr_pat_[\w-]{16,}|` +
			`xox[abeprs]-[\w-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}\b|AIza[\w-]{30,}|ya29\.[\w.-]{16,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)`),
		hints: []string{"hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "nvapi-", "dckr_pat_"},
		exact: []string{"xox", "AKIA", "ASIA", "AIza", "ya29.", "eyJ"}, keep: isWord,
	},
}

// ruleSet is the rules with one finder for all their hints.
type ruleSet struct {
	finder *finder
	hints  []int // which rule a hint belongs to, as a bit, by the hint's number
}

var secretRules = newRuleSet(maskRules)

func newRuleSet(rules []maskRule) *ruleSet {
	s := &ruleSet{}
	var lower, exact []string
	of := map[string]int{}
	for i, rule := range rules {
		for _, hint := range rule.hints {
			if of[hint] == 0 {
				lower = append(lower, hint)
			}
			of[hint] |= 1 << i
		}
		for _, hint := range rule.exact {
			if of[hint] == 0 {
				exact = append(exact, hint)
			}
			of[hint] |= 1 << i
		}
	}
	for _, hint := range lower {
		s.hints = append(s.hints, of[hint])
	}
	for _, hint := range exact {
		s.hints = append(s.hints, of[hint])
	}
	s.finder = newFoldingFinder(lower, exact)
	return s
}

// match returns the rules that may change text, as bits.
func (s *ruleSet) match(text []byte) int {
	set, any := s.finder.find(text)
	if !any {
		return 0
	}
	rules := 0
	for i := set.next(); i >= 0; i = set.next() {
		rules |= s.hints[i]
	}
	return rules
}

// Mask returns text with every secret replaced by "***": values of flags, fields, headers and
// variables whose name says so (--api-key X, api_key='X', HF_TOKEN=X), Bearer and Basic credentials,
// passwords and signatures in URLs, and tokens of a known shape (hf_..., sk-..., ghp_..., AKIA...).
// None, null, true, false and empty values are no secrets. Mask(Mask(x)) equals Mask(x).
func Mask(text string) string { return mask(text, secretRules.match([]byte(text))) }

// MaskBytes is Mask for a raw log line; bytes that are not UTF-8 stay as they are. It returns line
// itself, at no cost in memory, when there is nothing to mask.
func MaskBytes(line []byte) []byte {
	rules := secretRules.match(line)
	if rules == 0 {
		return line
	}
	text := string(line)
	if out := mask(text, rules); out != text {
		return []byte(out)
	}
	return line
}

func mask(text string, rules int) string {
	for i := range maskRules {
		if rules&(1<<i) != 0 {
			text = maskRules[i].apply(text)
		}
	}
	return text
}

// apply masks the value of every match, keeping quotes.
func (rule *maskRule) apply(text string) string {
	matches := rule.re.FindAllStringSubmatchIndex(text, -1)
	if matches == nil {
		return text
	}
	var b strings.Builder
	last := 0
	for _, m := range matches {
		from, to := m[3], m[1]
		if len(m) > 4 {
			to = m[4]
		}
		value := text[from:to]
		b.WriteString(text[last:from])
		if rule.keep == nil || !rule.keep(value) {
			value = maskValue(value)
		}
		b.WriteString(value)
		last = to
	}
	b.WriteString(text[last:])
	return b.String()
}

// maskValue masks what stands between the quotes of a value, or the whole of it.
func maskValue(value string) string {
	open := openingQuote(value)
	inner, closing := value[len(open):], strings.TrimLeft(open, "bB")
	if open != "" && strings.HasSuffix(inner, closing) {
		inner = strings.TrimSuffix(inner, closing)
	} else {
		closing = "" // cut off in the middle
	}
	switch inner {
	case "", "None", "null", "True", "False", "true", "false":
		return value
	}
	return open + masked + closing
}

func openingQuote(value string) string {
	for _, quote := range []string{`'`, `"`, `b'`, `b"`, `B'`, `B"`, `\'`, `\"`} {
		if strings.HasPrefix(value, quote) {
			return quote
		}
	}
	return ""
}

// isWord reports whether a value that has the shape of a token is an ordinary word, like
// hf_transfer: keys are random, so they hold a digit or a capital letter.
func isWord(value string) bool {
	return value != masked && value == strings.ToLower(value) && !strings.ContainsAny(value, "0123456789")
}
