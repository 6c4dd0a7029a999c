package launch

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Limits of a walk through a script.
const (
	maxStatements = 20_000
	maxDepth      = 24 // functions, inner scripts and blocks
	maxTurns      = 16 // of one loop
)

// readScript reads a shell script, a Slurm batch script, or a bare line of arguments. It walks the
// statements in order and keeps the variables, but runs nothing.
func readScript(source []byte, opt Options) ([]Launch, error) {
	text := strings.Map(func(r rune) rune {
		if r == markStart || r == markEnd {
			return -1
		}
		return r
	}, unprompted(string(source)))
	kind := KindScript
	if slurmLine.MatchString(text) {
		kind = KindSlurm
	}
	var found []Launch
	for _, all := range []bool{false, true} { // what depends on the script's arguments is seen in the second reading
		w := &walker{opt: opt, kind: kind, vars: newVariables(opt), all: all, funcs: map[string]*syntax.FuncDecl{}, doubts: map[string]int{}, called: map[string]bool{}}
		if err := w.script(text); err != nil {
			return nil, err
		}
		w.uncalled()
		if found = w.found; len(found) > 0 {
			break
		}
	}
	if len(found) == 0 {
		if l, ok := bareArguments(text, opt); ok {
			return []Launch{l}, nil
		}
	}
	return found, nil
}

var slurmLine = regexp.MustCompile(`(?m)^#SBATCH\b`)

