package web

import (
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// The page of a new study: a text, or a form that changes it (newstudy_form.go), in; what check says of it out. It starts nothing, stores
// nothing and looks at no file.

// newBody is what the page of a new study shows.
type newBody struct {
	Text    string
	Numbers string // of its lines, for the margin
	Rows    int    // of the field
	Form    studyForm
	Half    string   // which of the two a narrow screen shows: halfForm or halfText
	Masked  bool     // the text is a stored study's, whose secrets are masked
	Starts  []choice // what one may start from
	Checked checked
}

// Halves of the page.
const (
	halfForm = "form"
	halfText = "text"
)

// draft is a new study's text on its way to the page.
type draft struct {
	text    string
	half    string
	refused []refusal // changes of the form that did not get into the text
	masked  bool
}

// checked is what is known of the text.
type checked struct {
	File     string // name to save it as
	Mistakes []tuner.Mistake
	Count    int // mistakes there are
	More     int // of those, not shown
	*tuner.Report
	Host     string // what the host has, as far as it was ever asked
	Room     string // what that leaves for host pools, "" where nothing is known to limit them
	Stored   string // a study of this name is stored
	Commands string
}

// Bounds of what the page takes.
const (
	mostForm      = 512 << 10 // bytes of a form: a study file has at most 128 kB, which may be three times as long in a form
	seenTrials    = 60        // newest trials that tell of a host
	mistakesShown = 50
	startsShown   = 6    // stored studies to start from
	historyRead   = 1000 // trials of a stored study that a plan is learnt from at each stroke
)

// startFile is the text that the page begins with.
//
//go:embed start.yaml
var startFile string

// newStudy shows the page, with the text of a stored study when asked (from=NAME).
func (h *Handler) newStudy(w http.ResponseWriter, r *http.Request) {
	text, masked := startFile, false
	if from := r.URL.Query().Get("from"); from != "" {
		record, err := h.reader.Study(r.Context(), from)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		text, masked = record.Source, strings.Contains(record.Source, "***")
	}
	h.showNew(w, r, draft{text: text, half: halfForm, masked: masked})
}

// checkNew answers the form: do=check shows the page with what was found, do=form and do=text the same with that half of it in
// front, do=part only what changed of the page, do=save the text as a file.
func (h *Handler) checkNew(w http.ResponseWriter, r *http.Request) {
	if !h.readForm(w, r, mostForm, "The text is too long: a study file has at most 128 kB. Is this the workload?", crumb{Text: "New study", Link: "/new"}) {
		return
	}
	if !r.PostForm.Has("text") {
		h.fail(w, r, misasked{"The form has no text. Open the page of a new study and send it from there."})
		return
	}
	d := draft{half: halfText}
	if r.PostForm.Get("half") == halfForm {
		d.half = halfForm
	}
	d.text, d.refused = h.written(r.PostForm)
	switch do := r.PostForm.Get("do"); do {
	case "save":
		h.saveNew(w, d.text)
	case "part":
		h.showPart(w, r, d)
	case halfForm, halfText:
		d.half = do
		h.showNew(w, r, d)
	default:
		h.showNew(w, r, d)
	}
}

// written is the text that was sent, with what was changed in the form.
func (h *Handler) written(sent url.Values) (text string, refused []refusal) {
	text = strings.ReplaceAll(sent.Get("text"), "\r\n", "\n") // forms end lines their own way
	h.checking.Lock()
	defer h.checking.Unlock()
	var found tuner.Problems
	if _, err := h.draft(text); errors.As(err, &found) && unread(found) && hasContent(text) {
		return text, nil // the page has no form for such a text
	}
	return fillIn(text, sent)
}

// saveNew sends the text back as a file, right or not: it is its writer's.
func (h *Handler) saveNew(w http.ResponseWriter, text string) {
	name := "study"
	if study, err := h.draft(text); err == nil {
		name = study.Name
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName(name)+".yaml"))
	_, _ = w.Write([]byte(text)) // the reader has gone; nothing is left to do
}

