package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// goesOnLater ends what is said of a stop.
const goesOnLater = "All finished trials are kept. There is no verdict: sgtune tune with the same study file goes on from here."

func lostAfterTrial(w world) []string {
	if len(w.running) == 0 {
		return []string{"No trial runs at this moment. The study stops before the next one.", goesOnLater}
	}
	return []string{upper(trialNames(w.running)) + " goes on to its end and is kept. Nothing is launched after it.", "Lost: the trials and the confirmation that would have come.", goesOnLater}
}

func lostNow(w world) []string {
	out := []string{"Nothing runs at this moment that would be lost."}
	if len(w.running) > 0 {
		out = []string{"Lost: " + trialNames(w.running) + ", with what it has measured so far. Its configuration is launched again when the study goes on."}
	}
	return append(out, "Its server is ended, its GPU memory is verified to be free, and what the study owes is done (after:).", goesOnLater)
}

func lostVoid(w world) []string {
	if w.target != nil && w.target.State == trial.Running {
		return []string{fmt.Sprintf("Lost: trial %d ends now, with what it has measured so far.", w.target.Number), "Its configuration is launched again: that takes the time of one trial."}
	}
	return []string{"Lost: its figures are kept and shown, and do not count any more, neither for the search nor for the verdict. This cannot be taken back.", "Its configuration may be launched again: that takes the time of one trial."}
}

func lostEnqueue(world) []string {
	return []string{
		"It takes one launch of the budget, next in line.",
		"Host RAM and quality are checked as for any other proposal; a refusal is told on the study's page. The learnt limit of GPU memory is not: you may know better, and the launch may fail.",
	}
}

// trialNames lists trials: "trial 7", "trials 7 and 8".
func trialNames(trials []*trial.Trial) string {
	if len(trials) == 1 {
		return "trial " + strconv.Itoa(trials[0].Number)
	}
	words := make([]string, len(trials))
	for i, t := range trials {
		words[i] = strconv.Itoa(t.Number)
	}
	return "trials " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// askedLine is one request as the study's page shows it.
type askedLine struct {
	tuner.Command
	What  string
	State string
}

// askedShown bounds the requests that are shown.
const askedShown = 5

// askedLines are the newest requests to the process that runs a study now.
func askedLines(s *tuner.Summary, commands []tuner.Command) []askedLine {
	var out []askedLine
	for _, c := range commands {
		if c.At.Before(s.Heard.Since) {
			continue // to one that is gone
		}
		l := askedLine{Command: c, State: "waits for the tuner"}
		if !c.TakenAt.IsZero() {
			l.State = "taken at " + clock(c.TakenAt)
		}
		switch c.Kind {
		case tuner.StopAfterTrial:
			l.What = "stop after this trial"
		case tuner.StopNow:
			l.What = "stop now and clean up"
		case tuner.VoidTrial:
			l.What = "make trial " + strconv.Itoa(c.Trial) + " void"
		case tuner.Enqueue:
			l.What = "launch " + ConfigText(c.Config)
		}
		out = append(out, l)
	}
	return out
}

// configLines spells a configuration for a person to edit: a flag and its value a line.
func configLines(c sglang.Config) string {
	var b strings.Builder
	for _, name := range c.Names() {
		fmt.Fprintf(&b, "%s = %s\n", name, c.Text(name))
	}
	return b.String()
}

// mostFlags is how many lines a configuration may have.
const mostFlags = 100

// parseConfig reads what configLines wrote and a person edited. Flags are those of known, and those that are worth a place in a search;
// its errors name the line.
func parseConfig(text string, known sglang.Config) (sglang.Config, error) {
	out := sglang.Config{}
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		wrong := func(format string, args ...any) error {
			return misasked{fmt.Sprintf("Line %d: %s.", i+1, fmt.Sprintf(format, args...))}
		}
		at := strings.IndexAny(line, "=: \t")
		if at < 0 || i >= mostFlags {
			return nil, wrong("%q is no flag with a value; write it as mem-fraction-static = 0.88", cut(line, 80))
		}
		name, value := strings.TrimLeft(line[:at], "-"), strings.TrimSpace(strings.TrimLeft(line[at:], "=: \t"))
		if _, twice := out[name]; twice {
			return nil, wrong("%s stands there twice", name)
		}
		knob, listed := sglang.Lookup(name)
		old, used := known[name]
		if !used && !(listed && knob.Tunable) {
			if near := sglang.Suggest(name); near != "" && near != name {
				return nil, wrong("%q is no flag to tune; did you mean %s?", cut(name, 80), near)
			}
			return nil, wrong("%q is no flag to tune", cut(name, 80))
		}
		v, problem := parseValue(value, knob, listed, old)
		if problem != "" {
			return nil, wrong("%s cannot be %q: %s", name, cut(value, 80), problem)
		}
		out[name] = v
	}
	if len(out) == 0 {
		return nil, misasked{"There is no flag in it; write one a line, as mem-fraction-static = 0.88."}
	}
	return out, nil
}

// parseValue reads a flag's value: by its kind where the table lists it, else like the value it has in this study.
func parseValue(text string, knob sglang.Knob, listed bool, old any) (v any, problem string) {
	kind := knob.Kind
	if !listed {
		kind = kindOf(old)
	}
	if text == "" {
		return nil, "a value is missing; leave the line out if the flag is not to be set"
	}
	switch kind {
	case sglang.KindFloat, sglang.KindInt:
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
			return nil, "it is a number"
		case kind == sglang.KindInt && f != math.Trunc(f):
			return nil, "it is a whole number"
		case listed && (f < knob.Min || knob.Max > 0 && f > knob.Max):
			return nil, "it is outside of what SGLang takes"
		}
		return f, ""
	case sglang.KindBool:
		if text != "true" && text != "false" {
			return nil, "it is true or false"
		}
		return text == "true", ""
	case sglang.KindList:
		var out []any
		for _, word := range strings.Fields(text) {
			f, err := strconv.ParseFloat(word, 64)
			if err != nil || f != math.Trunc(f) {
				return nil, "it is a list of whole numbers"
			}
			out = append(out, f)
		}
		return out, ""
	case sglang.KindChoice:
		if len(knob.Choices) > 0 && !slices.Contains(knob.Choices, text) {
			return nil, "it is one of " + strings.Join(knob.Choices, ", ")
		}
	}
	return text, ""
}

// kindOf is the kind of a value in a configuration.
func kindOf(v any) sglang.Kind {
	switch v.(type) {
	case float64:
		return sglang.KindFloat
	case bool:
		return sglang.KindBool
	case []any:
		return sglang.KindList
	}
	return sglang.KindText
}
