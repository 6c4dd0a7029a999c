package tuner

import (
	"strings"
	"unicode/utf8"
)

// add tells one more fact, in the text and as a note.
func (v *Verdict) add(fact string) {
	v.Text += "; " + fact
	v.Notes = append(v.Notes, sentence(fact))
}

// verdictNotes are the facts of verdictText that have no field of their own.
func verdictNotes(s *Study, v *Verdict) []string {
	var notes []string
	if job := strings.TrimPrefix(v.jobText(), "; "); job != "" {
		notes = append(notes, sentence(job))
	}
	if s.Objective.Metric == "concurrency" {
		notes = append(notes, sentence(strings.Trim(inLevels(s.Workload.Concurrency, v), " ()")))
	}
	if lossyConfig(s.Baseline) {
		notes = append(notes, "The baseline is lossy: its answers may be worse than bf16's.")
	}
	return notes
}

// sentence is a clause as a sentence.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	_, width := utf8.DecodeRuneInString(clause)
	return strings.ToUpper(clause[:width]) + clause[width:] + "."
}
