package tuner

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sgtune/sglang"
)

// readServer reads the server section.
func (d *decoder) readServer(f field) {
	s := &d.study.Server
	d.inside = slices.ContainsFunc(f.value.fields, func(g field) bool { return g.name == "container" })
	defer func() { d.inside = false }()
	seen := d.keys(f.value, "server", map[string]handler{
		"command": d.readCommand,
		"model": func(g field) {
			if w, ok := d.word(g, "server.model", "/models/Kimi-K2.5"); ok {
				s.Model = d.relative(w, strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../"))
			}
		},
		"flags":         d.readFlags,
		"env":           d.readEnv,
		"baseline":      func(g field) { d.study.Baseline = d.config(g, "server.baseline", func(string, field) {}) },
		"ready_timeout": func(g field) { d.study.ReadyTimeout, _ = d.positive(g, "server.ready_timeout") },
		"container":     d.readContainer,
	})
	if !seen["model"] && f.value.kind == mapping {
		d.missing("`server.model` is missing; add the path or name of the model under server:, like model: /models/Kimi-K2.5")
	}
}

// relative makes a path of the host absolute, where is says that it is a path. On another machine it stays as it is:
// there it is relative to the home folder. So it does in a container, which has files of its own.
func (d *decoder) relative(word string, is bool) string {
	if !is || d.remote || d.inside {
		return word
	}
	return d.here(word)
}

// here makes a path of this machine absolute.
func (d *decoder) here(word string) string {
	if filepath.IsAbs(word) || d.dir == "" {
		return word
	}
	return filepath.Join(d.dir, word)
}

// program makes the first word of a command absolute when it is written as a path.
func (d *decoder) program(words []string) []string {
	if len(words) > 0 {
		words[0] = d.relative(words[0], strings.Contains(words[0], "/"))
	}
	return words
}

func (d *decoder) readCommand(f field) {
	if f.value.kind == scalar {
		if d.unstoppable(f.value, strings.Fields(f.value.text)) {
			return
		}
		d.wrong(f.value, "`server.command` must be a list of words, not one text; write it like [python3, -m, sglang.launch_server]")
		return
	}
	words, ok := d.words(f, "server.command", "[python3, -m, sglang.launch_server]")
	if !ok || d.unstoppable(f.value, words) {
		return
	}
	if strings.TrimSpace(words[0]) == "" {
		d.wrong(f.value, "`server.command` starts with an empty word; write the program first, like [python3, -m, sglang.launch_server]")
		return
	}
	for i, w := range words {
		name, inline, _ := strings.Cut(w, "=")
		switch name {
		case "--model-path", "--model":
			d.wrong(f.value.items[i], "`server.command` holds %s; write the model as server.model", quote(w))
		case "--api-key", "--admin-api-key":
			d.secrets = append(d.secrets, f.value.items[min(i+1, len(words)-1)])
			if inline != "" {
				d.secrets = append(d.secrets, f.value.items[i])
			}
		}
	}
	d.study.Server.Command = d.program(words)
}

const (
	insideContainer = "sgtune could not stop what it starts; write server.container: {runtime: docker, image: IMAGE, args: [--gpus, all]} and give the plain command that runs in it"
	insideSlurm     = "sgtune could not stop what it starts; give the plain command, with host: {kind: slurm} each trial gets a job of its own"
	itself          = "sgtune could not stop what it starts; give the plain command, sgtune keeps it running and keeps its log itself"
)

// hidden are programs that start the server where sgtune cannot stop it, and what to use instead.
var hidden = map[string]string{
	"docker": insideContainer, "podman": insideContainer, "nerdctl": insideContainer,
	"srun": insideSlurm, "sbatch": insideSlurm, "salloc": insideSlurm,
	"nohup": itself, "tmux": itself, "screen": itself, "setsid": itself,
}

// unstoppable refuses commands whose server sgtune could not stop.
func (d *decoder) unstoppable(n *node, words []string) bool {
	if len(words) == 0 {
		return false
	}
	if last := words[len(words)-1]; strings.HasSuffix(strings.TrimSpace(last), "&") {
		d.wrong(n, "`server.command` ends in &: the server would run where sgtune cannot stop it; remove the &, sgtune runs it in the background itself")
		return true
	}
	first := 0
	for first < len(words)-1 && (slices.Contains([]string{"sudo", "env", "exec", "nice"}, filepath.Base(words[first])) ||
		strings.Contains(words[first], "=")) {
		first++
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.TrimSpace(w) == "&&" }); i >= 0 {
		d.wrong(n, "`server.command` is not run by a shell, so && means nothing in it; give the one command that starts the server")
		return true
	}
	program := strings.Fields(words[first] + " ")
	if len(program) == 0 {
		return false
	}
	why, bad := hidden[filepath.Base(program[0])]
	if bad {
		d.wrong(n, "`server.command` starts with %s: %s", filepath.Base(program[0]), why)
	}
	return bad
}

