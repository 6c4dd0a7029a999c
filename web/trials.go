package web

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// trialsPerPage is how many trials a page of the list holds.
const trialsPerPage = 50

// trialsBody is what the list of trials shows.
type trialsBody struct {
	*tuner.Summary
	Rows     []listRow
	Pages    pager
	Columns  []column
	Filters  []filterText // what is left out, each with a link that lifts it
	Outcomes []choice
	Knobs    []string // flags of the space, for the form
	Sort     string
	Form     trialForm
}

// trialRow is one line of a list.
type trialRow struct {
	*trial.Trial
	Mark    Mark
	Gain    string   // against the baseline, "" for itself and without a value
	Changes []change // against the baseline
}

// listRow is a line of the page's list, whose texts have a bound: a page of them stays small whatever is in its trials.
type listRow struct {
	trialRow
	VoidWhy string
	Flags   string // what differs from the baseline
	Figures string // what a narrow window has no columns for
	KVUse   string // of the level of the value
	Took    string
}

// Bytes of HTML that the texts of one row may take, and of the text of one flag. The trial's own page has them in full.
const (
	rowRoom  = 340
	flagRoom = 60
)

// column is a head of the list that sorts by it.
type column struct {
	Text, Link string
	Order      string // ascending, descending, none: aria-sort
	Number     bool   // holds figures
	More       bool   // hidden where there is no room
}

// filterText is a filter in words.
type filterText struct{ Text, Lift string }

// trialForm is the filter form as it was filled in.
type trialForm struct{ Outcome, Knob, Range string }

// Bounds of a query: more cannot be meant.
const (
	mostKnobFilters = 8
	longestValue    = 200
	longestQuery    = 450 // as a link repeats it: the page has some twenty of them
	mostKnobNames   = 40
)

