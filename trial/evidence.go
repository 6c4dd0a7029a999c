package trial

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/sglang"
)

// mostAlso bounds the lines named beside the first.
const mostAlso = 40

// alsoProves lists lines that prove the same as the evidence: the same message from another rank.
func alsoProves(f *Facts, v Verdict) []int {
	out := v.Also
	own, found := eventAt(f, v.Line)
	if !found {
		return out
	}
	for _, events := range [][]sglang.Event{f.Log.Fatal, f.Log.Notes} {
		for _, e := range events {
			if e.Kind == own.Kind && e.Line != v.Line && bare(e.Text) == bare(own.Text) && !slices.Contains(out, e.Line) && len(out) < mostAlso {
				out = append(out, e.Line)
			}
		}
	}
	slices.Sort(out)
	return out
}

// bare is a message without its figures, which differ from rank to rank.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, text)
}

// alike reports whether two lines begin with the same message.
func alike(a, b sglang.Event) bool {
	const beginning = 40
	x, y := bare(a.Text), bare(b.Text)
	return x[:min(len(x), beginning)] == y[:min(len(y), beginning)]
}

func eventAt(f *Facts, line int) (sglang.Event, bool) {
	if line == 0 {
		return sglang.Event{}, false
	}
	for _, events := range [][]sglang.Event{f.Log.Fatal, f.Log.Notes} {
		for _, e := range events {
			if e.Line == line {
				return e, true
			}
		}
	}
	return sglang.Event{}, false
}

func appendRank(ranks []int, rank int) []int {
	if !slices.Contains(ranks, rank) {
		ranks = append(ranks, rank)
		slices.Sort(ranks)
	}
	return ranks
}

// deadRank is the rank that the launcher names as dead, nil when it names none.
func deadRank(f *Facts, child sglang.Event) []int {
	for _, e := range append([]sglang.Event{child}, f.Log.Fatal...) {
		if rank, told := e.Values["child_rank"]; told {
			return []int{int(rank)}
		}
	}
	name, number, found := strings.Cut(child.Words["name"], "scheduler_")
	var rank int
	if _, err := fmt.Sscanf(number, "%d", &rank); err == nil && found && name == "" {
		return []int{rank}
	}
	return nil
}

// remarks are observations about the log that help its reader: how it is wrapped, coloured and filled.
func remarks(f *Facts) []Finding {
	var out []Finding
	if f.Log.Wrapped > 0 {
		out = append(out, Finding{"container_prefix", fmt.Sprintf("%d lines carry the prefix of a container, a journal or a launcher", f.Log.Wrapped)})
	}
	if f.Log.Coloured > 0 {
		out = append(out, Finding{"ansi_colours", fmt.Sprintf("%d lines carry terminal colours", f.Log.Coloured)})
	}
	if f.Log.LongLines > 0 {
		out = append(out, Finding{"long_line", fmt.Sprintf("%d lines are longer than 64 KiB", f.Log.LongLines)})
	}
	if n := f.Log.Restarts; n > 0 {
		out = append(out, Finding{"earlier_servers", fmt.Sprintf("%d servers wrote into this log before; the last one is judged", n)})
	}
	return out
}
