package launch

import (
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// assign sets one variable. What comes from the script's own arguments is empty as far as tests and
// defaults go, and is remembered as unknown.
func (w *walker) assign(a *syntax.Assign, export bool) {
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	if export {
		w.vars.exported[name] = true
	}
	if a.Naked {
		return
	}
	old := w.vars.known(name)
	var value expand.Variable
	switch {
	case a.Array != nil:
		value = w.array(a.Array, old, a.Append)
	case a.Index != nil:
		return // one element of an array: not followed
	case a.Append && old.Kind == expand.Indexed:
		value = list(append(append([]string{}, old.List...), w.literal(a.Value)))
	case a.Append:
		value = text(old.Str + w.literal(a.Value))
	default:
		if stand, ok := w.argument(a.Value); ok {
			_ = w.vars.Set(name, text(""))
			w.vars.empty[name] = stand
			return
		}
		value = text(w.literal(a.Value))
	}
	_ = w.vars.Set(name, value)
}

// argument reports whether a word is nothing but an unset $1 or another unset variable.
func (w *walker) argument(word *syntax.Word) (string, bool) {
	if word == nil || len(word.Parts) != 1 {
		return "", false
	}
	part := word.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Index != nil || p.Length || p.Excl || p.Slice != nil || p.Repl != nil {
		return "", false
	}
	if p.Exp != nil && (p.Exp.Op != syntax.DefaultUnset && p.Exp.Op != syntax.DefaultUnsetOrNull || p.Exp.Word != nil && len(p.Exp.Word.Parts) > 0) {
		return "", false
	}
	name := p.Param.Value
	if stand, ok := w.vars.empty[name]; ok {
		return stand, true
	}
	if name == "@" || name == "*" || name == "#" || w.vars.known(name).IsSet() {
		return "", false
	}
	return w.vars.mark("${" + name + "}"), true
}

func (w *walker) array(a *syntax.ArrayExpr, old expand.Variable, more bool) expand.Variable {
	if len(a.Elems) > 0 && a.Elems[0].Index != nil {
		return w.table(a)
	}
	var out []string
	if more {
		out = append(out, old.List...)
		if old.Kind == expand.String && old.Str != "" {
			out = append(out, old.Str)
		}
	}
	for _, e := range a.Elems {
		if e.Value != nil {
			out = append(out, w.fields([]*syntax.Word{e.Value})...)
		}
	}
	return list(out)
}

// table is an array with keys.
func (w *walker) table(a *syntax.ArrayExpr) expand.Variable {
	out := map[string]string{}
	for _, e := range a.Elems {
		if key, ok := e.Index.(*syntax.Word); ok && e.Value != nil {
			out[w.literal(key)] = w.literal(e.Value)
		}
	}
	return expand.Variable{Set: true, Kind: expand.Associative, Map: out}
}

func (w *walker) declare(d *syntax.DeclClause) {
	export := d.Variant.Value == "export"
	for _, a := range d.Args {
		if a.Naked && a.Value != nil { // an option: -x, -a
			lit := a.Value.Lit()
			export = export || len(lit) > 1 && lit[0] == '-' && lit[1] == 'x'
			continue
		}
		w.assign(a, export)
	}
}

// binary is a && b, a || b or a pipe.
func (w *walker) binary(cmd *syntax.BinaryCmd) {
	verdict := maybe
	if cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt {
		verdict = w.decide(cmd.X)
	}
	w.stmt(cmd.X)
	switch {
	case cmd.Op == syntax.AndStmt && verdict == no, cmd.Op == syntax.OrStmt && verdict == yes:
	case cmd.Op == syntax.OrStmt && verdict == maybe: // the first is taken to succeed; the second is only looked at
		outer := w.vars
		w.vars = outer.clone()
		w.stmt(cmd.Y)
		w.vars = outer
	default:
		w.stmt(cmd.Y)
	}
}

func (w *walker) ifClause(c *syntax.IfClause) {
	line := w.base + int(c.Pos().Line())
	var branches []*variables
	outer := w.vars
	for ; c != nil; c = c.Else {
		verdict := yes // else
		if len(c.Cond) > 0 {
			verdict = maybe
			if len(c.Cond) == 1 {
				verdict = w.decide(c.Cond[0])
			}
			w.stmts(c.Cond)
		}
		if verdict == no {
			continue
		}
		w.vars = outer.clone()
		w.stmts(c.Then)
		branches = append(branches, w.vars)
		w.vars = outer
		if verdict == yes {
			break
		}
	}
	outer.merge(branches, line)
}

func (w *walker) caseClause(c *syntax.CaseClause) {
	line := w.base + int(c.Pos().Line())
	subject, known := w.tested(c.Word)
	known = known && subject != "" && !w.all
	var branches []*variables
	outer := w.vars
	for _, item := range c.Items {
		verdict := maybe
		if known {
			verdict = no
			for _, p := range item.Patterns {
				verdict = combine(false, verdict, w.matches(subject, p))
			}
		}
		if verdict == no {
			continue
		}
		w.vars = outer.clone()
		w.stmts(item.Stmts)
		branches = append(branches, w.vars)
		w.vars = outer
		if verdict == yes {
			break
		}
	}
	outer.merge(branches, line)
}

func (w *walker) forClause(c *syntax.ForClause) {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		items := w.fields(loop.Items)
		if !loop.InPos.IsValid() {
			items = w.vars.params
		}
		if len(items) > maxTurns {
			w.note("Line %d loops over %d words; the first %d were followed.", w.line, len(items), maxTurns)
			items = items[:maxTurns]
		}
		for _, item := range items {
			_ = w.vars.Set(loop.Name.Value, text(item))
			w.stmts(c.Do)
		}
	case *syntax.CStyleLoop:
		if loop.Init != nil {
			_, _ = expand.Arithm(w.config(), loop.Init) // what fails is unknown
		}
		for range maxTurns {
			if loop.Cond != nil && w.decideArithm(loop.Cond) == no {
				break
			}
			w.stmts(c.Do)
			if loop.Post == nil || loop.Cond == nil || w.decideArithm(loop.Cond) == maybe {
				break
			}
			_, _ = expand.Arithm(w.config(), loop.Post) // as above
		}
	}
}

// whileClause walks the body once: a loop that restarts the server.
func (w *walker) whileClause(c *syntax.WhileClause) {
	verdict := maybe
	if len(c.Cond) == 1 {
		verdict = w.decide(c.Cond[0])
	}
	if c.Until {
		verdict = verdict.not()
	}
	if verdict != no {
		w.stmts(c.Do)
	}
}
