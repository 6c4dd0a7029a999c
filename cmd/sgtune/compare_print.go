package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sgtune/benchmark"
	"sgtune/web"
)

// print writes the comparison for a person: the sides, the table, what to mind, the answer.
func (c *comparison) print(w io.Writer) error {
	var b strings.Builder
	c.head(&b)
	if len(c.sides[0].launches) > 0 && len(c.sides[1].launches) > 0 {
		b.WriteByte('\n')
		alignColumns(&b, c.table())
		if len(c.result.Levels) > 0 {
			b.WriteByte('\n')
			alignColumns(&b, c.levelTable())
		}
		b.WriteByte('\n')
		b.WriteString(c.legend())
	} else {
		b.WriteByte('\n')
	}
	for _, warning := range c.result.Warnings {
		fmt.Fprintf(&b, "Warning: %s.\n", printable(strings.TrimSuffix(warning, ".")))
	}
	fmt.Fprintf(&b, "\n%s\n", printable(c.result.Text))
	_, err := io.WriteString(w, b.String())
	return err
}

// head names the sides and what they were measured with; what they share stands once.
func (c *comparison) head(b *strings.Builder) {
	line := func(title, text string) {
		if text != "" {
			fmt.Fprintf(b, "%-9s  %s\n", title, printable(text))
		}
	}
	shared := c.result.Base.factsText() == c.result.Candidate.factsText()
	for i, n := range []*comparedSide{&c.result.Base, &c.result.Candidate} {
		s := c.sides[i]
		line(s.role, s.title(n))
		line("", s.config)
		if !shared {
			line("", n.factsText())
		}
	}
	if shared {
		line("both", c.result.Base.factsText())
	}
}

// title is the side's name and how many launches it has.
func (s *side) title(n *comparedSide) string {
	title := s.name
	if first, last, many := firstAndLast(n.Launches); many && len(title) > widestTitle {
		title = first + " to " + last
	}
	if len(n.Launches) != 1 || n.Launches[0] != s.name {
		title += ": " + count(len(n.Launches), s.noun)
		if s.noun == "launch" && len(n.Launches) > 0 {
			title += " (" + strings.Join(n.Launches, ", ") + ")"
		}
	}
	if n.Simulated {
		title += "  SIMULATED"
	}
	return title
}

// widestTitle is how long a list of files may be before only its ends are shown.
const widestTitle = 80

func firstAndLast(names []string) (first, last string, many bool) {
	if len(names) < 2 {
		return "", "", false
	}
	return names[0], names[len(names)-1], true
}

// factsText is what a side was measured with, on one line.
func (n *comparedSide) factsText() string {
	var words []string
	for _, fact := range factNames {
		text := n.Facts[fact.key]
		switch {
		case text == "":
		case fact.name == "workload", fact.name == "load", fact.name == "server":
			words = append(words, text)
		default:
			words = append(words, fact.name+" "+text)
		}
	}
	return strings.Join(words, "; ")
}

