package web

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"sgtune/benchmark"
	"sgtune/tuner"
)

// The acts an answer begins with.
const (
	ActChange    = "CHANGE"
	ActKeep      = "KEEP"
	ActNoVerdict = "NO VERDICT"
	ActStopped   = "STOPPED"
	ActRunning   = "RUNNING"
)

// Answer is what a study says to its reader: what to do, what was found, and the figures. The terminal, the
// page and the report print the same words.
type Answer struct {
	Act   string   `json:"act"`             // one of the acts
	Text  string   `json:"text"`            // what was found, a clause without a full stop
	Lines []string `json:"lines,omitempty"` // figures, interval and count of launches first, then what else there is to know; whole sentences
	Alert bool     `json:"alert,omitempty"` // the host is not clean: it is told before anything else
}

// dirtyMark begins Record.Releases when something is still held on the host.
const dirtyMark = "dirty: "

// Answers are a study's answers, the most urgent first: a host that is not clean comes before any verdict.
func Answers(r *tuner.Record) []Answer {
	var out []Answer
	held, dirty := strings.CutPrefix(r.Releases, dirtyMark)
	dirty = dirty && r.State != tuner.StudyRunning
	if dirty {
		out = append(out, notClean(r, held))
	}
	if r.Verdict != nil {
		return append(out, judged(r, r.Verdict))
	}
	switch {
	case dirty: // it is what ended the study
	case r.State == tuner.StudyRunning:
		out = append(out, Answer{Act: ActRunning, Text: "no verdict yet"})
	case r.State == tuner.StudyStopped:
		text, rest, _ := strings.Cut(strings.TrimPrefix(orElse(r.Reason, "it ended before a verdict"), "stopped: "), "; ")
		out = append(out, Answer{Act: ActStopped, Text: text, Lines: sentences(rest, goesOn)})
	default:
		out = append(out, Answer{Act: ActNoVerdict, Text: endedEarly, Lines: sentences(r.Reason, goesOn)})
	}
	return out
}

// Headline is the first of Answers for a line of a list: the act, and why, a gain with its interval.
func Headline(r *tuner.Record) (act, text string) {
	first := Answers(r)[0]
	if v := r.Verdict; first.Act == ActChange && v.Low != nil && v.High != nil {
		interval := strings.ReplaceAll(Percent(*v.Low)+" to "+Percent(*v.High), "%", "")
		return first.Act, fmt.Sprintf("%s (%s)", first.Text, interval)
	}
	return first.Act, first.Text
}

// AnswersNow are a study's answers at a moment: one whose tuner is gone has stopped, whatever is stored of it.
func AnswersNow(s *tuner.Summary, now time.Time) []Answer {
	if s.Silent(now) {
		return []Answer{{Act: ActStopped, Text: silence(s, now), Lines: sentences(goesOn)}}
	}
	return Answers(&s.Record)
}

// HeadlineNow is Headline of AnswersNow.
func HeadlineNow(s *tuner.Summary, now time.Time) (act, text string) {
	if s.Silent(now) {
		return ActStopped, silence(s, now)
	}
	return Headline(&s.Record)
}

// silence says since when nobody runs a study that is stored as running.
func silence(s *tuner.Summary, now time.Time) string {
	return fmt.Sprintf("the tuner (process %d) has not been heard from since %s", s.Heard.PID, lastHeard(s, now))
}

// lastHeard is when a study's tuner was heard last; a time of day could be another day's after half a day.
func lastHeard(s *tuner.Summary, now time.Time) string {
	if now.Sub(s.Heard.At) > 12*time.Hour {
		return day(s.Heard.At)
	}
	return clock(s.Heard.At)
}

const (
	endedEarly = "the night ended before the confirmation"
	goesOn     = "sgtune tune with the same study file continues it"
)

// notClean is the alert of a host that still holds something.
func notClean(r *tuner.Record, held string) Answer {
	held = strings.TrimPrefix(held, "the host is not clean: ")
	held, _, _ = strings.Cut(held, "; free it (")
	a := Answer{Act: ActStopped, Text: orElse(r.Host, "the host") + " is not clean", Alert: true, Lines: sentences(held)}
	if !r.EndedAt.IsZero() {
		a.Lines = append(a.Lines, "Nothing was launched after "+r.EndedAt.Local().Format("15:04")+".")
	}
	return Answer{Act: a.Act, Text: a.Text, Alert: true, Lines: append(a.Lines, "Run sgtune reclaim.")}
}

