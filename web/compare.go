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

// Trials on a compare page.
const (
	leastCompared = 1
	mostCompared  = 4
	// launchesCompared bounds the launches of the same configuration that are looked at.
	launchesCompared = 400
)

// compareBody is what the compare page shows.
type compareBody struct {
	*tuner.Summary
	Sides  []compared
	Rows   []compareRow // figures
	Flags  []compareRow
	All    bool // flags that do not differ are shown, too
	Toggle string
	Asked  string
	Level  int // load level the figures are of, 0 = each trial's best
}

// compared is one column: a configuration by one of its trials.
type compared struct {
	*trial.Trial
	Mark     Mark
	Launches []*trial.Trial // that count: of the confirmation if there are any, else all
	Confirm  bool
}

// compareRow is one line.
type compareRow struct {
	Name  string
	Cells []cell
}

// cell is a figure and what it is beside the first column.
type cell struct{ Text, Note string }

func (h *Handler) compare(w http.ResponseWriter, r *http.Request) {
	summary, err := h.summary(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	query := r.URL.Query()
	numbers, err := h.asked(query["t"], summary)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	b := compareBody{Summary: summary, All: query.Get("all") != "", Asked: joinInts(numbers)}
	for _, n := range numbers {
		t, err := h.reader.Trial(r.Context(), summary.Name, n)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		side, err := h.side(r, summary.Name, t)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		b.Sides = append(b.Sides, side)
	}
	b.Rows, b.Flags = b.figures(), b.flags()
	toggle := url.Values{"t": {b.Asked}}
	if !b.All {
		toggle.Set("all", "1")
	}
	b.Toggle = "?" + toggle.Encode()
	p := studyPage(summary, summary.Name+" compare", crumb{Text: "compare"})
	p.Running, p.Body = false, b
	h.render(w, r, http.StatusOK, "compare.html", p)
}

// asked are the trials that a query names: t=0,17 or t=0&t=17. Without any it is the baseline and the best.
func (h *Handler) asked(values []string, s *tuner.Summary) ([]int, error) {
	var out []int
	for word := range strings.FieldsFuncSeq(cut(strings.Join(values, ","), longestValue), func(c rune) bool { return c == ',' || c == ' ' }) {
		n, err := strconv.Atoi(strings.TrimPrefix(word, "#"))
		if err != nil || n < 0 {
			return nil, misasked{"t is a list of trial numbers with commas between them, such as t=0,17."}
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	if len(out) > mostCompared {
		return nil, misasked{"At most 4 trials are compared at once: leave some out."}
	}
	if len(out) < leastCompared {
		out = []int{0}
		if s.Verdict != nil && s.Verdict.Trial > 0 {
			out = append(out, s.Verdict.Trial)
		}
	}
	return out, nil
}

// side gathers the launches that count for a trial's configuration.
func (h *Handler) side(r *http.Request, study string, t *trial.Trial) (compared, error) {
	c := compared{Trial: t, Mark: markOf(t)}
	confirms, _, err := h.reader.TrialPage(r.Context(), study, tuner.TrialQuery{Role: trial.RoleConfirm, State: trial.Complete, Limit: launchesCompared})
	if err != nil {
		return c, err
	}
	for _, o := range confirms {
		if o.Void == "" && o.Value != nil && tuner.Key(o.Config) == tuner.Key(t.Config) {
			c.Launches, c.Confirm = append(c.Launches, o), true
		}
	}
	if !c.Confirm && t.State == trial.Complete && t.Void == "" && t.Value != nil {
		c.Launches = []*trial.Trial{t}
	}
	return c, nil
}

// measure is one figure of a launch; nil where it was not measured.
type measure struct {
	name, unit string
	of         func(*trial.Trial) *float64
	less       bool // less is better
}

// report is what a launch measured at its best level.
func report(t *trial.Trial) *benchmark.Report {
	for _, l := range t.Levels {
		if l.Concurrency == t.Best && l.Report != nil {
			return l.Report
		}
	}
	return nil
}

func fromReport(get func(*benchmark.Report) float64) func(*trial.Trial) *float64 {
	return func(t *trial.Trial) *float64 {
		rep := report(t)
		if rep == nil {
			return nil
		}
		if v := get(rep); v > 0 {
			return &v
		}
		return nil
	}
}

func percentile(of func(*benchmark.Report) *benchmark.Distribution, get func(*benchmark.Distribution) float64) func(*trial.Trial) *float64 {
	return fromReport(func(r *benchmark.Report) float64 {
		if d := of(r); d != nil {
			return get(d)
		}
		return 0
	})
}

func ttftOf(r *benchmark.Report) *benchmark.Distribution { return r.TTFTms }
func tpotOf(r *benchmark.Report) *benchmark.Distribution { return r.TPOTms }
func p50(d *benchmark.Distribution) float64              { return d.P50 }
func p95(d *benchmark.Distribution) float64              { return d.P95 }

var measures = []measure{
	{"output", "tok/s", fromReport(func(r *benchmark.Report) float64 { return r.OutputTokS }), false},
	{"requests", "a second", fromReport(func(r *benchmark.Report) float64 { return r.RequestsS }), false},
	{"TTFT p50", "ms", percentile(ttftOf, p50), true},
	{"TTFT p95", "ms", percentile(ttftOf, p95), true},
	{"TPOT p50", "ms", percentile(tpotOf, p50), true},
	{"TPOT p95", "ms", percentile(tpotOf, p95), true},
}

// figures are the rows of what was measured, each beside the first column.
func (b *compareBody) figures() []compareRow {
	first := compareRow{Name: "objective"}
	launches := compareRow{Name: "launches that count"}
	cache := compareRow{Name: "cache hits"}
	tokens, gpu, ram := compareRow{Name: "KV tokens"}, compareRow{Name: "GPU memory free at the least"}, compareRow{Name: "host RAM free at the least"}
	for _, s := range b.Sides {
		first.Cells = append(first.Cells, cell{Text: orElse(Amount(s.Trial, b.Objective), "not measured")})
		what := counted(len(s.Launches), "launch", "launches")
		if s.Confirm {
			what += " of the confirmation"
		}
		launches.Cells = append(launches.Cells, cell{Text: what})
		tokens.Cells = append(tokens.Cells, cell{Text: known(float64(s.Memory.Tokens), "")})
		gpu.Cells = append(gpu.Cells, cell{Text: known(float64(max(0, s.LowWater))/(1<<30), " GiB")})
		ram.Cells = append(ram.Cells, cell{Text: known(float64(max(0, s.MinRAM))/1e9, " GB")})
		cache.Cells = append(cache.Cells, b.cacheCell(s))
	}
	rows := []compareRow{first, launches}
	for _, m := range measures {
		rows = append(rows, b.measured(m))
	}
	return append(rows, cache, tokens, gpu, ram)
}

// cacheCell tells the hit ratio, and where the cache's state was another than in the first column.
func (b *compareBody) cacheCell(s compared) cell {
	rep := report(s.Trial)
	if rep == nil {
		return cell{Text: "–"}
	}
	c := cell{Text: strconv.FormatFloat(100*rep.CacheHitRatio, 'f', 0, 64) + "%"}
	if rep.CacheState != "" {
		c.Text += ", " + rep.CacheState
	}
	if base := report(b.Sides[0].Trial); base != nil && base.CacheState != rep.CacheState {
		c.Note = "⚠ the cache was " + orElse(rep.CacheState, "in an unknown state") + " here and " + orElse(base.CacheState, "in an unknown state") + " in #" + strconv.Itoa(b.Sides[0].Number)
	}
	return c
}

// measured is one figure in all columns.
func (b *compareBody) measured(m measure) compareRow {
	row := compareRow{Name: m.name}
	var base []float64
	for i, s := range b.Sides {
		var values []float64
		for _, t := range s.Launches {
			if v := m.of(t); v != nil {
				values = append(values, *v)
			}
		}
		if i == 0 {
			base = values
		}
		if len(values) == 0 {
			row.Cells = append(row.Cells, cell{Text: "–"})
			continue
		}
		c := cell{Text: Number(mean(values)) + " " + m.unit}
		if i > 0 {
			c.Note = beside(base, values, m.less)
		}
		row.Cells = append(row.Cells, c)
	}
	return row
}

// beside says what launches are beside those of the first column: never a percentage where the difference may
// be chance, and never a verdict from too few.
func beside(base, values []float64, less bool) string {
	if len(base) == 0 {
		return ""
	}
	c := benchmark.Compare(base, values)
	interval := " (" + Percent(c.Low) + " to " + Percent(c.High) + ")"
	switch c.Answer {
	case benchmark.AnswerNoDifference:
		return "~ no difference found"
	case benchmark.AnswerBetter:
		return map[bool]string{true: "worse: ", false: "better: "}[less] + Percent(c.Gain) + interval
	case benchmark.AnswerWorse:
		return map[bool]string{true: "better: ", false: "worse: "}[less] + Percent(c.Gain) + interval
	}
	return Percent(c.Gain) + ", not comparable: " + counted(min(len(base), len(values)), "launch", "launches") + " of a side"
}

func known(v float64, unit string) string {
	if v <= 0 {
		return "–"
	}
	return Number(v) + unit
}

// flags are the rows of the configurations.
func (b *compareBody) flags() []compareRow {
	all := sglang.Config{}
	for _, s := range b.Sides {
		all = sglang.Merge(all, s.Config)
	}
	n := ranks(b.Server.Flags)
	var out []compareRow
	for _, name := range all.Names() {
		row, differs := compareRow{Name: name}, false
		for _, s := range b.Sides {
			text := setting(s.Config, name, n)
			row.Cells = append(row.Cells, cell{Text: text})
			differs = differs || text != row.Cells[0].Text
		}
		if differs || b.All {
			out = append(out, row)
		}
	}
	return out
}

func joinInts(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
