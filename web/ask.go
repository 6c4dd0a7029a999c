package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// Asker stores what people ask of a running study.
type Asker interface {
	// Ask stores a command, and one that repeats another only once: again is then true. A command that nobody could take is
	// a *tuner.Refusal.
	Ask(ctx context.Context, study string, c tuner.Command) (stored tuner.Command, again bool, err error)
}

// control is one thing that can be asked for, by its word in an address.
type control struct {
	Kind   string
	Button string
	lost   func(w world) []string
}

// world is what a question is asked about.
type world struct {
	study   *tuner.Summary
	running []*trial.Trial
	target  *trial.Trial // of void, nil where there is none
}

// controls by their words in addresses.
var controls = map[string]control{
	"stop-after-trial": {tuner.StopAfterTrial, "Stop after this trial", lostAfterTrial},
	"stop-now":         {tuner.StopNow, "Stop now and clean up", lostNow},
	"void":             {tuner.VoidTrial, "Make the trial void", lostVoid},
	"enqueue":          {tuner.Enqueue, "Launch this configuration", lostEnqueue},
}

// askBody is the page that asks once more.
type askBody struct {
	control
	Study   string
	Title   string
	Lost    []string // what is lost, and what is kept
	Refused string   // why it cannot be asked for; there is no form then
	Wrong   string   // what is wrong with what was typed
	Once    string
	Trial   int
	Back    string
	Reason  string
	Who     string
	Config  string // of enqueue: a flag and its value a line
	Action  string
}

// Limits of a form.
const (
	longestForm   = 64 << 10
	longestReason = 300
	longestWho    = 40
)

// askForm asks once more, and says what is lost.
func (h *Handler) askForm(w http.ResponseWriter, r *http.Request) {
	b, _, err := h.askBody(r, r.URL.Query())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.renderAsk(w, r, b)
}

// ask takes a form that was confirmed. Whoever sends the same form twice, or presses when somebody else just did, has asked once.
func (h *Handler) ask(w http.ResponseWriter, r *http.Request) {
	if !h.readForm(w, r, longestForm, "A form may have 64 kB. Ask for less at once.", crumb{Text: "All studies", Link: "/"}) {
		return
	}
	form := r.PostForm
	b, known, err := h.askBody(r, form)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if form.Get("confirm") != "yes" {
		h.renderAsk(w, r, b)
		return
	}
	c := tuner.Command{Kind: b.Kind, Trial: max(b.Trial, 0), Text: b.Reason, At: time.Now(), By: whoAsks(r, b.Who), Once: cut(form.Get("once"), longestWho)}
	if b.Kind == tuner.Enqueue {
		if c.Config, err = parseConfig(b.Config, known); err != nil {
			b.Wrong = err.Error()
			h.renderAsk(w, r, b)
			return
		}
	}
	stored, again, err := h.opts.Commands.Ask(r.Context(), b.Study, c)
	if refused := (*tuner.Refusal)(nil); errors.As(err, &refused) {
		b.Refused = refused.Text
		h.renderAsk(w, r, b)
		return
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.opts.Log.InfoContext(r.Context(), "asked", "study", b.Study, "command", stored.ID, "kind", stored.Kind, "by", stored.By, "again", again, "request", requestID(r.Context()))
	http.Redirect(w, r, "/studies/"+url.PathEscape(b.Study)+"#asked", http.StatusSeeOther)
}

func (h *Handler) renderAsk(w http.ResponseWriter, r *http.Request, b *askBody) {
	status := http.StatusOK
	switch {
	case b.Refused != "" && r.Method == http.MethodPost:
		status = http.StatusConflict
	case b.Wrong != "":
		status = http.StatusBadRequest
	}
	at := "/studies/" + url.PathEscape(b.Study)
	h.render(w, r, status, "ask.html", page{Title: b.Title, Study: b.Study, JSON: "/api/v1" + at, Crumbs: []crumb{{b.Study, at}, {Text: b.Button}}, Body: b})
}

// askBody is the question about what a path and a form name; known are the flags that an enqueued configuration may set beside the
// table's.
func (h *Handler) askBody(r *http.Request, form url.Values) (b *askBody, known sglang.Config, err error) {
	word := chi.URLParam(r, "control")
	c, found := controls[word]
	if !found || h.opts.Commands == nil {
		return nil, nil, errNoPage
	}
	s, err := h.summary(r)
	if err != nil {
		return nil, nil, err
	}
	at := "/studies/" + url.PathEscape(s.Name)
	b = &askBody{
		control: c, Study: s.Name, Trial: -1, Title: c.Button + "?", Back: at, Action: at + "/ask/" + word, Once: rand.Text(),
		Reason: cut(strings.TrimSpace(form.Get("reason")), longestReason), Who: cut(strings.TrimSpace(form.Get("who")), longestWho), Config: form.Get("config"),
	}
	about := world{study: s}
	if text := form.Get("trial"); text != "" || c.Kind == tuner.VoidTrial {
		if b.Trial, err = strconv.Atoi(text); err != nil || b.Trial < 0 {
			return nil, nil, misasked{"trial is the number of a trial, as trial=7."}
		}
		if about.target, err = h.reader.Trial(r.Context(), s.Name, b.Trial); err != nil && !errors.Is(err, tuner.ErrNoTrial) {
			return nil, nil, err
		}
	}
	if refused := tuner.MayAsk(s, &tuner.Command{Kind: c.Kind, Trial: max(b.Trial, 0)}, about.target, time.Now()); refused != nil {
		b.Refused = refused.Error()
		return b, nil, nil
	}
	if about.running, err = h.runningTrials(r.Context(), s.Name); err != nil {
		return nil, nil, err
	}
	b.Lost = c.lost(about)
	if c.Kind == tuner.VoidTrial {
		b.Title, b.Back = "Make trial "+strconv.Itoa(b.Trial)+" void?", at+"/trials/"+strconv.Itoa(b.Trial)
	}
	if c.Kind == tuner.Enqueue {
		known, err = h.prefill(r, s, about.target, b)
	}
	return b, known, err
}

// prefill writes the configuration that a person starts from: a trial's, the best one's, or what runs today.
func (h *Handler) prefill(r *http.Request, s *tuner.Summary, from *trial.Trial, b *askBody) (known sglang.Config, err error) {
	if from == nil {
		o, err := h.reader.Overview(r.Context(), s.Name)
		if err != nil {
			return nil, err
		}
		if o.Best != nil {
			if from, err = h.reader.Trial(r.Context(), s.Name, *o.Best); err != nil {
				return nil, err
			}
		}
	}
	config := s.BaselineConfig
	if from != nil {
		config = from.Config
	}
	if b.Config == "" {
		b.Config = configLines(config)
	}
	return sglang.Merge(s.BaselineConfig, config), nil
}

// runningTrials are the trials that run now.
func (h *Handler) runningTrials(ctx context.Context, study string) ([]*trial.Trial, error) {
	o, err := h.reader.Overview(ctx, study)
	if err != nil {
		return nil, err
	}
	var out []*trial.Trial
	for _, n := range o.Running[:min(len(o.Running), liveTrialsShown)] {
		t, err := h.reader.Trial(ctx, study, n)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// askScripts is what a page loads to ask in a dialog where there is something to ask.
func askScripts(something bool) []string {
	if !something {
		return nil
	}
	return []string{"ask.js"}
}

// whoAsks names whoever sent a request, as far as that is known: a name they gave, and the address they came from.
func whoAsks(r *http.Request, name string) string {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	name = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, name)
	return orElse(name, "somebody") + " at " + orElse(address, "an unknown address")
}
