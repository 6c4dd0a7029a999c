package main

import (
	"fmt"
	"strings"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/tuner"
	"sgtune/web"
)

// Head says what begins: the study, its host, and loudly when the host is only simulated.
func (t *terminal) Head(where string, stored int) {
	s := t.study
	t.Say("study %s on host %s: %s configurations, %s; %s", s.Name, where, web.Number(float64(s.Space.Size())), levels(s.Workload.Concurrency), budgetText(s))
	if s.Simulated && s.Host.Kind == tuner.HostSimulated {
		t.Say("SIMULATED: no GPU is used; a start-up takes %s of simulated time (a real one of this model 3 to 15 minutes), time runs %g times faster",
			tuner.FormatDuration(s.Host.Startup), s.Host.TimeScale)
	} else if s.Simulated {
		t.Say("SIMULATED: the server is sim-server, no GPU is used")
	}
	if stored > 0 {
		t.Say("it is continued: %s stored in %s", count(stored, "trial"), t.db)
	}
	for _, note := range s.Notes {
		t.Say("note: %s", note)
	}
}

func levels(cs []int) string {
	if len(cs) == 1 {
		return count(cs[0], "client")
	}
	words := make([]string, len(cs))
	for i, c := range cs {
		words[i] = fmt.Sprint(c)
	}
	return strings.Join(words, ", ") + " clients"
}

// budgetText says what the study may spend.
func budgetText(s *tuner.Study) string {
	var parts []string
	if s.Budget.Trials > 0 {
		parts = append(parts, count(s.Budget.Trials, "launch")+" for the search")
	}
	if s.Budget.Wall > 0 {
		parts = append(parts, tuner.FormatDuration(s.Budget.Wall)+" in all")
	}
	if s.Budget.Until != "" {
		parts = append(parts, "done by "+s.UntilText(time.Local))
	}
	if len(parts) == 0 {
		parts = append(parts, "no limit but the space itself")
	}
	if s.Confirm > 0 {
		return strings.Join(parts, ", ") + fmt.Sprintf("; then %d + %d to confirm", s.Confirm, s.Confirm)
	}
	return strings.Join(parts, ", ") + "; then the confirmation"
}

// Verdict prints the study's answer: what to do, by how much, how sure, and the next command.
func (t *terminal) Verdict(v *tuner.Verdict, r *tuner.Record) {
	if v == nil {
		return
	}
	answers := web.Answers(r)
	if t.json {
		t.Say("%s: %s", answers[0].Act, strings.Join(append([]string{answers[0].Text}, answers[0].Lines...), "; "))
		return
	}
	t.Say("")
	if t.study.Simulated {
		t.Say("SIMULATED result: it says nothing about your GPUs")
	}
	for _, a := range answers {
		t.Say("%s  %s", a.Act, a.Text)
		for _, line := range a.Lines {
			t.Say("%s", line)
		}
	}
	if v.Answer == benchmark.AnswerBetter {
		for _, name := range sglang.Merge(r.BaselineConfig, v.Config).Names() {
			if was, now := setting(r.BaselineConfig, name), setting(v.Config, name); was != now {
				t.Say("  %-28s %s -> %s", name, was, now)
			}
		}
	} else if v.Trial > 0 {
		t.Say("  tried: %s", t.configText(v.Config))
	}
	if v.Why != "" {
		t.Say("why this one: %s", v.Why)
	}
	if r.Releases != "" {
		t.Say("machine: %s", r.Releases)
	}
	if r.AfterDone != "" {
		t.Say("%s", r.AfterDone)
	}
	if took := r.EndedAt.Sub(r.StartedAt); !r.StartedAt.IsZero() && took > 0 {
		t.Say("took %s%s", short(took), map[bool]string{true: " of simulated time"}[t.study.Host.Kind == tuner.HostSimulated])
	}
	t.Say("all trials: sgtune show %s --db %s", t.study.Name, shellWord(t.db))
	if export := t.exportCommand(v); export != "" {
		t.Say("%s", export)
	}
}

// exportCommand is the command that writes what was found as a launch profile.
func (t *terminal) exportCommand(v *tuner.Verdict) string {
	command := fmt.Sprintf("sgtune export %s --db %s --format sh > launch.sh", t.study.Name, shellWord(t.db))
	switch {
	case v.Answer == benchmark.AnswerBetter:
		return "its profile: " + command
	case v.Answer == benchmark.AnswerNotConfirmed && v.Trial > 0 && v.Gain > 0:
		return fmt.Sprintf("unconfirmed profile: sgtune export %s --db %s --trial %d --format sh > launch.sh", t.study.Name, shellWord(t.db), v.Trial)
	}
	return "" // what runs today stays
}
