package launch

import (
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// answer is what a test gives without running anything.
type answer int

const (
	maybe answer = iota
	yes
	no
)

func answerOf(b bool) answer {
	if b {
		return yes
	}
	return no
}

func (a answer) not() answer {
	switch a {
	case yes:
		return no
	case no:
		return yes
	default:
		return maybe
	}
}

// decide says whether a statement succeeds, when only variables decide it: [ -z "$X" ],
// [[ $X == y* ]], (( N > 1 )). Files and commands are never looked at. In a second reading (w.all)
// nothing is decided, so that every branch is seen.
func (w *walker) decide(s *syntax.Stmt) answer {
	if w.all || s == nil {
		return maybe
	}
	out := maybe
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) > 0 {
			out = w.decideCall(cmd)
		}
	case *syntax.TestClause:
		out = w.decideTest(cmd.X)
	case *syntax.ArithmCmd:
		out = w.decideArithm(cmd.X)
	case *syntax.BinaryCmd:
		out = combine(cmd.Op == syntax.AndStmt, w.decide(cmd.X), w.decide(cmd.Y))
		if cmd.Op != syntax.AndStmt && cmd.Op != syntax.OrStmt {
			out = maybe
		}
	}
	if s.Negated {
		out = out.not()
	}
	return out
}

func combine(and bool, x, y answer) answer {
	switch {
	case and && (x == no || y == no):
		return no
	case and && x == yes && y == yes:
		return yes
	case !and && (x == yes || y == yes):
		return yes
	case !and && x == no && y == no:
		return no
	}
	return maybe
}

func (w *walker) decideCall(cmd *syntax.CallExpr) answer {
	switch cmd.Args[0].Lit() {
	case "true", ":":
		return yes
	case "false":
		return no
	case "[", "test":
	default:
		return maybe
	}
	// Unset variables are empty here, as in the shell: that is what such tests ask.
	var words []string
	for field, err := range expand.FieldsSeq(w.config(), cmd.Args[1:]...) {
		if err != nil || len(words) > 8 {
			return maybe
		}
		words = append(words, field)
	}
	if cmd.Args[0].Lit() == "[" {
		if len(words) == 0 || words[len(words)-1] != "]" {
			return maybe
		}
		words = words[:len(words)-1]
	}
	return decideWords(words)
}

func decideWords(words []string) answer {
	if len(words) > 0 && words[0] == "!" {
		return decideWords(words[1:]).not()
	}
	if marked(strings.Join(words, " ")) {
		return maybe
	}
	switch len(words) {
	case 0:
		return no
	case 1:
		return answerOf(words[0] != "")
	case 2:
		switch words[0] {
		case "-z":
			return answerOf(words[1] == "")
		case "-n":
			return answerOf(words[1] != "")
		}
	case 3:
		switch words[1] {
		case "=", "==":
			return answerOf(words[0] == words[2])
		case "!=":
			return answerOf(words[0] != words[2])
		}
		return compareNumbers(words[0], words[1], words[2])
	}
	return maybe
}

func compareNumbers(x, op, y string) answer {
	a, errA := strconv.Atoi(strings.TrimSpace(x))
	b, errB := strconv.Atoi(strings.TrimSpace(y))
	if errA != nil || errB != nil {
		return maybe
	}
	switch op {
	case "-eq":
		return answerOf(a == b)
	case "-ne":
		return answerOf(a != b)
	case "-lt":
		return answerOf(a < b)
	case "-le":
		return answerOf(a <= b)
	case "-gt":
		return answerOf(a > b)
	case "-ge":
		return answerOf(a >= b)
	}
	return maybe
}

func (w *walker) decideTest(x syntax.TestExpr) answer {
	switch x := x.(type) {
	case *syntax.Word:
		s, ok := w.tested(x)
		if !ok {
			return maybe
		}
		return answerOf(s != "")
	case *syntax.ParenTest:
		return w.decideTest(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return w.decideTest(x.X).not()
		}
		word, isWord := x.X.(*syntax.Word)
		if !isWord {
			return maybe
		}
		s, ok := w.tested(word)
		switch {
		case ok && x.Op == syntax.TsEmpStr:
			return answerOf(s == "")
		case ok && x.Op == syntax.TsNempStr:
			return answerOf(s != "")
		}
	case *syntax.BinaryTest:
		return w.decideBinary(x)
	}
	return maybe
}

func (w *walker) decideBinary(x *syntax.BinaryTest) answer {
	if x.Op == syntax.AndTest || x.Op == syntax.OrTest {
		return combine(x.Op == syntax.AndTest, w.decideTest(x.X), w.decideTest(x.Y))
	}
	left, isWord := x.X.(*syntax.Word)
	right, isWordToo := x.Y.(*syntax.Word)
	if !isWord || !isWordToo {
		return maybe
	}
	a, ok := w.tested(left)
	if !ok {
		return maybe
	}
	if x.Op == syntax.TsMatch || x.Op == syntax.TsMatchShort {
		return w.matches(a, right)
	}
	if x.Op == syntax.TsNoMatch {
		return w.matches(a, right).not()
	}
	b, ok := w.tested(right)
	if !ok {
		return maybe
	}
	return compareNumbers(a, x.Op.String(), b)
}

// tested expands one operand; ok is false when it is not known.
func (w *walker) tested(word *syntax.Word) (string, bool) {
	s, err := expand.Literal(w.config(), word)
	return s, err == nil && !marked(s)
}

// matches reports whether a text matches a shell pattern.
func (w *walker) matches(s string, word *syntax.Word) answer {
	p, err := expand.Pattern(w.config(), word)
	if err != nil || marked(p) {
		return maybe
	}
	expr, err := pattern.Regexp(p, pattern.EntireString)
	if err != nil {
		return maybe
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return maybe
	}
	return answerOf(re.MatchString(s))
}

func (w *walker) decideArithm(x syntax.ArithmExpr) answer {
	known := true
	syntax.Walk(x, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && marked(w.vars.known(p.Param.Value).Str) {
			known = false
		}
		return true
	})
	n, err := expand.Arithm(w.config(), x)
	if err != nil || !known {
		return maybe
	}
	return answerOf(n != 0)
}
