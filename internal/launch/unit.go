package launch

import (
	"path/filepath"
	"regexp"
	"strings"
)

var unitSection = regexp.MustCompile(`(?m)^\[(?:Unit|Service|Install)\]\s*$`)

// isUnit reports whether a text is a systemd unit.
func isUnit(text string) bool {
	return unitSection.MatchString(text) && strings.Contains(text, "ExecStart")
}

// setting is one NAME=VALUE line of a unit.
type setting struct {
	section, name, value string
	line                 int
}

// unitSettings reads a unit file (systemd.syntax(7)): sections, comments, and lines continued by a
// backslash, between which comments are skipped.
func unitSettings(text string) []setting {
	var out []setting
	section := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line, start := strings.TrimSpace(lines[i]), i+1
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[' && line[len(line)-1] == ']':
			section = line[1 : len(line)-1]
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			next := strings.TrimSpace(lines[i])
			if next != "" && (next[0] == '#' || next[0] == ';') {
				continue
			}
			line = strings.TrimSuffix(line, `\`) + " " + next
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			out = append(out, setting{section, strings.TrimSpace(name), strings.TrimSpace(value), start})
		}
	}
	return out
}

// readUnit reads the service a systemd unit runs.
func readUnit(source []byte, opt Options) ([]Launch, error) {
	u := unit{opt: opt, name: filepath.Base(opt.Path), env: map[string]string{}}
	var out []Launch
	for _, s := range unitSettings(string(source)) {
		if s.section != "Service" {
			continue
		}
		switch s.name {
		case "Environment":
			for _, word := range unitWords(u.specifiers(s.value)) {
				if m := assignment.FindStringSubmatch(word); m != nil {
					u.env[m[1]] = m[2]
				}
			}
		case "EnvironmentFile":
			name := u.specifiers(strings.TrimPrefix(s.value, "-"))
			for k, v := range envFile(opt, "/", name, u.note) {
				u.env[k] = v
			}
		case "WorkingDirectory":
			u.dir = u.specifiers(strings.TrimPrefix(s.value, "-"))
		case "User":
			u.user = s.value
		}
	}
	for _, s := range unitSettings(string(source)) {
		if s.section == "Service" && (s.name == "ExecStart" || s.name == "ExecStartPre") && s.value != "" {
			out = append(out, u.exec(s)...)
		}
	}
	for i := range out {
		if u.user != "" {
			out[i].note("The unit runs as user %s; start sgtune as that user.", u.user)
		}
	}
	return out, nil
}

// unit is a service while it is read.
type unit struct {
	opt             Options
	name, dir, user string
	env             map[string]string
	notes           []string
}

func (u *unit) note(format string, args ...any) {
	l := Launch{Notes: u.notes}
	l.note(format, args...)
	u.notes = l.Notes
}

// exec reads one ExecStart line.
func (u *unit) exec(s setting) []Launch {
	words := unitWords(u.specifiers(s.value))
	for len(words) > 0 {
		stripped := strings.TrimLeft(words[0], "@-:+!|")
		if stripped != "" {
			words[0] = stripped
			break
		}
		words = words[1:]
	}
	return commandWords(u.expand(words), around{kind: KindUnit, name: u.name, line: s.line, env: u.env, dir: u.dir, notes: u.notes}, u.opt)
}

var (
	unitVariable  = regexp.MustCompile(`\$\$|\$\{([A-Za-z_]\w*)\}`)
	unitBare      = regexp.MustCompile(`^\$([A-Za-z_]\w*)$`)
	unitSpecifier = regexp.MustCompile(`%(.)`)
)

// expand replaces variables as systemd does: ${X} inside a word, and a word $X by its words.
func (u *unit) expand(words []string) []string {
	value := func(name string) string {
		if v, ok := u.env[name]; ok {
			return v
		}
		return reference(name)
	}
	var out []string
	for _, w := range words {
		if m := unitBare.FindStringSubmatch(w); m != nil {
			out = append(out, unitWords(value(m[1]))...)
			continue
		}
		out = append(out, unitVariable.ReplaceAllStringFunc(w, func(v string) string {
			if v == "$$" {
				return "$"
			}
			return value(v[2 : len(v)-1])
		}))
	}
	return out
}

// specifiers replaces what a unit's name tells (%n, %i, %p) and %%; others stay.
func (u *unit) specifiers(s string) string {
	prefix, instance, _ := strings.Cut(strings.TrimSuffix(u.name, filepath.Ext(u.name)), "@")
	return unitSpecifier.ReplaceAllStringFunc(s, func(spec string) string {
		switch spec[1] {
		case '%':
			return "%"
		case 'n':
			return u.name
		case 'p', 'N':
			return prefix
		case 'i', 'I':
			if instance != "" {
				return instance
			}
		case 'h':
			if u.opt.Lookup != nil {
				if home, ok := u.opt.Lookup("HOME"); ok {
					return home
				}
			}
		}
		return spec
	})
}

// unitWords splits a command line as systemd does: quotes around whole words or parts, C escapes.
func unitWords(line string) []string {
	var out []string
	var word strings.Builder
	var quote byte
	started := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteString(unescape(line[i]))
			started = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, started = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if started {
				out = append(out, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteByte(c)
			started = true
		}
	}
	if started {
		out = append(out, word.String())
	}
	return out
}

func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 's':
		return " "
	case '"', '\'', '\\', ' ', '$':
		return string(c)
	}
	return `\` + string(c)
}
