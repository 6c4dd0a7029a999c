package web

import (
	"fmt"
	"strings"
	"unicode"

	"sgtune/tuner"
)

// markdown writes a report as Markdown: the same words, tables for what the charts show.
func (b *reportBody) markdown() []byte {
	var m markdown
	m.line("# %s", md(b.Name))
	if b.Simulated {
		m.line("**SIMULATED** These figures come from a simulated host, not from a real server.")
	}
	where := append([]string(nil), b.Line...)
	if !b.EndedAt.IsZero() {
		where = append(where, "ended "+zone(b.EndedAt))
	} else if !b.StartedAt.IsZero() {
		where = append(where, "started "+zone(b.StartedAt))
	}
	m.line("%s", md(strings.Join(where, " · ")))
	for _, a := range Answers(&b.Record) {
		m.line("## %s  %s", md(a.Act), md(a.Text))
		for _, text := range a.Lines {
			m.line("%s", md(text))
		}
	}
	if b.Live != nil && b.Live.Best != "" {
		m.line("%s", md(fmt.Sprintf("Best so far #%d, %s, unconfirmed.", b.Live.BestAt, b.Live.Best)))
	}
	m.changes(b.Changes)
	for _, f := range b.Facts {
		m.item("**%s** %s", md(f.Name), md(f.Text))
	}
	m.line("")
	m.line("## Next")
	m.line("%s", md(b.Next.Text))
	m.code(b.Next.Command)
	if b.Launch != "" {
		m.line("## Profile of trial %d", b.LaunchAt)
		m.code(b.Launch)
	}
	m.failures(b)
	for _, f := range b.Figures {
		m.line("## %s", md(f.Title))
		m.line("%s", md(f.Sentence))
		if f.Name == "matter" && !f.Empty {
			m.figure(f.Table.Heads(), len(f.Table.Rows), func(row, column int) string { return f.Table.Rows[row][column].Text })
		}
	}
	m.trials(b)
	m.line("Made by sgtune %s of %s on %s", md(b.Version), md(b.Database), zone(b.Made))
	return []byte(strings.TrimRight(m.b.String(), "\n") + "\n")
}

// markdown collects lines.
type markdown struct{ b strings.Builder }

// line writes a paragraph.
func (m *markdown) line(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		m.b.WriteString(text + "\n")
	}
	m.b.WriteString("\n")
}

// item writes one line of a list.
func (m *markdown) item(format string, args ...any) {
	m.b.WriteString("- " + fmt.Sprintf(format, args...) + "\n")
}

// code writes text as it is, fenced by more backquotes than it holds in a row.
func (m *markdown) code(text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.b.WriteString(fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n\n")
}

// figure writes a table.
func (m *markdown) figure(heads []string, rows int, cell func(row, column int) string) {
	line := func(word func(int) string) {
		for i := range heads {
			m.b.WriteString("| " + word(i) + " ")
		}
		m.b.WriteString("|\n")
	}
	line(func(i int) string { return md(heads[i]) })
	line(func(int) string { return "---" })
	for row := range rows {
		line(func(i int) string { return md(cell(row, i)) })
	}
	m.b.WriteString("\n")
}

func (m *markdown) changes(all []change) {
	if len(all) == 0 {
		return
	}
	m.figure([]string{"flag", "runs today", "change to"}, len(all), func(row, column int) string {
		return [...]string{all[row].Flag, all[row].Today, all[row].New}[column]
	})
}

func (m *markdown) failures(b *reportBody) {
	o := b.Overview
	m.line("## What failed and why")
	text := fmt.Sprintf("%s of %s trials failed", Number(float64(o.Failed)), Number(float64(o.Total)))
	if o.Failed == 0 {
		text = "No trial failed"
	}
	for _, more := range []struct {
		n    int
		what string
	}{{o.Pruned, "stopped early as slower"}, {o.Void, "void"}, {o.Refused, "refused before launch"}} {
		if more.n > 0 {
			text += fmt.Sprintf("; %s %s", Number(float64(more.n)), more.what)
		}
	}
	m.line("%s.", text)
	if b.Nothing && o.Failed > 0 {
		m.line("**Nothing was measured.**")
	}
	for _, f := range b.Failures {
		words := fmt.Sprintf("%s %s %d × %s", f.Mark.Shape, f.Mark.Word, f.Count, f.Text)
		if f.Learnt != "" {
			words += " → " + f.Learnt
		}
		m.item("%s (%s, trial %d)", md(words), md(f.Code), f.Trial)
	}
	if o.Refused > 0 {
		m.item("✕ refused %d × before launch, the newest: %s", o.Refused, md(o.RefusedBy))
	}
	m.line("")
}

func (m *markdown) trials(b *reportBody) {
	if len(b.Rows) == 0 {
		return
	}
	m.line("## Trials")
	if b.Left > 0 {
		m.line("The %d with the highest value; %s more are in the database.", len(b.Rows), Number(float64(b.Left)))
	}
	heads := []string{"Trial", "Outcome", "Value", "Gain", "Clients", "KV tokens", "GPU free after graphs", "Host pool", "Flags changed", "Took"}
	m.figure(heads, len(b.Rows), func(row, column int) string { return b.Rows[row].cells()[column] })
}

// cells are a trial's line in words; "" where a figure is not known.
func (t trialRow) cells() []string {
	outcome := t.Mark.Shape + " " + t.Mark.Word
	if t.Void != "" {
		outcome += ", void: " + t.Void
	}
	known := func(v float64, unit string) string {
		if v <= 0 {
			return ""
		}
		return Number(v) + unit
	}
	value, took := "–", ""
	if t.Value != nil {
		value = Number(*t.Value)
	}
	if !t.EndedAt.IsZero() && !t.StartedAt.IsZero() {
		took = tuner.FormatDuration(t.EndedAt.Sub(t.StartedAt))
	}
	var flags []string
	for _, c := range t.Changes {
		flags = append(flags, c.Flag+" "+c.New)
	}
	return []string{
		fmt.Sprintf("%d %s", t.Number, t.Role), outcome, value, orElse(t.Gain, "–"), known(float64(t.Best), ""), known(float64(t.Memory.Tokens), ""),
		known(t.Memory.AfterGraphGiB, " GiB"), known(t.Memory.HostPoolGB, " GB"), orElse(strings.Join(flags, ", "), "as today"), took,
	}
}

// md is text that Markdown shows as it is, on one line.
func md(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '<':
			b.WriteString("&lt;")
		case c == '>':
			b.WriteString("&gt;")
		case c == '&':
			b.WriteString("&amp;")
		case strings.ContainsRune("\\`*_[]|~#", c):
			b.WriteRune('\\')
			b.WriteRune(c)
		case unicode.IsControl(c):
			b.WriteByte(' ')
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
