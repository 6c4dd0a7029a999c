package main

import (
	"fmt"
	"strings"

	"sgtune/tuner"
)

// Head says what begins: the study, its host, and loudly when the host is only simulated.
func (t *terminal) Head(s *tuner.Study, where *place) {
	t.Say("study %s on host %s; %d configurations, load levels %s", s.Name, where.name, s.Space.Size(), levels(s.Workload.Concurrency))
	if s.Simulated {
		t.Say("SIMULATED: no GPU is used; a start-up takes %s of simulated time (a real one of this model 3 to 15 minutes), time runs %g times faster",
			short(s.Host.Startup), s.Host.TimeScale)
	}
}

func levels(cs []int) string {
	words := make([]string, len(cs))
	for i, c := range cs {
		words[i] = fmt.Sprint(c)
	}
	return strings.Join(words, ", ") + " clients"
}

// Verdict prints the study's answer: what to change, by how much, how sure, and the next command.
func (t *terminal) Verdict(v *tuner.Verdict, r *tuner.Record) {
	if v == nil {
		return
	}
	if t.json {
		t.Say("%s", v.Text)
		return
	}
	t.Say("")
	if t.simulated {
		t.Say("SIMULATED result: it says nothing about your GPUs")
	}
	t.Say("%s", strings.ToUpper(v.Answer))
	t.Say("%s", v.Text)
	for _, name := range v.Config.Names() {
		was, now := r.BaselineConfig.Text(name), v.Config.Text(name)
		if was != now {
			if was == "" {
				was = "not set"
			}
			t.Say("  %-28s %s -> %s", name, was, now)
		}
	}
	if v.Why != "" {
		t.Say("%s", v.Why)
	}
	if r.AfterDone != "" {
		t.Say("%s", r.AfterDone)
	}
	t.Say("profile: sgtune export %s --format sh", t.study)
}
