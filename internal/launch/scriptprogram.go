package launch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// program looks at a command that runs a program: SGLang itself, a container around it, or a script
// inside it. env are the assignments before it.
func (w *walker) program(words []string, env map[string]string) {
	if len(words) == 0 {
		return
	}
	if at := containerRun(words); at >= 0 {
		w.container(words, at, env)
		return
	}
	if at := shellCommand(words); at >= 0 {
		w.within(words[:at], env, func() {
			i := shellScript(words, at)
			w.inner(words[i], words[min(i+2, len(words)):])
		})
		return
	}
	l, ok := launchOf(append(slices.Clone(w.before), words...), w.around(env))
	if !ok {
		w.hidden(words, env)
		return
	}
	for name, line := range w.doubts {
		if slices.ContainsFunc(words, func(s string) bool { v := w.vars.known(name).Str; return v != "" && strings.Contains(s, v) }) {
			l.note("$%s is set differently in the branches at line %d; the first was taken.", name, line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.vars.shared.asked)) {
		value, _ := w.opt.Lookup(name)
		if value != "" && name != "HOME" && slices.ContainsFunc(l.Args, func(s string) bool { return strings.Contains(s, value) }) {
			l.note("$%s was taken from your environment.", name)
		}
	}
	w.found = append(w.found, l)
}

// around is what surrounds the current command.
func (w *walker) around(env map[string]string) around {
	all := maps.Clone(w.boxEnv)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, w.vars.environ())
	maps.Copy(all, env)
	a := around{kind: w.kind, name: w.inFunc, line: w.line, env: all, venv: w.venv, container: w.box, version: w.vers, notes: w.notes}
	if d, ok := w.vars.set["PWD"]; ok {
		a.dir = d.Str
	}
	return a
}

// within walks what runs inside wrappers: a script given to bash -c behind srun, sudo, nohup.
func (w *walker) within(before []string, env map[string]string, walk func()) {
	outerBefore, outer := w.before, w.vars
	w.before = append(slices.Clone(w.before), before...)
	w.vars = outer.clone()
	for name, value := range env {
		_ = w.vars.Set(name, text(value))
		w.vars.exported[name] = true
	}
	walk()
	w.before, w.vars = outerBefore, outer
}

var shells = []string{"bash", "sh", "zsh", "dash", "ksh", "ash"}

// shellCommand finds a shell that is given its script as a word: bash -c, bash -lc, sh -e -c.
func shellCommand(words []string) int {
	for i, word := range words {
		if !slices.Contains(shells, path.Base(word)) {
			continue
		}
		for j := i + 1; j+1 < len(words) && strings.HasPrefix(words[j], "-") && !strings.HasPrefix(words[j], "--"); j++ {
			if strings.Contains(words[j], "c") {
				return i
			}
		}
	}
	return -1
}

// shellScript is where the script of the shell at an index stands.
func shellScript(words []string, at int) int {
	i := at + 1
	for !strings.Contains(words[i], "c") {
		i++
	}
	return i + 1
}

// hidden looks for a command line inside one word of a program nobody knows: tmux new 'cmd', ssh
// host "cmd", su -c "cmd".
func (w *walker) hidden(words []string, env map[string]string) {
	for _, word := range words[1:] {
		if strings.ContainsAny(word, " \n") && (strings.Contains(word, "sglang.launch_server") || strings.Contains(word, "sglang serve")) {
			w.within(words[:1], env, func() { w.inner(word, nil) })
			return
		}
	}
}

// container reads docker run and its relatives, and what they run.
func (w *walker) container(words []string, at int, env map[string]string) {
	c, ok := readContainer(words[at:])
	if !ok {
		return
	}
	outerBox, outerEnv, outerBefore, outerVenv, outerVars := w.box, w.boxEnv, w.before, w.venv, w.vars
	outerVers, outerNotes := w.vers, len(w.notes)
	w.box, w.venv, w.before = &c.Container, "", slices.Clone(words[:at])
	w.vars = outerVars.clone()
	clear(w.vars.exported) // a container starts with its own environment
	delete(w.vars.set, "PWD")
	if c.dir != "" {
		_ = w.vars.Set("PWD", text(c.dir))
	}
	c.Dir = outerVars.dir()
	w.boxEnv = c.environ(w.opt, c.Dir, w.exportedWith(env), w.note)
	if v := imageVersion(c.Image); v != "" {
		w.vers = v
	}
	switch {
	case len(c.command) == 0 || strings.HasPrefix(c.command[0], "-"):
		if strings.Contains(strings.ToLower(c.Image), "sglang") || slices.Contains(c.command, "--model-path") {
			w.note("The image's own entry point is taken to be python3 -m sglang.launch_server.")
			c.PlainEntry = true
			w.program(append([]string{"python3", "-m", "sglang.launch_server"}, c.command...), nil)
		}
	default:
		if c.repeatable() && shellDoesMore(c.command) {
			w.note("A shell in the container does more than start the server; a trial's container runs the server alone: put the rest into the image.")
		}
		w.program(c.command, nil)
	}
	w.box, w.boxEnv, w.before, w.venv, w.vars, w.vers = outerBox, outerEnv, outerBefore, outerVenv, outerVars, outerVers
	w.notes = w.notes[:outerNotes]
}

// shellDoesMore reports whether a command is a shell with a script of more than one command.
func shellDoesMore(command []string) bool {
	at := shellCommand(command)
	if at < 0 {
		return false
	}
	script := strings.TrimSpace(strings.ReplaceAll(command[shellScript(command, at)], "\\\n", " "))
	return strings.ContainsAny(script, ";\n") || strings.Contains(script, "&&")
}

// exportedWith looks a variable up as a program of the script would see it.
func (w *walker) exportedWith(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		if v := w.vars.known(name); v.IsSet() {
			return w.vars.unmark(v.Str), true
		}
		return "", false
	}
}

// imageVersion is SGLang's version in an image's tag or file name: lmsysorg/sglang:v0.5.5-cu129,
// /images/sglang-v0.5.12.sqsh; "" when it names none.
func imageVersion(image string) string {
	name, tag, ok := cutTag(image)
	switch {
	case !strings.Contains(strings.ToLower(name), "sglang"):
		return ""
	case !ok:
		tag = path.Base(name)
	}
	return tagVersion.FindString(tag)
}

func cutTag(image string) (name, tag string, ok bool) {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") {
		return image, "", false
	}
	return image[:i], image[i+1:], true
}

func reference(name string) string { return fmt.Sprintf("${%s}", name) }