// judged is a verdict in words. Where a verdict lacks the figures of its answer (nothing could be compared), its
// own text is all there is.
func judged(r *tuner.Record, v *tuner.Verdict) Answer {
	a := Answer{Act: ActNoVerdict, Text: orElse(v.Text, v.Answer)}
	switch v.Answer {
	case benchmark.AnswerBetter:
		a.Act = ActChange
	case benchmark.AnswerNoDifference, benchmark.AnswerWorse:
		a.Act = ActKeep
	default:
		if what, found := strings.CutPrefix(v.Text, "not confirmed: "); found && v.Launches < min(r.Confirm, benchmark.LeastLaunches) {
			a.Text, a.Lines = endedEarly, sentences(what, goesOn)
		}
		return a
	}
	if v.Low == nil || v.High == nil {
		return a
	}
	low, high := Percent(*v.Low), Percent(*v.High)
	switch v.Answer {
	case benchmark.AnswerBetter:
		a.Text = fmt.Sprintf("better by %.1f%%", 100*v.Gain)
		a.Lines = []string{fmt.Sprintf("%s. 95%% interval %s to %s, %s.", fromTo(r.Objective, v), low, high, each(v.Launches))}
	case benchmark.AnswerNoDifference:
		a.Text = benchmark.AnswerNoDifference
		a.Lines = []string{fmt.Sprintf("Best candidate #%d: %s, interval %s to %s. That includes zero, so it is not proven faster.", v.Trial, Percent(v.Gain), low, high)}
	case benchmark.AnswerWorse:
		a.Text = "the best candidate is worse"
		looked := ""
		if v.Looked > 0 {
			looked = fmt.Sprintf("looked +%.3g%% in the search and ", 100*v.Looked)
		}
		a.Lines = []string{fmt.Sprintf("#%d %sis %s (%s to %s) when repeated.", v.Trial, looked, Percent(v.Gain), low, high)}
	}
	a.Lines = append(a.Lines, conditions(r, v))
	a.Lines = append(a.Lines, v.Notes...)
	return a
}

// fromTo is what changes: "Output 1,842 → 2,104 tok/s".
func fromTo(objective string, v *tuner.Verdict) string {
	from, to := Number(v.BaselineValue), Number(v.Value)
	switch objective {
	case "requests_s":
		return "Requests " + from + " → " + to + " a second"
	case "goodput":
		return "Requests within the SLO " + from + " → " + to + " a second"
	case "concurrency":
		return "Clients within the SLO " + from + " → " + to
	}
	return "Output " + from + " → " + to + " tok/s"
}

// conditions says under what the figures hold.
func conditions(r *tuner.Record, v *tuner.Verdict) string {
	text := fmt.Sprintf("Trial %d", v.Trial)
	if v.Level > 0 && r.Objective != "concurrency" {
		text += fmt.Sprintf(", measured at %s", counted(v.Level, "client", "clients"))
	}
	if v.Answer != benchmark.AnswerBetter {
		text += ", " + each(v.Launches)
		if v.Answer == benchmark.AnswerNoDifference && v.Detectable > 0 && r.Objective != "concurrency" {
			text += fmt.Sprintf(", which could have shown %.1f%%", 100*v.Detectable)
		}
	}
	return text + "."
}

func each(launches int) string { return counted(launches, "launch", "launches") + " each" }

// Percent is a relative change with its sign and one digit: +14.2%, −1.1%, 0.0%.
func Percent(x float64) string {
	if math.Abs(100*x) < 0.05 || math.IsNaN(x) {
		return "0.0%"
	}
	return strings.Replace(fmt.Sprintf("%+.1f%%", 100*x), "-", "−", 1)
}

// counted is a number of things.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(float64(n)) + " " + more
}

// sentences makes sentences of clauses; empty ones are left out.
func sentences(clauses ...string) []string {
	var out []string
	for _, c := range clauses {
		if c = strings.TrimRight(strings.TrimSpace(c), "."); c != "" {
			out = append(out, upper(c)+".")
		}
	}
	return out
}

// upper is a clause with a capital letter; a command keeps its spelling.
func upper(text string) string {
	if text == "" || strings.HasPrefix(text, "sgtune ") {
		return text
	}
	_, width := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:width]) + text[width:]
}
