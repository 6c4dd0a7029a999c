package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"sgtune/tuner"
)

// How many studies a page of the list holds, and how many bytes of HTML the answer of each may take.
const (
	studiesPerPage = 50
	lineRoom       = 320
)

// studyLine is one row of the list.
type studyLine struct {
	tuner.Summary
	Mark      Mark
	Act, Text string
	Alert     bool
}

// studiesBody is what the list shows.
type studiesBody struct {
	Lines  []studyLine
	State  string // filter, "" = all
	States []choice
	Total  int // studies stored
	Pages  pager
}

// choice is one value of a filter.
type choice struct {
	Value, Text string
	Link        string
	Chosen      bool
}

func (h *Handler) studies(w http.ResponseWriter, r *http.Request) {
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	query := r.URL.Query()
	b := studiesBody{State: query.Get("state"), Total: len(all)}
	for _, state := range []string{"", "running", "complete", "stopped"} {
		c := choice{Value: state, Text: orElse(state, "all"), Link: "/", Chosen: state == b.State}
		if state != "" {
			c.Link = "/?state=" + state
		}
		b.States = append(b.States, c)
	}
	if !slices.ContainsFunc(b.States, func(c choice) bool { return c.Chosen }) {
		h.fail(w, r, misasked{"state is one of running, complete, stopped."})
		return
	}
	now := time.Now()
	p := page{Title: "Studies", State: listID(all, now)} // what follows may be newer, never older
	for _, s := range all {
		p.Running = p.Running || s.State == tuner.StudyRunning
	}
	if b.State != "" {
		all = slices.DeleteFunc(all, func(s tuner.Summary) bool { return string(s.State) != b.State })
	}
	known := url.Values{"page": {query.Get("page")}}
	if b.State != "" {
		known.Set("state", b.State)
	}
	b.Pages = newPager(known, len(all), studiesPerPage)
	for i := range all[b.Pages.From:b.Pages.To] {
		s := all[b.Pages.From+i]
		first := AnswersNow(&s, now)[0]
		_, text := HeadlineNow(&s, now)
		if first.Act == ActRunning {
			text = h.soFar(r, &s)
		}
		b.Lines = append(b.Lines, studyLine{Summary: s, Mark: actMarks[first.Act], Act: first.Act, Text: cutHTML(text, lineRoom), Alert: first.Alert})
	}
	p.Simulated = len(b.Lines) > 0 && !slices.ContainsFunc(b.Lines, func(l studyLine) bool { return !l.Simulated }) // else each says so itself
	p.Body = b
	h.render(w, r, http.StatusOK, "studies.html", p)
}

// soFar says what a running study has found so far.
func (h *Handler) soFar(r *http.Request, s *tuner.Summary) string {
	const nothing = "no verdict yet"
	o, err := h.reader.Overview(r.Context(), s.Name)
	if err != nil || o.Best == nil || o.Baseline == nil {
		return nothing
	}
	best, err := h.reader.Trial(r.Context(), s.Name, *o.Best)
	if err != nil {
		return nothing
	}
	base, err := h.reader.Trial(r.Context(), s.Name, *o.Baseline)
	if err != nil || best.Value == nil || base.Value == nil || *base.Value <= 0 || best.Number == base.Number {
		return nothing
	}
	return "best so far " + Percent(*best.Value / *base.Value - 1) + ", unconfirmed"
}

// pager is a page of a list.
type pager struct {
	Number, Last int
	From, To     int // rows of the list: From included, To not
	Total        int
	Before, Next string // links, "" = none
}

// newPager cuts a list of total rows; the page's number is the query's.
func newPager(query url.Values, total, size int) pager {
	p := pager{Total: total, Last: max(1, (total+size-1)/size)}
	number, err := strconv.Atoi(query.Get("page"))
	if err != nil {
		number = 1
	}
	p.Number = min(max(number, 1), p.Last)
	p.From = (p.Number - 1) * size
	p.To = min(p.From+size, total)
	link := func(n int) string {
		q := url.Values{}
		for name, values := range query {
			q[name] = values
		}
		q.Set("page", strconv.Itoa(n))
		return "?" + q.Encode()
	}
	if p.Number > 1 {
		p.Before = link(p.Number - 1)
	}
	if p.Number < p.Last {
		p.Next = link(p.Number + 1)
	}
	return p
}
