package launch

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
)

// readCompose reads every service of a compose file that runs SGLang.
func readCompose(root *mapping, opt Options) ([]Launch, error) {
	var out []Launch
	services := root.child("services")
	if services == nil {
		return nil, nil
	}
	c := composer{opt: opt, dotenv: map[string]string{}}
	if opt.ReadFile != nil {
		if source, err := opt.ReadFile(filepath.Join(filepath.Dir(opt.Path), ".env")); err == nil && len(source) <= maxSource {
			c.dotenv = parseEnvFile(string(source))
		}
	}
	for i, name := range services.keys {
		if service, ok := services.values[i].(*mapping); ok {
			out = append(out, c.service(name, services.lines[i], service)...)
		}
	}
	return out, nil
}

type composer struct {
	opt    Options
	dotenv map[string]string
	notes  []string
}

func (c *composer) note(format string, args ...any) {
	l := Launch{Notes: c.notes}
	l.note(format, args...)
	c.notes = l.Notes
}

func (c *composer) service(name string, line int, s *mapping) []Launch {
	c.notes = nil
	box := &Container{Runtime: "compose", Image: c.text(s.text("image"))}
	for _, key := range []string{"volumes", "ports", "shm_size", "ipc", "network_mode", "runtime", "gpus", "privileged", "ulimits", "devices", "cap_add"} {
		if v := s.get(key); v != nil {
			box.Args = append(box.Args, key+": "+c.text(flat(v)))
		}
	}
	if s.child("deploy") != nil {
		box.Args = append(box.Args, "deploy: "+flat(s.get("deploy")))
	}
	words := append(c.words(s.get("entrypoint")), c.words(s.get("command"))...)
	a := around{
		kind: KindCompose, name: name, line: line, env: c.environment(s), dir: c.text(s.text("working_dir")),
		container: box, version: imageVersion(box.Image), notes: c.notes,
	}
	if launches := commandWords(words, a, c.opt); len(launches) > 0 {
		return launches
	}
	if len(words) > 0 && strings.HasPrefix(words[0], "--") && strings.Contains(strings.ToLower(box.Image), "sglang") {
		a.notes = append(a.notes, "The image's own entry point is taken to be python3 -m sglang.launch_server.")
		return commandWords(append([]string{"python3", "-m", "sglang.launch_server"}, words...), a, c.opt)
	}
	return nil
}

// words is a command: a list of words, or one text that is split like a shell does.
func (c *composer) words(v any) []string {
	switch v := v.(type) {
	case []any:
		words, _ := texts(v)
		for i := range words {
			words[i] = c.text(words[i])
		}
		return words
	case string:
		return shellQuoted(c.text(v))
	}
	return nil
}

// environment reads environment and env_file; a variable without a value is passed through.
func (c *composer) environment(s *mapping) map[string]string {
	env := map[string]string{}
	files, _ := s.get("env_file").([]any)
	if one := s.text("env_file"); one != "" {
		files = []any{one}
	}
	for _, f := range files {
		name, _ := scalar(f)
		if m, ok := f.(*mapping); ok {
			name = m.text("path")
		}
		maps.Copy(env, envFile(c.opt, filepath.Dir(c.opt.Path), c.text(name), c.note))
	}
	set := func(name, value string, given bool) {
		if !given {
			value = reference(name)
		}
		env[name] = c.text(value)
	}
	switch v := s.get("environment").(type) {
	case *mapping:
		for i, name := range v.keys {
			value, given := scalar(v.values[i])
			set(name, value, given)
		}
	case []any:
		for _, item := range v {
			word, _ := scalar(item)
			name, value, given := strings.Cut(word, "=")
			set(name, value, given)
		}
	}
	return env
}

var composeVariable = regexp.MustCompile(`\$\$|\$\{([A-Za-z_]\w*)(?:(:?[-?+])([^{}]*))?\}|\$([A-Za-z_]\w*)`)

// text interpolates as compose does: $X, ${X}, ${X:-default}, ${X-default}, ${X:+other}, $$. The
// .env file beside it and the reader's environment give the values.
func (c *composer) text(s string) string {
	return composeVariable.ReplaceAllStringFunc(s, func(match string) string {
		if match == "$$" {
			return "$"
		}
		m := composeVariable.FindStringSubmatch(match)
		name, op, word := m[1]+m[4], m[2], m[3]
		value, set := c.dotenv[name]
		if !set && c.opt.Lookup != nil {
			value, set = c.opt.Lookup(name)
		}
		if strings.HasPrefix(op, ":") && value == "" {
			set = false
		}
		switch {
		case strings.HasSuffix(op, "+"):
			if set {
				return word
			}
			return ""
		case set:
			return value
		case strings.HasSuffix(op, "-"):
			return word
		}
		return reference(name)
	})
}

// flat spells a YAML value in one line, for a comment.
func flat(v any) string {
	switch v := v.(type) {
	case *mapping:
		parts := make([]string, len(v.keys))
		for i, k := range v.keys {
			parts[i] = k + ": " + flat(v.values[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = flat(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	s, _ := scalar(v)
	return s
}

// shellQuoted splits a text at blanks outside quotes, as compose does: a backslash and a line break
// are blanks too, nothing is expanded.
func shellQuoted(s string) []string {
	var out []string
	var word strings.Builder
	var quote rune
	started, escaped := false, false
	for _, c := range s {
		switch {
		case escaped:
			escaped = false
			if c == '\n' {
				continue
			}
			if quote == '"' && c != '"' && c != '\\' && c != '$' && c != '`' {
				word.WriteByte('\\')
			}
			word.WriteRune(c)
			started = true
		case c == '\\' && quote != '\'':
			escaped = true
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
			word.WriteRune(c)
			started = true
		}
	}
	if started {
		out = append(out, word.String())
	}
	return out
}
