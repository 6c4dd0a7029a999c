package chart

import (
	"fmt"
	"strings"
	"time"
)

// nightRows is how many trials the night shows; the newest.
const nightRows = 400

// phase is a stretch of a trial as the night draws it: some steps in a row.
type phase struct {
	Key, Word string
	from, to  int // indexes of stepNames, to is not part
}

// phases are the stretches of a trial, in order.
var phases = []phase{
	{"start", "start", 0, 3},
	{"canary", "canary", 3, 5},
	{"warmup", "warm-up", 5, 6},
	{"measure", "measure", 6, 7},
	{"end", "stop", 7, 10},
}

// spent are a row's seconds in each phase.
func (r *Row) spent() []float64 {
	out := make([]float64, len(phases))
	for i, p := range phases {
		for s := p.from; s < p.to; s++ {
			out[i] += float64(r.Steps[s])
		}
	}
	return out
}

// began is when a row's bar begins: its first step, which comes before the launch.
func (r *Row) began() time.Time {
	if r.Started.IsZero() {
		return r.Started
	}
	return r.Started.Add(-time.Duration(float64(r.Steps[0]+r.Steps[1]) * float64(time.Second)))
}

// night are the rows with a place on the clock, the newest, and how many older ones were left out.
func (d *Data) night() (rows []*Row, left int) {
	for i := range d.Rows {
		if !d.Rows[i].Started.IsZero() {
			rows = append(rows, &d.Rows[i])
		}
	}
	left = max(0, len(rows)-nightRows)
	return rows[left:], left
}

// nightTimes are the two ends of the clock.
func nightTimes(rows []*Row) (from, to time.Time) {
	for _, r := range rows {
		if b := r.began(); from.IsZero() || b.Before(from) {
			from = b
		}
		if e := r.end(); e.After(to) {
			to = e
		}
	}
	return from, to
}

// end is where a row's bar ends: a running trial's with its steps so far.
func (r *Row) end() time.Time {
	if !r.Ended.IsZero() {
		return r.Ended
	}
	sum := 0.0
	for _, s := range r.spent() {
		sum += s
	}
	return r.began().Add(time.Duration(sum * float64(time.Second)))
}

// nightSentence says how the night went.
func (d *Data) nightSentence() string {
	rows, _ := d.night()
	if len(rows) == 0 {
		return "No trial was launched yet."
	}
	var by [classCount]int
	launched := 0
	var from, to time.Time
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Started.IsZero() {
			continue
		}
		launched++
		by[r.Class]++
		if from.IsZero() || r.Started.Before(from) {
			from = r.Started
		}
		if e := r.end(); e.After(to) {
			to = e
		}
	}
	var words []string
	for c, n := range by {
		if n > 0 {
			words = append(words, fmt.Sprintf("%s %s", Number(float64(n)), Classes[c].Word))
		}
	}
	return fmt.Sprintf("%s from %s to %s: %s.", count(launched, "trial"), clock(from), clock(to), strings.Join(words, ", "))
}

func (d *Data) nightTable(most int) Table {
	t := Table{most: most, page: 4, Caption: "Trials, newest first", Head: []string{"Trial", "Outcome", "Launched", "Took", "Longest phase"}}
	for i := len(d.Rows) - 1; i >= 0; i-- {
		r := &d.Rows[i]
		if r.Started.IsZero() {
			continue
		}
		longest, most := 0, 0.0
		for p, s := range r.spent() {
			if s > most {
				longest, most = p, s
			}
		}
		t.add(d.trialCell(r), d.outcomeCell(r), timeCell(r.Started), Cell{Text: minutes(r.end().Sub(r.began()).Seconds())},
			Cell{Text: phases[longest].Word + " " + minutes(most)})
	}
	return t
}

// timeCell shows a time of day; a script reads the whole of it.
func timeCell(t time.Time) Cell {
	if t.IsZero() {
		return Cell{Text: none}
	}
	return Cell{Text: t.Local().Format("Mon 15:04"), Trial: -1, Class: -1, plain: t.UTC().Format(time.RFC3339)}
}

// marks are the events worth a tick on the clock: what happened to the study or its machine, not each plan.
func (d *Data) marks() []mark {
	var out []mark
	for _, e := range d.Events {
		switch e.Kind {
		case "plan", "admit", "reject", "step", "refused":
			continue
		}
		if !e.At.IsZero() {
			out = append(out, mark{At: e.At, Kind: e.Kind, Text: cut(e.Text, 200)})
		}
	}
	return out
}

// mark is one event on the clock.
type mark struct {
	At         time.Time
	Kind, Text string
}

// cut shortens a text to at most n runes.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
