package launch

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// launcher finds SGLang's launcher in the words of a command: words[first:after] start it, what
// follows are its arguments.
func launcher(words []string) (first, after int, ok bool) {
	for i, w := range words {
		switch base := path.Base(w); {
		case pythonName.MatchString(base):
			if n := pythonLaunch(words[i+1:]); n > 0 {
				return i, i + 1 + n, true
			}
		case base == "sglang" && i+1 < len(words) && words[i+1] == "serve":
			return i, i + 2, true
		case i+1 < len(words) && words[i+1] == "sim-server": // sgtune's own simulated server
			return i, i + 2, true
		}
	}
	return 0, 0, false
}

var pythonName = regexp.MustCompile(`^(?:python|pypy)[\d.]*$`)

// pythonLaunch counts the words after python that make it start SGLang; 0 when they do not.
func pythonLaunch(words []string) int {
	i := 0
	for i < len(words) && strings.HasPrefix(words[i], "-") && words[i] != "-m" {
		if words[i] == "-X" || words[i] == "-W" {
			i++
		}
		i++
	}
	if i >= len(words) {
		return 0
	}
	if words[i] != "-m" {
		if strings.HasSuffix(words[i], "sglang/launch_server.py") {
			return i + 1
		}
		return 0
	}
	rest := words[i+1:]
	switch {
	case len(rest) == 0:
		return 0
	case rest[0] == "sglang.launch_server", rest[0] == "sglang.srt.server":
		return i + 2
	case (rest[0] == "sglang" || rest[0] == "sglang.cli.main") && len(rest) > 1 && rest[1] == "serve":
		return i + 3
	}
	return 0
}

// treatment is what happens to a program that stands before SGLang's launcher.
type treatment int

const (
	keep  treatment = iota + 1 // stays in server.command: it changes how the server runs
	plain                      // means nothing without a shell
	hides                      // would hide the server from sgtune
	watch                      // profilers and the like: would disturb what is measured
)

// wrappers are programs known to stand before SGLang's launcher.
var wrappers = map[string]treatment{
	"numactl": keep, "taskset": keep, "nice": keep, "ionice": keep, "chrt": keep, "uv": keep, "uvx": keep, "poetry": keep,
	"pdm": keep, "pipenv": keep, "hatch": keep, "conda": keep, "mamba": keep, "micromamba": keep, "pixi": keep,
	"exec": plain, "command": plain, "time": plain, "env": plain, "builtin": plain,
	"nohup": hides, "setsid": hides, "sudo": hides, "doas": hides, "timeout": hides, "srun": hides, "mpirun": hides, "mpiexec": hides,
	"stdbuf": hides, "unbuffer": hides, "tini": hides, "dumb-init": hides, "gosu": hides, "su-exec": hides, "runuser": hides,
	"systemd-run": hides, "systemd-inhibit": hides, "daemonize": hides, "start-stop-daemon": hides, "tmux": hides, "screen": hides, "ssh": hides,
	"nsys": watch, "ncu": watch, "py-spy": watch, "strace": watch, "perf": watch, "gdb": watch, "catchsegv": watch,
}

var assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(?s:(.*))$`)

// around is what surrounds the words of one command: the shell or file they stand in.
type around struct {
	kind      Kind
	name      string
	line      int
	env       map[string]string
	dir, venv string
	container *Container
	version   string
	notes     []string
}

// launchOf makes a launch of a command's words; ok is false when they do not start SGLang.
func launchOf(words []string, a around) (Launch, bool) {
	first, after, ok := launcher(words)
	if !ok {
		return Launch{}, false
	}
	l := Launch{
		Kind: a.kind, Name: a.name, Line: a.line, Dir: a.dir, Container: a.container, Version: a.version,
		Env: maps.Clone(a.env), Notes: slices.Clone(a.notes),
	}
	if l.Env == nil {
		l.Env = map[string]string{}
	}
	l.unwrap(words[:first])
	l.Command = append(l.Command, words[first:after]...)
	l.activate(len(l.Command)-(after-first), a.venv)
	l.Args = serveArgs(&l, words[after:])
	if v := requirement.FindStringSubmatch(strings.Join(words[:first], " ")); v != nil && l.Version == "" {
		l.Version = v[1]
	}
	if v := simVersion.FindStringSubmatch(strings.Join(l.Args, " ")); v != nil && l.Command[len(l.Command)-1] == "sim-server" {
		l.Version = v[1]
	}
	return l, true
}

// simVersion is the version a simulated server plays.
var simVersion = regexp.MustCompile(`--sim-version[= ](\S+)`)

// requirement is a version of SGLang as pip and uv are asked for it.
var requirement = regexp.MustCompile(`\bsglang(?:\[[^\]]*\])?==([0-9][0-9A-Za-z.+]*)`)

// unwrap sorts the words before the launcher: each known program takes the words up to the next one.
func (l *Launch) unwrap(words []string) {
	var left []string
	for i := 0; i < len(words); {
		name := path.Base(words[i])
		end := i + 1
		for end < len(words) && wrappers[path.Base(words[end])] == 0 {
			end++
		}
		segment := words[i:end]
		switch wrappers[name] {
		case keep:
			l.Command = append(l.Command, segment...)
		case plain, hides, watch:
			l.assignments(segment)
			l.outside(name, segment)
			if wrappers[name] != plain {
				left = append(left, name)
			}
		default:
			if m := assignment.FindStringSubmatch(words[i]); m != nil {
				l.Env[m[1]] = m[2]
				i++
				continue
			}
			l.Command = append(l.Command, segment...) // a wrapper of the user's own
		}
		i = end
	}
	if len(left) > 0 {
		l.note("Left out before the command: %s. sgtune starts the server itself, keeps its log and must be able to stop it.", strings.Join(left, ", "))
	}
}

// assignments takes NAME=VALUE words of env and sudo into the environment.
func (l *Launch) assignments(segment []string) {
	for _, w := range segment[1:] {
		if m := assignment.FindStringSubmatch(w); m != nil {
			l.Env[m[1]] = m[2]
		}
	}
}

// outside notes what a left-out wrapper does that sgtune does not.
func (l *Launch) outside(name string, segment []string) {
	switch name {
	case "sudo", "doas", "gosu", "su-exec", "runuser":
		l.note("The server runs through %s; start sgtune itself as that user.", name)
	case "srun", "mpirun", "mpiexec":
		l.note("The server runs through %s; run sgtune inside the allocation.", name)
		for i, w := range segment {
			if v, ok := strings.CutPrefix(w, "--container-image="); ok {
				l.Container = &Container{Runtime: "pyxis", Image: v}
			} else if w == "--container-image" && i+1 < len(segment) {
				l.Container = &Container{Runtime: "pyxis", Image: segment[i+1]}
			}
		}
		if l.Container != nil && l.Version == "" {
			l.Version = imageVersion(l.Container.Image)
		}
	case "ssh":
		l.note("The server runs on another machine through ssh; run sgtune there.")
	}
}

// activate gives a bare python or sglang the place that an activated environment would.
func (l *Launch) activate(at int, venv string) {
	word := l.Command[at]
	switch {
	case venv != "" && !strings.Contains(word, "/"):
		l.Command[at] = path.Join(venv, "bin", word)
	case l.Dir != "" && path.IsAbs(l.Dir) && strings.Contains(word, "/") && !path.IsAbs(word):
		l.Command[at] = path.Join(l.Dir, word)
	}
}

// serveArgs are SGLang's arguments; what only `sglang serve` takes is put where it belongs: a model
// without a flag (cli/serve.py), and the choice of a backend, which stays in the command.
func serveArgs(l *Launch, args []string) []string {
	args = slices.Clone(args)
	if l.Command[len(l.Command)-1] != "serve" {
		return args
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append([]string{"--model-path"}, args...)
	}
	for i, w := range args {
		switch {
		case strings.HasPrefix(w, "--model-type="):
			l.Command = append(l.Command, w)
			return slices.Delete(args, i, i+1)
		case w == "--model-type" && i+1 < len(args):
			l.Command = append(l.Command, args[i:i+2]...)
			return slices.Delete(args, i, i+2)
		}
	}
	return args
}