func (h *Handler) showNew(w http.ResponseWriter, r *http.Request, d draft) {
	b, err := h.bodyOf(r, d)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if b.Starts, err = h.starts(r); err != nil {
		h.fail(w, r, err)
		return
	}
	h.render(w, r, http.StatusOK, "new.html", page{Title: "New study", Crumbs: []crumb{{Text: "new study"}}, Body: b})
}

// showPart sends what a script puts into the page.
func (h *Handler) showPart(w http.ResponseWriter, r *http.Request, d draft) {
	b, err := h.bodyOf(r, d)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.render(w, r, http.StatusOK, "new-part", page{Body: b})
}

func (h *Handler) bodyOf(r *http.Request, d draft) (newBody, error) {
	found, err := h.check(r, d.text)
	if err != nil {
		return newBody{}, err
	}
	lines := strings.Count(d.text, "\n") + 1
	var numbers strings.Builder
	for i := range lines {
		fmt.Fprintln(&numbers, i+1)
	}
	b := newBody{
		Text: d.text, Numbers: numbers.String(), Rows: max(lines+1, 12), Form: formOf(d.text, found.Mistakes), Half: d.half, Masked: d.masked, Checked: found,
	}
	b.Form.refuse(d.refused)
	return b, nil
}

// starts are the texts to begin with: the example, and the newest studies.
func (h *Handler) starts(r *http.Request) ([]choice, error) {
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		return nil, err
	}
	from := r.URL.Query().Get("from")
	out := []choice{{Text: "the example", Link: "/new", Chosen: from == "" && r.Method != http.MethodPost}}
	for _, s := range all {
		if s.Source != "" && len(out) <= startsShown {
			out = append(out, choice{Value: s.Name, Text: s.Name, Chosen: s.Name == from})
		}
	}
	return out, nil
}

// draft reads a text as a study file.
func (h *Handler) draft(text string) (*tuner.Study, error) {
	read := h.opts.Draft
	if read == nil {
		read = tuner.ParseDraft
	}
	return read("study.yaml", []byte(text))
}

// check says what is known of a text. One text is checked at a time: a load generator may want the other cores.
func (h *Handler) check(r *http.Request, text string) (checked, error) {
	h.checking.Lock()
	defer h.checking.Unlock()
	if err := r.Context().Err(); err != nil { // typed over meanwhile
		return checked{}, err
	}
	c := checked{File: "study.yaml"}
	study, err := h.draft(text)
	if err != nil {
		if !errors.As(err, (*tuner.Problems)(&c.Mistakes)) {
			c.Mistakes = []tuner.Mistake{{Text: err.Error()}}
		}
		c.Count = len(c.Mistakes)
		c.More = max(0, c.Count-mistakesShown)
		c.Mistakes = c.Mistakes[:c.Count-c.More]
		return c, nil
	}
	c.File = study.Name + ".yaml"
	db := " --db " + shellWord(h.opts.DB)
	file := c.File
	if strings.HasPrefix(file, "-") { // else it would be a flag
		file = "./" + file
	}
	c.Commands = "sgtune check " + file + db + "\nsgtune tune " + file + db
	history, err := h.storedOf(r, study.Name, &c)
	if err != nil {
		return c, err
	}
	now := time.Now()
	if n := len(history); n > 0 && study.Host.Kind == tuner.HostSimulated && history[n-1].EndedAt.After(now) {
		now = history[n-1].EndedAt // a simulated clock runs ahead
	}
	facts := tuner.DraftFacts(study)
	if c.Host, err = h.askedHost(r, study, &facts); err != nil {
		return c, err
	}
	c.Report = tuner.CheckDraft(study, facts, history, now)
	c.Room = roomFor(study, facts, history)
	return c, nil
}