// bareArguments reads a file that holds nothing but SGLang's arguments.
func bareArguments(text string, opt Options) (Launch, bool) {
	w := &walker{opt: opt, vars: newVariables(opt), doubts: map[string]int{}}
	file, err := syntax.NewParser().Parse(strings.NewReader(commentEnds(text)), "")
	if err != nil || len(file.Stmts) == 0 {
		return Launch{}, false
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || !strings.HasPrefix(call.Args[0].Lit(), "--") {
		return Launch{}, false
	}
	w.text = text
	words := w.unmarkAll(w.fields(call.Args))
	if !slices.ContainsFunc(words, func(s string) bool { return strings.HasPrefix(s, "--model") }) {
		return Launch{}, false
	}
	l, ok := launchOf(append([]string{"python3", "-m", "sglang.launch_server"}, words...), around{kind: KindArgv, line: 1})
	l.note("The file holds arguments only; python3 -m sglang.launch_server is assumed to start them.")
	return l, ok
}

// walker goes through a script's statements.
type walker struct {
	opt    Options
	kind   Kind
	text   string // of the script being walked
	base   int    // lines before it, when it is a script inside a script
	line   int    // of the statement
	vars   *variables
	all    bool // second reading: every branch is taken
	funcs  map[string]*syntax.FuncDecl
	called map[string]bool
	inFunc string
	venv   string
	box    *Container // the container the walked script runs in
	boxEnv map[string]string
	before []string // wrappers around an inner script
	doubts map[string]int
	notes  []string
	vers   string
	steps  int
	depth  int
	found  []Launch
}

func (w *walker) note(format string, args ...any) {
	if text := w.vars.unmark(fmt.Sprintf(format, args...)); !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// script parses and walks one script text.
func (w *walker) script(text string) error {
	text = commentEnds(text)
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return fmt.Errorf("the shell script has a syntax error (%w); mend it, or give the command line alone in a file", err)
	}
	outer := w.text
	w.text = text
	w.stmts(file.Stmts)
	w.text = outer
	return nil
}

// commentEnds takes the backslash off the end of comments: in a shell a comment ends with its line,
// whatever is in it, while the parser would read on.
func commentEnds(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		at := strings.IndexByte(line, '#')
		if at < 0 || !strings.HasSuffix(line, `\`) || at > 0 && line[at-1] != ' ' && line[at-1] != '\t' {
			continue
		}
		before := line[:at]
		if strings.Count(before, `"`)%2 == 0 && strings.Count(before, "'")%2 == 0 {
			lines[i] = strings.TrimRight(line, `\`)
		}
	}
	return strings.Join(lines, "\n")
}

// inner walks a script given as a text inside another: bash -c "...".
func (w *walker) inner(text string, params []string) {
	if w.depth >= maxDepth {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	base, outerParams := w.base, w.vars.params
	w.base, w.vars.params = w.line-1, params
	if err := w.script(text); err != nil {
		w.note("Line %d runs a script of its own that cannot be read.", w.line)
	}
	w.base, w.vars.params = base, outerParams
}

// uncalled walks functions nothing has called, when nothing else was found: a script that is used
// like `serve.sh start`.
func (w *walker) uncalled() {
	if !w.all || len(w.found) > 0 {
		return
	}
	for name, f := range w.funcs {
		if !w.called[name] {
			w.inFunc = name
			w.stmt(f.Body)
		}
	}
	slices.SortFunc(w.found, func(a, b Launch) int { return a.Line - b.Line })
}

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		w.stmt(s)
	}
}

func (w *walker) stmt(s *syntax.Stmt) {
	if w.steps++; w.steps > maxStatements || w.depth >= maxDepth || s == nil || s.Cmd == nil {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	w.line = w.base + int(s.Pos().Line())
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(cmd)
	case *syntax.DeclClause:
		w.declare(cmd)
	case *syntax.Block:
		w.stmts(cmd.Stmts)
	case *syntax.Subshell:
		outer := w.vars
		w.vars = outer.clone()
		w.stmts(cmd.Stmts)
		w.vars = outer
	case *syntax.BinaryCmd:
		w.binary(cmd)
	case *syntax.IfClause:
		w.ifClause(cmd)
	case *syntax.CaseClause:
		w.caseClause(cmd)
	case *syntax.ForClause:
		w.forClause(cmd)
	case *syntax.WhileClause:
		w.whileClause(cmd)
	case *syntax.FuncDecl:
		if cmd.Name != nil {
			w.funcs[cmd.Name.Value] = cmd
		}
	case *syntax.TimeClause:
		w.stmt(cmd.Stmt)
	case *syntax.CoprocClause:
		w.stmt(cmd.Stmt)
	case *syntax.ArithmCmd:
		_, _ = expand.Arithm(w.config(), cmd.X) // (( N++ )) sets variables; what fails is unknown
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			_, _ = expand.Arithm(w.config(), x) // as above
		}
	}
}

// call is a simple command: assignments, a builtin, a function, an inner script, or a program.
func (w *walker) call(cmd *syntax.CallExpr) {
	line := w.line
	if len(cmd.Args) == 0 {
		for _, a := range cmd.Assigns {
			w.assign(a, false)
		}
		return
	}
	words := w.fields(cmd.Args)
	if len(words) == 0 {
		return
	}
	if f := w.funcs[words[0]]; f != nil {
		w.function(words[0], f, words[1:])
		return
	}
	if w.builtin(words) {
		return
	}
	env := map[string]string{}
	for _, a := range cmd.Assigns {
		if a.Name != nil && a.Array == nil {
			env[a.Name.Value] = w.vars.unmark(w.literal(a.Value))
		}
	}
	w.line = line
	w.program(w.unmarkAll(words), env)
}

func (w *walker) unmarkAll(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = w.vars.unmark(word)
	}
	return out
}

func (w *walker) function(name string, f *syntax.FuncDecl, params []string) {
	w.called[name] = true
	outerParams, outerFunc := w.vars.params, w.inFunc
	w.vars.params, w.inFunc = params, name
	w.stmt(f.Body)
	w.vars.params, w.inFunc = outerParams, outerFunc
}

// builtin does what changes later commands; it reports whether the words were one.
func (w *walker) builtin(words []string) bool {
	switch words[0] {
	case "cd", "pushd":
		if len(words) > 1 && !marked(words[len(words)-1]) {
			_ = w.vars.Set("PWD", text(w.path(words[len(words)-1])))
		}
	case "source", ".":
		if len(words) > 1 {
			w.sourceFile(w.vars.unmark(words[1]), words[2:])
		}
	case "set":
		w.setBuiltin(words[1:])
	case "shift":
		if n := len(w.vars.params); n > 0 {
			w.vars.params = w.vars.params[1:]
		}
	case "unset":
		for _, name := range words[1:] {
			_ = w.vars.Set(name, expand.Variable{})
		}
	case "eval":
		w.inner(w.vars.unmark(strings.Join(words[1:], " ")), nil)
	case "conda", "mamba", "micromamba", "pyenv":
		if len(words) > 2 && (words[1] == "activate" || words[1] == "shell") {
			w.note("The script activates the %s environment %s; start sgtune inside it, or write the full path of its python into server.command.", words[0], words[2])
			return true
		}
		return false
	case "pip", "pip3":
		if m := requirement.FindStringSubmatch(strings.Join(words, " ")); m != nil {
			w.vers = m[1]
		}
	case "module":
		w.note("The script runs `%s`; run it before sgtune.", strings.Join(words, " "))
	case "exit", "return", "echo", "printf", "trap", "wait", "mkdir", "sleep", "ulimit", "[", "test":
	default:
		if strings.HasPrefix(words[0], "--") && len(w.found) > 0 {
			w.note("Line %d, %s, never reaches SGLang: a comment or an empty line ends the command above it.", w.line, shorten(strings.Join(words, " "), 60))
			last := &w.found[len(w.found)-1]
			last.note("%s", w.notes[len(w.notes)-1])
			return true
		}
		return false
	}
	return true
}

func (w *walker) setBuiltin(words []string) {
	for i, word := range words {
		switch {
		case word == "--":
			w.vars.params = words[i+1:]
			return
		case word == "allexport":
			w.vars.shared.allExp = i > 0 && words[i-1] == "-o"
		case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "a"):
			w.vars.shared.allExp = true
		case strings.HasPrefix(word, "+") && strings.Contains(word, "a"):
			w.vars.shared.allExp = false
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+") && i == 0:
			w.vars.params = words
			return
		}
	}
}

// sourceFile follows `source`: a virtual environment is remembered, another file is read when it may
// be.
func (w *walker) sourceFile(name string, params []string) {
	if path.Base(name) == "activate" && path.Base(path.Dir(name)) == "bin" {
		w.venv = w.path(path.Dir(path.Dir(name)))
		return
	}
	if w.opt.ReadFile == nil || unknown(name) || w.depth > 4 {
		w.note("Line %d sources %s, which was not read.", w.line, name)
		return
	}
	source, err := w.opt.ReadFile(w.path(name))
	if err != nil || len(source) > maxSource {
		w.note("Line %d sources %s, which cannot be read here; what it sets is unknown.", w.line, name)
		return
	}
	line := w.line
	w.inner(string(source), params)
	w.line = line
	w.note("What %s sets was read too.", filepath.Base(name))
}
