package main

import (
	"fmt"
	"strings"
	"time"
)

// short spells a duration where there is little room: 42s, 6m12s, 2h05m.
func short(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// count spells a number of things: 1 trial, 2 trials, 3 launches.
func count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "ss"):
		noun += "es"
	case strings.HasSuffix(noun, "dy"): // study
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// shellWord quotes a word for a shell where it needs that, so that a shown command can be pasted.
func shellWord(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// some joins what fits into a line beside other words, and says how many more there are.
func some(texts []string) string {
	const room = 240 // characters of a line of at most 400
	shown, used := 0, 0
	for _, text := range texts {
		if used += len(text); shown > 0 && used > room {
			break
		}
		shown++
	}
	out := strings.Join(texts[:shown], "; ")
	if more := len(texts) - shown; more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return out
}