func (h *Handler) trials(w http.ResponseWriter, r *http.Request) {
	list, err := h.listed(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	summary, query, rows := list.summary, list.query, list.rows
	b := trialsBody{Summary: summary, Sort: query.Get("sort"), Form: trialForm{Outcome: query.Get("outcome")}, Pages: list.pages}
	base, err := h.baselineValue(r, summary.Name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	for _, t := range rows {
		b.Rows = append(b.Rows, newListRow(newTrialRow(t, summary, base)))
	}
	b.Columns, b.Filters, b.Outcomes, b.Knobs = columns(query), filters(query), outcomeChoices(query), knobNames(summary, rows)
	p := studyPage(summary, summary.Name+" trials", crumb{Text: "trials"})
	p.JSON += "/trials"
	if len(query) > 0 {
		p.JSON += "?" + query.Encode()
	}
	p.Body = b
	h.render(w, r, http.StatusOK, "trials.html", p)
}

// trialList is the page of a list of trials that a request asks for.
type trialList struct {
	summary *tuner.Summary
	query   url.Values // as it was understood
	rows    []*trial.Trial
	pages   pager
}

// listed reads the page of a list of trials that a request asks for.
func (h *Handler) listed(r *http.Request) (list trialList, err error) {
	if list.summary, err = h.summary(r); err != nil {
		return list, err
	}
	list.query = fromForm(r.URL.Query())
	q, err := trialQuery(list.query)
	if err != nil {
		return list, err
	}
	counting := q
	counting.Limit = 1
	_, total, err := h.reader.TrialPage(r.Context(), list.summary.Name, counting)
	if err != nil {
		return list, err
	}
	list.pages = newPager(list.query, total, trialsPerPage)
	q.Offset, q.Limit = list.pages.From, trialsPerPage
	list.rows, _, err = h.reader.TrialPage(r.Context(), list.summary.Name, q)
	return list, err
}

// newTrialRow is a trial as a line.
func newTrialRow(t *trial.Trial, s *tuner.Summary, base float64) trialRow {
	row := trialRow{Trial: t, Mark: markOf(t), Changes: changes(s.BaselineConfig, t.Config, ranks(s.Server.Flags))}
	if gain := gainOf(t, base); gain != nil {
		row.Gain = Percent(*gain)
	}
	return row
}

// gainOf is the relative difference of a trial's value to the baseline's, nil for a baseline and without a value.
func gainOf(t *trial.Trial, base float64) *float64 {
	if t.Value == nil || base <= 0 || t.Role == trial.RoleBaseline {
		return nil
	}
	gain := *t.Value/base - 1
	return &gain
}

func newListRow(t trialRow) listRow {
	row := listRow{trialRow: t, VoidWhy: cutHTML(t.Void, rowRoom/3)}
	row.Flags = flagsText(t.Changes, rowRoom-len(template.HTMLEscapeString(row.VoidWhy)))
	var figures []string
	add := func(known bool, text string) {
		if known {
			figures = append(figures, text)
		}
	}
	add(t.Best > 0, counted(t.Best, "client", "clients"))
	add(t.MaxRunning > 0, Number(t.MaxRunning)+" at once")
	add(t.Memory.Tokens > 0, Number(float64(t.Memory.Tokens))+" KV tokens")
	if use := kvUse(t.Trial); use != nil {
		row.KVUse = fmt.Sprintf("%.0f%%", 100**use)
		add(true, "KV use "+row.KVUse)
	}
	add(t.Memory.AfterGraphGiB != 0, Number(t.Memory.AfterGraphGiB)+" GiB free after graphs")
	add(t.Memory.HostPoolGB != 0, "host pool "+Number(t.Memory.HostPoolGB)+" GB")
	if !t.StartedAt.IsZero() && !t.EndedAt.IsZero() {
		row.Took = tuner.FormatDuration(t.EndedAt.Sub(t.StartedAt))
		add(true, "took "+row.Took)
	}
	row.Figures = strings.Join(figures, ", ")
	return row
}

// kvUse is how full the KV cache was at most at the load level of a trial's value, 0 to 1; nil where nobody read it.
func kvUse(t *trial.Trial) *float64 {
	for _, l := range t.Levels {
		if l.Concurrency == t.Best && l.Report != nil && l.Report.Server != nil {
			return l.Report.Server.TokenUsageMax
		}
	}
	return nil
}

// flagsText lists flags with their values as far as there is room, and counts those that are left.
func flagsText(all []change, room int) string {
	var out []string
	used := 0
	for i, c := range all {
		text := cutHTML(c.Flag+" "+c.New, flagRoom)
		if used += len(template.HTMLEscapeString(text)) + len(", "); used > room {
			return strings.Join(append(out, fmt.Sprintf("%d more", len(all)-i)), ", ")
		}
		out = append(out, text)
	}
	return orElse(strings.Join(out, ", "), "as today")
}

// cutHTML keeps the beginning of a text that takes at most so many bytes as HTML.
func cutHTML(text string, most int) string {
	if len(text) <= most && len(template.HTMLEscapeString(text)) <= most {
		return text
	}
	end, used := 0, len("…")
	for i, c := range text {
		if used += len(template.HTMLEscapeString(string(c))); used > most {
			break
		}
		end = i + utf8.RuneLen(c)
	}
	return strings.ToValidUTF8(text[:min(end, len(text))], "") + "…"
}

// baselineValue is the value of the newest baseline that has one, 0 without.
func (h *Handler) baselineValue(r *http.Request, study string) (float64, error) {
	newest := tuner.TrialQuery{Role: trial.RoleBaseline, State: trial.Complete, Desc: true, Limit: baselinesAsked}
	rows, _, err := h.reader.TrialPage(r.Context(), study, newest)
	if err != nil {
		return 0, err
	}
	for _, t := range rows {
		if t.Role == trial.RoleBaseline && t.Value != nil && t.Void == "" {
			return *t.Value, nil
		}
	}
	return 0, nil
}

// baselinesAsked is how many baselines are looked at: a void one is run again at most twice.
const baselinesAsked = 4

// fromForm is what the list understands of a query, each name once. The form's two fields of a knob become the
// filter they mean: knob.NAME=RANGE.
func fromForm(query url.Values) url.Values {
	if knob, value := query.Get("knob"), strings.TrimSpace(query.Get("range")); knob != "" && value != "" {
		query.Set(tuner.KnobSort+knob, value)
	}
	known := url.Values{}
	for name := range query {
		value := query.Get(name)
		if value != "" && (name == "sort" || name == "outcome" || name == "page" || strings.HasPrefix(name, tuner.KnobSort)) {
			known.Set(name, value)
		}
	}
	return known
}

// trialQuery is what the query of an address asks for.
func trialQuery(query url.Values) (tuner.TrialQuery, error) {
	q := tuner.TrialQuery{Desc: true} // the newest first
	if len(query.Encode()) > longestQuery {
		return q, misasked{fmt.Sprintf("That is too long: at most %d characters of filters.", longestQuery)}
	}
	if sort := query.Get("sort"); sort != "" {
		name, desc := strings.CutPrefix(sort, "-")
		if name == "tok_s" {
			name = "value"
		}
		knob := strings.HasPrefix(name, tuner.KnobSort)
		if !knob && !slices.Contains(tuner.TrialSorts, name) || len(name) > longestValue {
			return q, misasked{"sort is one of tok_s, " + strings.Join(tuner.TrialSorts, ", ") + ", or knob. and a flag; a - before it turns the order."}
		}
		q.Sort, q.Desc = name, desc
	}
	q.Outcome = trial.Outcome(query.Get("outcome"))
	switch string(q.Outcome) {
	case "void":
		q.Outcome, q.Void = "", true
	case string(trial.Running), string(trial.Waiting), string(trial.Pruned), string(trial.Cancelled):
		q.State, q.Outcome = trial.State(q.Outcome), ""
	case "":
	default:
		if !slices.Contains(trial.Outcomes, q.Outcome) {
			return q, misasked{"outcome is an outcome such as gpu_oom, or one of running, waiting, pruned, cancelled, void."}
		}
	}
	for _, name := range knobFilters(query) {
		knob := strings.TrimPrefix(name, tuner.KnobSort)
		value := query.Get(name)
		if len(knob) > longestValue || len(value) > longestValue || len(q.Knobs) == mostKnobFilters {
			return q, misasked{"That is too long: at most 8 flags, names and values of at most 200 characters."}
		}
		f, err := knobFilter(knob, value)
		if err != nil {
			return q, err
		}
		q.Knobs = append(q.Knobs, f)
	}
	return q, nil
}

// knobFilters are the names in a query that filter by a knob, sorted.
func knobFilters(query url.Values) []string {
	var names []string
	for name := range query {
		if strings.HasPrefix(name, tuner.KnobSort) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// knobFilter reads LOW..HIGH (either may be left out), a number, or words with commas between them.
func knobFilter(knob, value string) (tuner.KnobFilter, error) {
	f := tuner.KnobFilter{Knob: knob}
	low, high, isRange := strings.Cut(value, "..")
	if !isRange {
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			f.Min, f.Max = &v, &v
			return f, nil
		}
		f.Words = strings.Split(value, ",")
		return f, nil
	}
	for text, bound := range map[string]**float64{low: &f.Min, high: &f.Max} {
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return f, misasked{"A range of a flag is written 0.88..0.92; one end may be left out."}
		}
		*bound = &v
	}
	if low == high && low != "" {
		f.Min, f.Max = nil, nil
		return knobFilter(knob, low)
	}
	return f, nil
}

// columns are the heads of the list.
func columns(query url.Values) []column {
	heads := []struct {
		text, sort   string
		number, more bool
	}{
		{"Trial", "number", false, false},
		{"Outcome, flags changed", "outcome", false, false},
		{"Value", "value", true, false},
		{"Gain", "", true, false},
		{"Clients", "clients", true, true},
		{"Running at once", "", true, true},
		{"KV tokens", "tokens", true, true},
		{"KV use", "", true, true},
		{"GPU free after graphs", "free", true, true},
		{"Host pool", "", true, true},
		{"Took", "took", true, true},
	}
	current, desc := strings.CutPrefix(query.Get("sort"), "-")
	if current == "" {
		current, desc = "number", true
	}
	if current == "tok_s" {
		current = "value"
	}
	var out []column
	for _, head := range heads {
		c := column{Text: head.text, Number: head.number, More: head.more}
		if head.sort != "" {
			word := "-" + head.sort // highest first, as one wants figures
			if head.sort == current && desc {
				word = head.sort
			}
			c.Order = "none"
			if head.sort == current {
				c.Order = map[bool]string{true: "descending", false: "ascending"}[desc]
			}
			c.Link = with(query, "sort", word)
		}
		out = append(out, c)
	}
	return out
}

// with is a query with one value changed, "" taken out, from the first page.
func with(query url.Values, name, value string) string {
	q := url.Values{}
	for key, values := range query {
		q[key] = values
	}
	q.Del("page")
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
	return "?" + q.Encode()
}

// filters says what a query leaves out.
func filters(query url.Values) []filterText {
	var out []filterText
	if o := query.Get("outcome"); o != "" {
		out = append(out, filterText{"outcome " + o, with(query, "outcome", "")})
	}
	for _, name := range knobFilters(query) {
		out = append(out, filterText{strings.TrimPrefix(name, tuner.KnobSort) + " " + query.Get(name), with(query, name, "")})
	}
	return out
}

func outcomeChoices(query url.Values) []choice {
	out := []choice{{Text: "any", Chosen: query.Get("outcome") == ""}}
	add := func(value, text string) {
		out = append(out, choice{Value: value, Text: text, Chosen: query.Get("outcome") == value})
	}
	for _, o := range trial.Outcomes {
		add(string(o), string(o))
	}
	for _, s := range []string{"pruned", "running", "waiting", "cancelled", "void"} {
		add(s, s)
	}
	return out
}

// knobNames are the flags that trials of a study differ in, as far as this page knows them.
func knobNames(s *tuner.Summary, rows []*trial.Trial) []string {
	all := sglang.Merge(s.BaselineConfig, nil)
	for _, t := range rows {
		all = sglang.Merge(all, t.Config)
	}
	names := all.Names()
	return names[:min(len(names), mostKnobNames)]
}