func (d *decoder) readFlags(f field) {
	flags := d.config(f, "server.flags", func(name string, g field) {
		d.flags[name] = g
		if secretName(name) {
			d.secrets = append(d.secrets, g.value)
		}
	})
	if v, ok := flags["port"]; ok {
		port, isNumber := v.(float64)
		if !isNumber || port != float64(int(port)) || port < 1 || port > 65535 {
			d.wrong(d.flags["port"].value, "`server.flags.port` cannot be %s; write a port from 1 to 65535, or leave it out and sgtune chooses one",
				quote(sglang.FormatValue(v)))
		} else {
			d.study.Port = int(port)
		}
		delete(flags, "port")
	}
	d.study.Server.Flags = flags
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *decoder) readEnv(f field) {
	env := map[string]string{}
	handlers := map[string]handler{}
	if f.value.kind == mapping {
		for _, g := range f.value.fields {
			handlers[g.name] = func(g field) {
				where := path("server.env", g.name)
				switch {
				case !envName.MatchString(g.name):
					d.at(g.line, g.col, "%s is not the name of an environment variable; use letters, digits and _", quote(g.name))
				case g.value.kind != scalar:
					d.wrong(g.value, "%s must be a text, not %s; write it in quotes", quote(where), describe(g.value))
				default:
					env[g.name] = g.value.text
					if secretName(g.name) {
						d.secrets = append(d.secrets, g.value)
					}
				}
			}
		}
	}
	d.keys(f.value, "server.env", handlers)
	d.study.Server.Env = env
}

var secretSuffix = regexp.MustCompile(`(?i)([_-](token|key|secret|password))$`)

// secretName reports whether a variable or flag holds a secret (contract: "study file").
func secretName(name string) bool { return secretSuffix.MatchString(name) }

// settleQuality moves a lossy fixed KV cache type to the baseline, which runs as the user runs it,
// and gives every other trial bf16.
func (d *decoder) settleQuality() {
	s := d.study
	s.Passed = sglang.Config{}
	if v, fixed := s.Server.Flags[kvDtype]; fixed {
		if keptOut(kvDtype, v) == "" {
			return
		}
		delete(s.Server.Flags, kvDtype)
		if _, set := s.Baseline[kvDtype]; !set {
			s.Baseline[kvDtype] = v
		}
	}
	if _, searched := d.knobs[kvDtype]; !searched {
		s.Passed[kvDtype] = "bf16"
	}
	for _, name := range s.Baseline.Names() {
		if Lossy(name, s.Baseline[name]) != "" {
			s.note("The baseline runs with %s %s as you run it; no other trial does (rule %s).", name, s.Baseline.Text(name), RuleQuality)
		}
	}
}

// SearchBase is what every search trial has beside the knobs of the space: the baseline's values
// without lossy ones, and what is Passed. A candidate differs from what runs today in the
// searched knobs only.
func (s *Study) SearchBase() sglang.Config {
	base := s.Baseline.Clone()
	for name, v := range s.Baseline {
		if Lossy(name, v) != "" {
			delete(base, name)
		}
	}
	return sglang.Merge(base, s.Passed)
}
