package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// Rows shown at once.
const (
	eventsShown   = 20
	eventText     = 160 // bytes of each; the whole is in the API
	confirmsShown = 60  // launches of a confirmation that facts are taken from: there are at most a dozen a side
)

// studyBody is what the study page shows.
type studyBody struct {
	*tuner.Summary
	Line     []string // host, GPUs, SGLang, in a few words
	Alert    *Answer  // the host is not clean
	Answer   *Answer  // nil when the alert says it all, and while the study runs
	Mark     Mark     // of Answer
	Changes  []change // what to change, only after "better"
	Same     []change // flags of the same configuration that stay
	Facts    []fact
	Live     *liveBox // while the study runs
	Overview *tuner.Overview
	Failures []failureLine
	Blame    int  // trials that failed and say something about their configuration
	Nothing  bool // trials ended and none was measured
	Next     next
	Profile  int // trial whose profile is worth getting, -1 = none
	Best     *trial.Trial
	Events   []tuner.Event
	Charts   *StudyCharts // made after the rest was sent; nil where they could not be
}

// change is one flag that differs from what runs today; "" is a flag that is not set.
type change struct{ Flag, Today, New string }

// next is the command that comes next.
type next struct{ Text, Command string }

func (h *Handler) study(w http.ResponseWriter, r *http.Request) {
	summary, err := h.summary(r) // its revision is read first: what follows may be newer, never older
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if number := r.URL.Query().Get("t"); number != "" { // as tables name a trial: they have hundreds of links
		http.Redirect(w, r, "/studies/"+url.PathEscape(summary.Name)+"/trials/"+url.PathEscape(number), http.StatusSeeOther)
		return
	}
	p := studyPage(summary, summary.Name) // its state, too: a tuner that falls silent meanwhile is another one, of which the stream tells
	body, err := h.studyBody(r, summary)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p.Scripts = askScripts(p.Running)
	p.Body = body
	if !h.renderFirst(w, r, "study.html", p) {
		return
	}
	// Charts are made of every trial, which takes seconds when nobody has asked for them before.
	if body.Charts, err = h.studyCharts(r.Context(), summary.Name); err != nil {
		h.opts.Log.WarnContext(r.Context(), "cannot draw the charts of a study", "study", summary.Name, "request", requestID(r.Context()), "error", err)
	}
	h.renderRest(w, r, "study-rest", p)
}

// summary is the study that a request's path names.
func (h *Handler) summary(r *http.Request) (*tuner.Summary, error) {
	name, err := studyName(r)
	if err != nil {
		return nil, err
	}
	return h.reader.Summary(r.Context(), name)
}

func (h *Handler) studyBody(r *http.Request, s *tuner.Summary) (*studyBody, error) {
	overview, err := h.reader.Overview(r.Context(), s.Name)
	if err != nil {
		return nil, err
	}
	events, _, err := h.reader.Events(r.Context(), s.Name, -eventsShown, eventsShown)
	if err != nil {
		return nil, err
	}
	b := &studyBody{Summary: s, Overview: overview, Events: events, Profile: -1}
	b.answers()
	if overview.Best != nil {
		if b.Best, err = h.reader.Trial(r.Context(), s.Name, *overview.Best); err != nil {
			return nil, err
		}
	}
	b.Nothing = overview.Finished > 0 && overview.Best == nil
	if s.State == tuner.StudyRunning {
		b.Live, err = h.liveBox(r, s, b)
	} else {
		err = h.verdictFacts(r, b)
	}
	if err != nil {
		return nil, err
	}
	if b.Failures, err = h.failureLines(r, s.Name, overview); err != nil {
		return nil, err
	}
	for _, f := range b.Failures {
		if !f.Innocent {
			b.Blame += f.Count
		}
	}
	b.Line, b.Next = b.line(), b.next(h.opts.DB)
	slices.Reverse(b.Events)
	for i := range b.Events {
		b.Events[i].Text = cut(b.Events[i].Text, eventText)
	}
	return b, nil
}

// answers puts the study's answers where they belong.
func (b *studyBody) answers() {
	for _, a := range Answers(&b.Record) {
		switch {
		case a.Alert:
			b.Alert = &a
		case b.State != tuner.StudyRunning || b.Verdict != nil:
			b.Answer, b.Mark = &a, actMarks[a.Act]
		}
	}
}

