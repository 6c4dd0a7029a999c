package sglang

import (
	"maps"
	"slices"
	"strings"
)

// Server is what every launch of a study has in common: the user's own command, the model, fixed
// flags and environment.
type Server struct {
	Command []string          // for example ["python3", "-m", "sglang.launch_server"]
	Model   string            // path or name, as the user wrote it
	Flags   Config            // fixed flags
	Env     map[string]string // fixed environment
	// Container is where Command runs; nil = on the host itself.
	Container *Container `json:",omitempty"`
	// Version of the installed SGLang: flags are passed by the names it has. Zero = not known, and
	// flags are passed as they are.
	Version Version `json:"Version,omitzero"`
}

// Argv is the complete command line of one configuration without port and instrument flags:
// the user's command, --model-path, then fixed flags overlaid by knobs, sorted by name. It is what
// exports print.
func (s Server) Argv(knobs Config) []string {
	argv := slices.Clone(s.Command)
	if s.Model != "" {
		argv = append(argv, "--model-path", s.Model)
	}
	return append(argv, FlagWords(s.Passed(knobs))...)
}

// Passed is what one configuration passes to the server: fixed flags overlaid by knobs, by the names
// of the installed version.
func (s Server) Passed(knobs Config) Config {
	c := Merge(s.Flags, knobs)
	if s.Version == (Version{}) {
		return c
	}
	flags, _ := FlagsOf(s.Version)
	out, _, _ := Translate(c, nil, flags)
	return out
}

// Environ is the environment of one configuration, knobs winning over the fixed one.
func (s Server) Environ(knobs Config) map[string]string {
	env := map[string]string{}
	maps.Copy(env, s.Env)
	maps.Copy(env, knobs.Environ())
	return env
}

// FlagWords spells flags as argv words, sorted by name: booleans become a bare flag or nothing,
// lists one word an element, hicache-size the pair described at Config.
func FlagWords(c Config) []string {
	var words []string
	for _, name := range c.Names() {
		if strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		switch v := c[name].(type) {
		case bool:
			if v {
				words = append(words, "--"+name)
			}
		case []any:
			words = append(words, "--"+name)
			for _, x := range v {
				words = append(words, FormatValue(x))
			}
		default:
			if name == "hicache-size" {
				size, _ := c.Float(name)
				if size <= 0 {
					continue
				}
				if on, _ := c["enable-hierarchical-cache"].(bool); !on {
					words = append(words, "--enable-hierarchical-cache")
				}
			}
			words = append(words, "--"+name, FormatValue(v))
		}
	}
	return words
}
