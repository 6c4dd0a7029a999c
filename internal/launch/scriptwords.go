package launch

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// config is how words of the script are expanded: no globbing, no commands.
func (w *walker) config() *expand.Config {
	return &expand.Config{Env: w.vars, CmdSubst: w.substitute, ProcSubst: func(*syntax.ProcSubst) (string, error) {
		return w.vars.mark("$(...)"), nil
	}}
}

// fields expands words as the shell would: variables, arrays, word splitting, braces, arithmetic.
func (w *walker) fields(words []*syntax.Word) []string {
	w.vars.overlay = w.missing(words)
	defer func() { w.vars.overlay = nil }()
	var out []string
	for field, err := range expand.FieldsSeq(w.config(), words...) {
		if err != nil {
			w.failed(err)
			break
		}
		if out = append(out, field); len(out) >= maxFields {
			break
		}
	}
	return out
}

// literal expands one word without splitting, as an assignment does.
func (w *walker) literal(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	w.vars.overlay = w.missing([]*syntax.Word{word})
	defer func() { w.vars.overlay = nil }()
	out, err := expand.Literal(w.config(), word)
	if err != nil {
		w.failed(err)
		return w.vars.mark(w.source(word))
	}
	return out
}

// failed notes an expansion that needs the shell; ${X:?message} is the ordinary case.
func (w *walker) failed(err error) {
	var unset expand.UnsetParameterError
	if errors.As(err, &unset) {
		return
	}
	w.note("Line %d could not be read whole (%v).", w.line, err)
}

// source is a piece of the script as written.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.text) || from >= to {
		return "$(...)"
	}
	s := shorten(strings.Join(strings.Fields(w.text[from:to]), " "), 80)
	if strings.HasPrefix(s, "`") {
		s = "$(" + strings.Trim(s, "`") + ")"
	}
	return s
}

// missing finds the plain uses of variables nobody knows ($X, ${X}; not ${X:-1}), and gives what
// stands for them. An unset variable in a test or a default is simply empty, as in the shell.
func (w *walker) missing(words []*syntax.Word) map[string]string {
	var out map[string]string
	assigned := map[string]bool{} // by ${X:=1} in the same words
	see := func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				assigned[n.Param.Value] = true
			}
			if n.Param == nil || assigned[n.Param.Value] || n.Exp != nil && overrides(n.Exp.Op) || n.Length || n.Excl || n.Index != nil {
				return true
			}
			name := n.Param.Value
			if name == "@" || name == "*" || name == "#" || strings.HasPrefix(name, "!") {
				return true
			}
			if line, ok := w.vars.doubt[name]; ok {
				w.doubts[name] = line
			}
			value := w.vars.known(name)
			stand, wasUnknown := w.vars.empty[name]
			switch {
			case value.IsSet() && (value.Kind != expand.String || value.Str != "" || !wasUnknown):
				return true
			case !wasUnknown:
				stand = w.vars.mark("${" + name + "}")
			}
			if out == nil {
				out = map[string]string{}
			}
			out[name] = stand
		}
		return true
	}
	for _, word := range words {
		syntax.Walk(word, func(n syntax.Node) bool { return n != nil && see(n) })
	}
	return out
}

// overrides reports whether an operator gives a value of its own to an unset variable.
func overrides(op syntax.ParExpOperator) bool {
	return slices.Contains([]syntax.ParExpOperator{
		syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull,
	}, op)
}

// substitute gives the output of the few commands that are certain without running them: pwd,
// dirname, realpath, echo, and `cd X && pwd`. Everything else is unknown.
func (w *walker) substitute(out io.Writer, cs *syntax.CmdSubst) error {
	overlay := w.vars.overlay
	w.vars.overlay = nil
	defer func() { w.vars.overlay = overlay }()
	value, ok := w.output(cs.Stmts)
	if !ok {
		value = w.vars.mark(w.source(cs))
	}
	_, err := io.WriteString(out, value)
	return err
}

func (w *walker) output(stmts []*syntax.Stmt) (string, bool) {
	if len(stmts) != 1 || stmts[0].Cmd == nil {
		return "", false
	}
	switch cmd := stmts[0].Cmd.(type) {
	case *syntax.BinaryCmd: // cd "$(dirname "$0")" && pwd
		x, ok := cmd.X.Cmd.(*syntax.CallExpr)
		if cmd.Op != syntax.AndStmt || !ok {
			return "", false
		}
		y, ok := cmd.Y.Cmd.(*syntax.CallExpr)
		if !ok {
			return "", false
		}
		first, second := w.fields(x.Args), w.fields(y.Args)
		if len(first) == 2 && first[0] == "cd" && len(second) > 0 && second[0] == "pwd" && !marked(first[1]) {
			return w.path(first[1]), true
		}
	case *syntax.CallExpr:
		return w.outputOf(w.fields(cmd.Args))
	}
	return "", false
}

func (w *walker) outputOf(words []string) (string, bool) {
	if len(words) == 0 || marked(strings.Join(words, " ")) {
		return "", false
	}
	last := words[len(words)-1]
	switch words[0] {
	case "pwd":
		return w.vars.dir(), true
	case "dirname":
		return filepath.Dir(last), len(words) > 1
	case "which": // the program's name finds the same one
		return last, len(words) == 2
	case "command":
		return last, len(words) == 3 && words[1] == "-v"
	case "basename":
		return filepath.Base(last), len(words) == 2
	case "realpath", "readlink":
		return w.path(last), len(words) > 1
	case "echo":
		return strings.Join(words[1:], " "), len(words) > 1 && !strings.HasPrefix(words[1], "-")
	}
	return "", false
}

// path makes a path of the script absolute, as far as the folder is known.
func (w *walker) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(w.vars.dir(), p)
}