// verdictFacts fills what stands beside a verdict: what to change and what is known of it.
func (h *Handler) verdictFacts(r *http.Request, b *studyBody) error {
	v := b.Verdict
	if v == nil {
		b.Facts = b.hostFacts(nil)
		return nil
	}
	confirms, _, err := h.reader.TrialPage(r.Context(), b.Name, tuner.TrialQuery{Role: trial.RoleConfirm, Limit: confirmsShown})
	if err != nil {
		return err
	}
	picked, err := h.reader.Trial(r.Context(), b.Name, v.Trial)
	if err != nil && v.Trial != 0 {
		return err
	}
	if v.Answer == benchmark.AnswerBetter || v.Answer == benchmark.AnswerNotConfirmed && v.Trial > 0 && v.Gain > 0 {
		b.Profile = v.Trial
	}
	if v.Answer == benchmark.AnswerBetter {
		b.Changes = changes(b.BaselineConfig, v.Config, ranks(b.Server.Flags))
		b.Same = unchanged(sglang.Merge(b.Server.Flags, b.BaselineConfig), sglang.Merge(b.Server.Flags, v.Config), ranks(b.Server.Flags))
	}
	b.Facts = b.hostFacts(newLaunches(&b.Record, v, picked, confirms))
	return nil
}

// line says in a few words what the study ran on.
func (b *studyBody) line() []string {
	out := []string{orElse(b.Host, "host not known")}
	if m := b.Machine; m != nil && len(m.GPUs) > 0 {
		out = append(out, counted(len(m.GPUs), "GPU", "GPUs")+" "+m.GPUs[0].Name)
	}
	if b.Best != nil && b.Best.SGLang != "" {
		out = append(out, "SGLang "+b.Best.SGLang)
	}
	return out
}

// next is what the reader types next.
func (b *studyBody) next(db string) next {
	name := shellWord(b.Name)
	of := " --db " + shellWord(db)
	v := b.Verdict
	switch {
	case b.Alert != nil:
		return next{"See what is held, and free what carries our marker:", "sgtune reclaim"}
	case b.Live != nil && b.Live.Silent != "":
		return next{"Continue it with the same study file; what runs on the host is cleaned up first:", "sgtune tune STUDY.yaml" + of}
	case b.State == tuner.StudyRunning:
		return next{"Follow it in a terminal:", "sgtune show " + name + of}
	case v != nil && v.Answer == benchmark.AnswerBetter:
		return next{"The profile, as a script:", "sgtune export " + name + of + " --format sh > launch.sh"}
	case b.Profile > 0:
		return next{"The profile, unconfirmed:", "sgtune export " + name + of + " --trial " + strconv.Itoa(b.Profile) + " --format sh > launch.sh"}
	case v != nil && (v.Answer == benchmark.AnswerNoDifference || v.Answer == benchmark.AnswerWorse):
		return next{"Nothing to change. What runs today, as a script:", "sgtune export " + name + of + " --format sh > launch.sh"}
	}
	return next{"Continue it with the same study file:", "sgtune tune STUDY.yaml" + of}
}

// changes lists the flags in which a configuration differs from what runs today.
func changes(today, better sglang.Config, ranks int) []change {
	var out []change
	for _, name := range sglang.Merge(today, better).Names() {
		c := change{Flag: name, Today: setting(today, name, ranks), New: setting(better, name, ranks)}
		if c.Today != c.New {
			out = append(out, c)
		}
	}
	return out
}

// unchanged lists the flags that two configurations share.
func unchanged(a, b sglang.Config, ranks int) []change {
	var out []change
	for _, name := range a.Names() {
		if text := setting(a, name, ranks); text == setting(b, name, ranks) {
			out = append(out, change{Flag: name, Today: text, New: text})
		}
	}
	return out
}

// setting is a knob's value in words, with its unit where SGLang's own number has one.
func setting(c sglang.Config, name string, ranks int) string {
	value, set := c[name]
	text := sglang.FormatValue(value)
	switch {
	case !set:
		return "not set"
	case name == hicacheSize && value == 0.0:
		return "off"
	case name == hicacheSize:
		if gb, ok := c.Float(name); ok && ranks > 1 {
			return text + " GB per rank (" + Number(gb*float64(ranks)) + " GB host)"
		}
		return text + " GB per rank"
	}
	return text
}

const hicacheSize = "hicache-size"

// ranks is how many GPU processes a server with these flags has on its host, as far as flags tell.
func ranks(flags sglang.Config) int {
	n := 1.0
	for _, name := range []string{"tp-size", "pp-size"} {
		if v, ok := flags.Float(name); ok && v > 1 {
			n *= v
		}
	}
	return int(n)
}

// plan is the newest statement of what still fits, "" without one.
func plan(events []tuner.Event) string {
	for _, e := range slices.Backward(events) {
		if e.Kind != "plan" {
			continue
		}
		if _, rest, found := strings.Cut(e.Text, ". "); found {
			return rest
		}
		return e.Text
	}
	return ""
}
