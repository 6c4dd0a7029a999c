package launch

import (
	"maps"

	"mvdan.cc/sh/v3/syntax"
)

// commandWords finds the launches in a command that is given as words (a unit, a compose file, a
// manifest, a process), also behind docker run or inside a script given to a shell.
func commandWords(words []string, a around, opt Options) []Launch {
	w := &walker{
		opt: opt, kind: a.kind, vars: newVariables(opt), funcs: map[string]*syntax.FuncDecl{}, doubts: map[string]int{}, called: map[string]bool{},
		inFunc: a.name, line: max(1, a.line), box: a.container, boxEnv: maps.Clone(a.env), notes: a.notes, vers: a.version,
	}
	for name, value := range a.env {
		_ = w.vars.Set(name, text(value))
	}
	if a.dir != "" {
		_ = w.vars.Set("PWD", text(a.dir))
	}
	w.program(words, nil)
	if len(w.found) == 0 { // a script that chooses by what is not known here
		w.all = true
		w.program(words, nil)
	}
	for i := range w.found {
		if a.line == 0 {
			w.found[i].Line = 0
		}
		w.found[i].Name = a.name
	}
	return w.found
}
