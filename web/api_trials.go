package web

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// apiTrialLine is one trial of /api/v1/studies/{id}/trials: how it ended and what it measured, by the names that
// `sgtune show --json` has. The whole trial, with the series of its levels, is a link away.
type apiTrialLine struct {
	Number     int            `json:"number"`
	Link       string         `json:"trial"` // address of the whole trial
	Role       trial.Role     `json:"role"`
	State      trial.State    `json:"state"`
	Step       trial.Step     `json:"step"`
	Outcome    trial.Outcome  `json:"outcome"`
	Phase      sglang.Phase   `json:"phase"`
	Cause      string         `json:"cause"`
	Text       string         `json:"text"` // what happened, in a sentence
	Void       string         `json:"void"`
	Adopted    bool           `json:"adopted"`
	Config     sglang.Config  `json:"config"`
	Value      *float64       `json:"value,omitempty"`
	Gain       *float64       `json:"gain,omitempty"`  // against the baseline, 0.05 = 5%
	Level      *apiLevelLine  `json:"level,omitempty"` // the one of Value
	Levels     []apiLevelLine `json:"levels"`
	MaxRunning float64        `json:"max_running"`
	Tokens     int            `json:"kv_tokens"`
	KVUse      *float64       `json:"kv_use,omitempty"` // how full they were at most at Level, 0 to 1
	FreeGiB    float64        `json:"free_gib"`         // GPU memory after graph capture
	HostPoolGB float64        `json:"host_pool_gb"`
	LowWater   int64          `json:"low_water_bytes"`
	MinRAM     int64          `json:"min_available_bytes"`
	StartedAt  time.Time      `json:"started_at,omitzero"`
	EndedAt    time.Time      `json:"ended_at,omitzero"`
}

// apiLevelLine is one load level of such a trial. Figures that were not measured are absent.
type apiLevelLine struct {
	Concurrency int      `json:"concurrency"`
	OutputTokS  *float64 `json:"output_tok_s,omitempty"`
	Low         *float64 `json:"output_tok_s_low,omitempty"`
	High        *float64 `json:"output_tok_s_high,omitempty"`
	TTFT        *float64 `json:"ttft_p95_ms,omitempty"`
	TPOT        *float64 `json:"tpot_p95_ms,omitempty"`
	OK          int      `json:"ok"`
	Failed      int      `json:"failed"`
	Valid       bool     `json:"valid"`
}

// longestText bounds what a line repeats of a trial's own words.
const longestText = 400

// apiTrials is a page of trials: the same query as the list of trials takes.
func (h *Handler) apiTrials(w http.ResponseWriter, r *http.Request) {
	list, err := h.listed(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	base, err := h.baselineValue(r, list.summary.Name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	lines := make([]apiTrialLine, len(list.rows))
	for i, t := range list.rows {
		lines[i] = newAPITrialLine(list.summary, t, base)
	}
	h.sendJSON(w, r, map[string]any{"total": list.pages.Total, "page": list.pages.Number, "pages": list.pages.Last, "trials": lines})
}

func newAPITrialLine(s *tuner.Summary, t *trial.Trial, base float64) apiTrialLine {
	line := apiTrialLine{
		Number: t.Number, Link: "/api/v1/studies/" + url.PathEscape(s.Name) + "/trials/" + strconv.Itoa(t.Number), Role: t.Role, State: t.State, Step: t.Step,
		Outcome: t.Verdict.Outcome, Phase: t.Verdict.Phase, Cause: t.Verdict.Cause, Text: cut(t.Verdict.Text, longestText), Void: cut(t.Void, longestText),
		Adopted: t.Adopted, Config: sglang.Merge(t.Config, nil), Value: t.Value, Gain: gainOf(t, base), Levels: []apiLevelLine{}, MaxRunning: t.MaxRunning,
		Tokens: t.Memory.Tokens, KVUse: kvUse(t), FreeGiB: t.Memory.AfterGraphGiB, HostPoolGB: t.Memory.HostPoolGB, LowWater: t.LowWater, MinRAM: t.MinRAM,
		StartedAt: t.StartedAt, EndedAt: t.EndedAt,
	}
	for _, l := range t.Levels {
		level := newAPILevelLine(l)
		line.Levels = append(line.Levels, level)
		if t.Value != nil && l.Concurrency == t.Best {
			line.Level = &level
		}
	}
	return line
}

func newAPILevelLine(l trial.Level) apiLevelLine {
	line := apiLevelLine{Concurrency: l.Concurrency}
	r := l.Report
	if r == nil {
		return line
	}
	line.OK, line.Failed, line.Valid, line.OutputTokS = r.Requests.OK, failedRequests(r), r.Valid, &r.OutputTokS
	if r.OutputHigh > 0 {
		line.Low, line.High = &r.OutputLow, &r.OutputHigh
	}
	if r.TTFTms != nil {
		line.TTFT = &r.TTFTms.P95
	}
	if r.TPOTms != nil {
		line.TPOT = &r.TPOTms.P95
	}
	return line
}