// roomFor says how large the host pool of a rank may be, by the rule that admits configurations; "" where nothing is known to limit it.
func roomFor(s *tuner.Study, facts tuner.HostFacts, history tuner.History) string {
	rule := tuner.HostRAM{
		Fixed: sglang.Merge(s.Server.Flags, s.Passed), Budget: s.Host.RAMBudgetBytes, PerRank: s.Host.RAMPerRank,
		Available: facts.Available(), Own: tuner.OwnRAM(history),
	}
	var known []string
	if rule.Available >= 0 {
		known = append(known, size(int64(rule.Available))+" of RAM free")
	}
	if rule.Budget > 0 {
		known = append(known, "budget "+size(int64(rule.Budget)))
	}
	base := s.SearchBase()
	const none = 1 << 14 // GB a rank that no host has
	most := sort.Search(none, func(gb int) bool {
		return rule.Check(sglang.Merge(base, sglang.Config{"hicache-size": float64(gb + 1)})) != nil
	})
	if most == none || len(known) == 0 {
		return ""
	}
	ranks := tuner.Ranks(sglang.Merge(rule.Fixed, base))
	return fmt.Sprintf("%s → hicache-size ≤ %d GB per rank (%s).", strings.Join(known, ", "), most, counted(ranks, "rank", "ranks"))
}

// storedOf are the trials of the stored study of this name, nil where there is none.
func (h *Handler) storedOf(r *http.Request, name string, c *checked) (tuner.History, error) {
	s, err := h.reader.Summary(r.Context(), name)
	switch {
	case errors.Is(err, tuner.ErrNoStudy):
		return nil, nil
	case err != nil:
		return nil, err
	case s.Trials > historyRead:
		c.Stored = fmt.Sprintf("A study of this name is stored, with %s: tune continues it. sgtune check says what is left of it.", counted(s.Trials, "trial", "trials"))
		return nil, nil
	}
	c.Stored = fmt.Sprintf("A study of this name is stored, with %s: tune continues it. Another study: name begins anew.", counted(s.Trials, "trial", "trials"))
	var history tuner.History
	err = h.walk(r.Context(), name, func(t *trial.Trial) error {
		history = append(history, t)
		return nil
	})
	return history, err
}

// askedHost says what the newest study on the same host found there, with its time, "" where nobody has asked it. It completes facts.
func (h *Handler) askedHost(r *http.Request, s *tuner.Study, facts *tuner.HostFacts) (string, error) {
	name := s.Host.Kind
	switch s.Host.Kind {
	case tuner.HostSimulated:
		return fmt.Sprintf("SIMULATED %s, %s of host RAM, as the file says.", s.Host.Profile, size(int64(s.Host.RAMBytes))), nil
	case tuner.HostSSH:
		name += " " + s.Host.Address
	case tuner.HostSlurm:
		return "Each job may get another node of Slurm. What the site gives: sgtune check.", nil
	}
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(all, func(o tuner.Summary) bool { return o.Host == name && o.Machine != nil })
	if at < 0 {
		return "", nil
	}
	before, m := all[at], all[at].Machine
	facts.Name = m.Host
	var parts []string
	if len(m.GPUs) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s with %.0f GiB each", counted(len(m.GPUs), "GPU", "GPUs"), m.GPUs[0].Name, float64(m.GPUs[0].Total)/(1<<30)))
	}
	if m.MemTotal > 0 {
		facts.MemTotal = m.MemTotal
		parts = append(parts, size(m.MemTotal)+" of host RAM")
	}
	if len(parts) == 0 {
		return "", nil
	}
	when := before.StartedAt
	free, last, err := h.seenRAM(r, before.Name)
	if err != nil {
		return "", err
	}
	if free > 0 {
		facts.MemAvailable, when = free, last
		parts = append(parts, size(free)+" of it free before a launch")
	}
	return fmt.Sprintf("%s has %s, as study %s saw it on %s. What is free now, and who holds the GPUs: sgtune check.",
		m.Host, listed(parts), before.Name, day(when)), nil
}

// seenRAM is the host memory that was available before the launches of a study, and when the last of them was; 0 where too few tell.
func (h *Handler) seenRAM(r *http.Request, study string) (free int64, last time.Time, err error) {
	newest, _, err := h.reader.TrialPage(r.Context(), study, tuner.TrialQuery{Sort: "number", Desc: true, Limit: seenTrials})
	if err != nil {
		return 0, last, err
	}
	for _, t := range newest {
		if t.OwnRAM > 0 && t.StartedAt.After(last) {
			last = t.StartedAt
		}
	}
	return tuner.SeenRAM(newest), last, nil
}

// listed joins words: a, b and c.
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