// table has one line a metric, the one that decides first, then what else a reader looks at.
func (c *comparison) table() [][]string {
	rows := [][]string{c.headings("")}
	for _, row := range c.result.Rows {
		rows = append(rows, c.cells(row.metric.label, row))
	}
	a, b := &c.result.Base, &c.result.Candidate
	plain := func(label, base, candidate, change string) {
		rows = append(rows, []string{label, base, candidate, change, "", ""})
	}
	share := func(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }
	plain("cache hits", share(a.CacheHitRatio), share(b.CacheHitRatio), signed(100*(b.CacheHitRatio-a.CacheHitRatio))+" points")
	for _, tokens := range []struct {
		label string
		of    func(r *benchmark.Report) int64
	}{{"prompt tokens a request", promptTokens}, {"output tokens a request", outputTokens}} {
		x, y := c.sides[0].perRequest(tokens.of), c.sides[1].perRequest(tokens.of)
		change := ""
		if x > 0 && y > 0 {
			change = percent(y/x - 1)
		}
		plain(tokens.label, web.Number(x), web.Number(y), change)
	}
	ok := func(s *comparedSide) string {
		return grouped(int(s.Requests.OK)) + " of " + grouped(int(s.Requests.Sent))
	}
	plain("requests ok", ok(a), ok(b), "")
	inFlight := func(r *benchmark.Report) float64 { return r.Concurrency.Mean }
	plain("in flight on average", web.Number(c.sides[0].mean(inFlight)), web.Number(c.sides[1].mean(inFlight)), "")
	seconds := func(r *benchmark.Report) float64 { return r.Seconds }
	plain("measured for", web.Number(c.sides[0].mean(seconds))+" s", web.Number(c.sides[1].mean(seconds))+" s", "")
	plain("client CPU share", share(a.CPUShare), share(b.CPUShare), "")
	plain("send lag p99", web.Number(a.SendLagP99)+" ms", web.Number(b.SendLagP99)+" ms", "")
	return rows
}

func (c *comparison) headings(first string) []string {
	if !c.answered() {
		return []string{first, "base", "candidate", "change", "", ""}
	}
	return []string{first, "base", "candidate", "change", "95% interval", ""}
}

// answered reports whether both sides have launches enough for intervals, and not only lucky ones.
func (c *comparison) answered() bool {
	return min(c.result.N[0], c.result.N[1]) >= benchmark.LeastLaunches && !c.lucky()
}

// cells is one metric's line.
func (c *comparison) cells(label string, row comparedRow) []string {
	value := func(v *float64, half float64) string {
		switch {
		case v == nil:
			return "-"
		case half > 0:
			return fmt.Sprintf("%s ±%s", row.metric.amount(*v), halfText(half))
		}
		return row.metric.amount(*v)
	}
	out := []string{label, value(row.Base, row.halves[0]), value(row.Candidate, row.halves[1]), "", "", ""}
	if row.Change != nil {
		out[3] = percent(*row.Change)
	}
	if row.Low != nil {
		out[4] = percent(*row.Low) + " to " + percent(*row.High)
		out[5] = row.Answer
		if row.Answer == benchmark.AnswerNoDifference {
			out[5] = "~"
		}
	}
	return out
}

func halfText(half float64) string {
	if half < 0.0995 {
		return fmt.Sprintf("%.1f%%", 100*half)
	}
	return fmt.Sprintf("%.0f%%", 100*half)
}

// levelTable has one line a load level, for the metric that decides.
func (c *comparison) levelTable() [][]string {
	rows := [][]string{c.headings(c.metric.label + " at")}
	for _, level := range c.result.Levels {
		rows = append(rows, c.cells(level.Load, level.comparedRow))
	}
	return rows
}

// legend says what the signs in the table mean.
func (c *comparison) legend() string {
	text := ""
	if len(c.result.Levels) > 0 && c.level == 0 {
		text = "The first table takes each run at the load level that served it best; --level picks one for all.\n"
	}
	if c.answered() {
		return text + "± is half the 95% interval of the mean; ~ is no difference found. The first line decides, the others are not independent of it.\n"
	}
	var within []string
	for i, n := range []*comparedSide{&c.result.Base, &c.result.Candidate} {
		for j, w := range n.WithinRun {
			within = append(within, fmt.Sprintf("%s %s to %s", c.sides[i].launches[j].name, web.Number(w.Low), web.Number(w.High)))
		}
	}
	if len(within) == 0 {
		return text
	}
	return text + "Within a run, 95% interval of output tok/s: " + some(within) + ". It says how steady that run was, not where the next one lands.\n"
}

// alignColumns writes columns: the first and the last flush left, the others flush right.
func alignColumns(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	last := len(width) - 1
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			switch {
			case width[i] == 0:
			case i == 0:
				line += printable(cell) + pad
			case i == last:
				line += "  " + cell
			default:
				line += "  " + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
