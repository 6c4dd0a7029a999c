package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"sgtune/trial"
	"sgtune/tuner"
)

// trialBody is what the trial page shows.
type trialBody struct {
	*trial.Trial
	Study     *tuner.Summary
	Mark      Mark
	Sentence  string // what happened
	Meaning   string // why it matters: what follows
	Advice    []string
	Gain      string
	Changes   []change
	Phases    []spent
	Total     time.Duration
	Levels    []levelRow
	Free      []string
	Files     []fileLine
	Log       *logView // nil where there is no log
	LogError  string
	Before    int // trial before, -1 = none
	After     int
	Learnt    bool // the search may learn from it
	Simulated bool
	Charts    *TrialCharts
	Voidable  bool // a person may ask to make it void
	Again     bool // and to launch its like
	InLog     bool // the reader goes through the log: the charts are a link away
}

// levelRow is one load level.
type levelRow struct {
	trial.Level
	Best    bool
	Half    string // half of the interval in percent of the value: "± 1.1%"
	TTFT    string
	TPOT    string
	Cache   string // state and hit ratio
	Remarks []string
}

func (h *Handler) trial(w http.ResponseWriter, r *http.Request) {
	summary, t, err := h.trialOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	body, err := h.trialBody(r, summary, t)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p := studyPage(summary, summary.Name+" trial "+strconv.Itoa(t.Number),
		crumb{"trials", "/studies/" + url.PathEscape(summary.Name) + "/trials"}, crumb{Text: strconv.Itoa(t.Number)})
	p.Running, p.Body = !t.State.Finished(), body
	p.Scripts = askScripts(body.Voidable || body.Again)
	p.JSON += "/trials/" + strconv.Itoa(t.Number)
	if !h.renderFirst(w, r, "trial.html", p) {
		return
	}
	h.readLog(r, summary, body) // much of it, where it is long
	h.renderRest(w, r, "trial-rest", p)
}

// readLog fills in what is taken from a trial's log.
func (h *Handler) readLog(r *http.Request, s *tuner.Summary, b *trialBody) {
	if !b.InLog {
		b.Charts = h.trialCharts(s, b.Trial)
	}
	log, err := h.openLog(r, s.Name, b.Trial)
	if err != nil {
		b.LogError = logProblem(err)
	}
	b.Log = log
}

// trialOf is the trial that a request's path names, with its study.
func (h *Handler) trialOf(r *http.Request) (*tuner.Summary, *trial.Trial, error) {
	summary, err := h.summary(r)
	if err != nil {
		return nil, nil, err
	}
	number, err := strconv.Atoi(chi.URLParam(r, "number"))
	if err != nil || number < 0 {
		return nil, nil, tuner.ErrNoTrial
	}
	t, err := h.reader.Trial(r.Context(), summary.Name, number)
	return summary, t, err
}

func (h *Handler) trialBody(r *http.Request, s *tuner.Summary, t *trial.Trial) (*trialBody, error) {
	b := &trialBody{
		Trial: t, Study: s, Mark: markOf(t), Changes: changes(s.BaselineConfig, t.Config, ranks(s.Server.Flags)), Phases: phases(t),
		Free: freeAtLeast(t), Before: t.Number - 1, After: -1, Simulated: s.Simulated,
		Learnt: t.State.Finished() && t.Void == "" && (t.State != trial.Failed || t.Verdict.Blames == trial.BlameYes),
	}
	b.Again = h.opts.Commands != nil && tuner.MayAsk(s, &tuner.Command{Kind: tuner.Enqueue}, nil, time.Now()) == nil
	b.Voidable = h.opts.Commands != nil && tuner.MayAsk(s, &tuner.Command{Kind: tuner.VoidTrial, Trial: t.Number}, t, time.Now()) == nil
	b.Sentence, b.Meaning = told(t, s.Objective)
	for _, code := range t.Verdict.Advice {
		if t.State == trial.Failed || t.Verdict.Outcome == trial.Degraded {
			b.Advice = append(b.Advice, trial.AdviceText(code))
		}
	}
	for _, p := range b.Phases {
		b.Total += p.Time
	}
	if s.Trials > t.Number+1 {
		b.After = t.Number + 1
	}
	base, err := h.baselineValue(r, s.Name)
	if err != nil {
		return nil, err
	}
	if gain := gainOf(t, base); gain != nil {
		b.Gain = Percent(*gain)
	}
	for _, l := range t.Levels {
		b.Levels = append(b.Levels, newLevelRow(l, t.Best))
	}
	b.Files = h.filesOf(s.Name, t)
	b.InLog = walksLog(r.URL.Query())
	return b, nil
}

// walksLog reports whether a query is about a place of the log.
func walksLog(query url.Values) bool {
	for _, name := range []string{"at", "line", "q", "warn", "rank"} {
		if query.Get(name) != "" {
			return true
		}
	}
	return false
}

// told is what happened to a trial, and why it matters.
func told(t *trial.Trial, objective string) (sentence, meaning string) {
	switch {
	case t.State == trial.Waiting:
		return "It waits for its turn.", ""
	case t.State == trial.Running:
		return upper(stepWords[t.Step]) + ".", ""
	case t.Value != nil:
		sentence = upper(Amount(t, objective)) + "."
	default:
		sentence = upper(orElse(t.Verdict.Text, trial.OutcomeMeaning(t.Verdict.Outcome)))
	}
	if t.State == trial.Pruned {
		meaning = "It was stopped early: it could not have become better than what was already measured. "
	}
	if t.State == trial.Failed {
		meaning = trial.Explain(t.Verdict.Outcome, t.Verdict.Cause).Meaning
	} else if t.Value != nil && t.Verdict.Outcome == trial.Degraded {
		meaning += t.Verdict.Text
	}
	return sentence, meaning
}

func newLevelRow(l trial.Level, best int) levelRow {
	row := levelRow{Level: l, Best: l.Concurrency == best}
	r := l.Report
	if r == nil {
		return row
	}
	if r.OutputTokS > 0 && r.OutputHigh > 0 {
		row.Half = fmt.Sprintf("± %.1f%%", 50*(r.OutputHigh-r.OutputLow)/r.OutputTokS)
	}
	if r.TTFTms != nil {
		row.TTFT = latency(r.TTFTms.P50) + " / " + latency(r.TTFTms.P95)
	}
	if r.TPOTms != nil {
		row.TPOT = latency(r.TPOTms.P50) + " / " + latency(r.TPOTms.P95)
	}
	row.Cache = fmt.Sprintf("%.0f%%", 100*r.CacheHitRatio)
	if r.CacheState != "" {
		row.Cache += ", " + r.CacheState
	}
	if !r.Valid {
		row.Remarks = append(row.Remarks, "not valid: "+r.Invalid)
	}
	row.Remarks = append(row.Remarks, r.Flags...)
	return row
}

// latency spells milliseconds: 41 ms, 4.1 s.
func latency(ms float64) string {
	if ms >= 1000 {
		return Number(ms/1000) + " s"
	}
	return Number(ms) + " ms"
}
