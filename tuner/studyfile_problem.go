package tuner

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mistake is one mistake in a study file. Line and Col start at 1; 0 means that there is no place
// to point at (a missing file, a missing key).
type Mistake struct {
	File      string
	Line, Col int
	Text      string // what is wrong; what to do
	Unread    bool   // nothing of the file was understood: it is the only mistake
}

// maxProblem is the longest line a problem prints, in bytes.
const maxProblem = 400

// String is the problem's line: FILE:LINE:COL: what is wrong; what to do.
func (p Mistake) String() string {
	where := p.File
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	}
	return shorten(oneLine(where+": "+p.Text), maxProblem)
}

// Problems is every mistake found in one pass over a study file, in file order.
type Problems []Mistake

// shownProblems is how many mistakes are printed.
const shownProblems = 10

// Error has one line a mistake, the first 10.
func (ps Problems) Error() string {
	lines := make([]string, 0, shownProblems)
	for _, p := range ps[:min(len(ps), shownProblems)] {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// quote shows a word of the file inside a message: in backquotes, on one line, not too long.
func quote(s string) string { return "`" + clip(oneLine(s)) + "`" }

func clip(s string) string { return shorten(s, 60) }

// shorten cuts s to at most limit bytes between two characters.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// oneLine replaces what would break or colour a terminal line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, s)
}

// closest is the known word that name most likely means, "" when none is near enough.
func closest(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance(normal(name), normal(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

func normal(s string) string {
	return strings.ReplaceAll(strings.TrimLeft(strings.ToLower(s), "-"), "-", "_")
}

// distance counts the edits (insert, delete, replace, swap of neighbours) between two words, at
// most 64 bytes of each.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := range a {
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(a)][len(b)]
}
