package web

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web/chart"
)

// wording holds the functions of the templates.
var wording = template.FuncMap{
	"number": Number, "whole": func(n int) string { return Number(float64(n)) }, "duration": tuner.FormatDuration,
	"config": ConfigText, "amount": Amount, "clock": clock, "day": day, "zone": zone, "stamp": stamp, "mark": markOf, "path": url.PathEscape,
	"percent": Percent, "size": size, "command": commandText, "next": func(n int) int { return n + 1 }, "failed": failedRequests,
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// Number spells a figure with four significant digits and thousands separators, as charts do: 2,104; 0.8512.
func Number(v float64) string { return chart.Number(v) }

// units are the words after a value of an objective.
var units = map[string]string{
	"": "output tok/s", "output_tok_s": "output tok/s", "requests_s": "requests/s", "goodput": "requests/s within the SLO",
	"concurrency": "clients within the SLO",
}

// Amount is a trial's value with its unit and load level, "" where none was measured:
// "1,240 output tok/s at 120 clients".
func Amount(t *trial.Trial, objective string) string {
	if t.Value == nil {
		return ""
	}
	text := Number(*t.Value) + " " + orElse(units[objective], objective)
	if t.Best > 0 && objective != "concurrency" { // there the value is the level
		text += fmt.Sprintf(" at %d clients", t.Best)
	}
	return text
}

// ConfigText lists a configuration as flag and value pairs.
func ConfigText(c sglang.Config) string {
	words := make([]string, 0, len(c))
	for _, name := range c.Names() {
		words = append(words, name+" "+c.Text(name))
	}
	return strings.Join(words, ", ")
}

// clock is a time of day for a person, "" for none.
func clock(t time.Time) string { return local(t, "15:04:05") }

// day is a time with its day, "" for none.
func day(t time.Time) string { return local(t, "Mon 2 Jan 15:04") }

// zone is a time in full with its zone, for a title.
func zone(t time.Time) string { return local(t, "2006-01-02 15:04:05 MST") }

// stamp is a time for a machine.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func local(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(layout)
}

// size is a number of bytes for a person: 2.0 GB.
func size(bytes int64) string {
	switch {
	case bytes < 1000:
		return counted(int(bytes), "byte", "bytes")
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	case bytes < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// commandText is a command as lines for a shell: the program first, then each flag with its values.
func commandText(argv []string) string {
	var b strings.Builder
	for i, word := range argv {
		switch {
		case i == 0:
		case strings.HasPrefix(word, "--"):
			b.WriteString(" \\\n  ")
		default:
			b.WriteString(" ")
		}
		b.WriteString(shellWord(word))
	}
	return b.String()
}

// shellWord quotes a word where a shell needs it.
func shellWord(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// failedRequests is how many requests of a level failed, of all kinds.
func failedRequests(r *benchmark.Report) int {
	n := 0
	for _, kind := range r.Requests.Failed {
		n += kind
	}
	return n
}
