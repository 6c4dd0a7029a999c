package export

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sgtune/sglang"
)

// DefaultPort stands where a command says {port}: SGLang's own default.
const DefaultPort = "30000"

// Profile is one configuration to launch and where it came from.
type Profile struct {
	Study     string
	Trial     int
	Baseline  bool // the configuration that ran before the study
	Confirmed bool // a confirmation found it better than the baseline
	Simulated bool // measured on a simulated host
	Server    sglang.Server
	Config    sglang.Config // knobs of the trial
	Version   string        // SGLang version it was measured with, "" when not recorded
	Figures   []string      // one line each: throughput with its load level, gain with its interval
	Date      time.Time     // when it was measured
}

// comment lists the lines that say where the profile came from.
func (p Profile) comment() []string {
	what := fmt.Sprintf("%s, trial %d", p.Study, p.Trial)
	if p.Baseline {
		what += " (the baseline: what ran before)"
	}
	lines := []string{what + ", exported by sgtune"}
	if p.Simulated {
		lines = append(lines, "SIMULATED: measured on a simulated host, not on a real server")
	}
	if !p.Confirmed && !p.Baseline {
		lines = append(lines, "UNCONFIRMED: no confirmation has found this configuration better than the baseline")
	}
	version := p.Version
	if version == "" {
		version = "not recorded"
	}
	lines = append(lines, "SGLang version: "+version)
	if where := p.containerLine(); where != "" {
		lines = append(lines, where)
	}
	lines = append(lines, p.Figures...)
	if !p.Date.IsZero() {
		lines = append(lines, "measured "+p.Date.UTC().Format("2006-01-02 15:04 MST"))
	}
	if p.masked() {
		lines = append(lines, "*** stands for a secret that sgtune did not store: put it in by hand")
	}
	return lines
}

// writeComment writes lines as comments; a line break inside a text cannot end its comment.
func writeComment(w io.Writer, lines []string) error {
	for _, text := range lines {
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029' }) {
			if _, err := fmt.Fprintln(w, strings.TrimRight("# "+strings.Map(printable, line), " ")); err != nil {
				return err
			}
		}
	}
	return nil
}

func printable(r rune) rune {
	if r != '\t' && r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == '\ufeff' {
		return '?'
	}
	return r
}

// word is one word of a command line: a text, or the name of a variable that holds a secret.
type word struct {
	text   string
	secret string
}

// words is the command line, secrets named.
func (p Profile) words() []word { return toWords(p.Server.Argv(p.Config)) }

func toWords(argv []string) []word {
	out := make([]word, len(argv))
	for i, text := range argv {
		out[i] = word{text: strings.ReplaceAll(text, "{port}", DefaultPort)}
		if name := referenced(text); name != "" {
			out[i] = word{secret: name}
		} else if i > 0 && !strings.HasPrefix(text, "--") {
			out[i].secret = secretFlag(argv[i-1])
		}
	}
	return out
}

// variable is one environment variable; a secret's value is not known.
type variable struct {
	name, value string
	secret      bool
}

// environment lists the variables by name.
func (p Profile) environment() []variable {
	var out []variable
	for name, value := range p.Server.Environ(p.Config) {
		out = append(out, variable{name: name, value: value, secret: secretVariable(name) || referenced(value) == name})
	}
	slices.SortFunc(out, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return out
}

var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// referenced is the variable that a masked value names, "" for an ordinary value.
func referenced(value string) string {
	if m := reference.FindStringSubmatch(value); m != nil {
		return m[1]
	}
	return ""
}

// secretVariable reports whether an environment variable's name says that it holds a secret.
func secretVariable(name string) bool {
	for _, suffix := range []string{"_TOKEN", "_KEY", "_SECRET", "_PASSWORD"} {
		if strings.HasSuffix(strings.ToUpper(name), suffix) {
			return true
		}
	}
	return false
}

// secretFlag is the variable that stands for the value of a flag whose name says secret
// (--api-key: SGLANG_API_KEY), "" for other words.
func secretFlag(flag string) string {
	name, ok := strings.CutPrefix(flag, "--")
	if !ok || sglang.Mask(flag+" x1") == flag+" x1" {
		return ""
	}
	return "SGLANG_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// masked reports whether a secret is missing that no variable stands for.
func (p Profile) masked() bool {
	for _, w := range p.launch() {
		if w.secret == "" && strings.Contains(w.text, "***") {
			return true
		}
	}
	for _, v := range p.environment() {
		if !v.secret && strings.Contains(v.value, "***") {
			return true
		}
	}
	return false
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check refuses what no program can be started with.
func (p Profile) check() error {
	var problems []error
	argv := p.Server.Argv(p.Config)
	if c := p.Server.Container; c != nil {
		argv = append(append(argv, c.Image), c.Args...)
	}
	for _, w := range argv {
		if strings.ContainsRune(w, 0) || !utf8.ValidString(w) {
			problems = append(problems, fmt.Errorf("export: the word %q cannot be written into a text file", w))
		}
	}
	for _, v := range p.environment() {
		if !variableName.MatchString(v.name) || strings.ContainsRune(v.value, 0) || !utf8.ValidString(v.value) {
			problems = append(problems, fmt.Errorf("export: the environment variable %q cannot be set from a file", v.name))
		}
	}
	if len(p.Server.Command) == 0 {
		problems = append(problems, errors.New("export: the study has no server command"))
	}
	return errors.Join(problems...)
}
