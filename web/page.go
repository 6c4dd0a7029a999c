package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"sgtune/tuner"
)

// page is what every template is given.
type page struct {
	Title     string
	Crumbs    []crumb // where the reader is, below the list of studies
	Host      string  // shown name of the host, "" on pages of no host
	Simulated bool
	Running   bool   // refresh without JavaScript, follow with it
	Study     string // name, "" on pages of no study
	State     string // of the facts shown: a stream says when it is another one
	Silent    string // since when nobody runs a study that is stored as running, "" while somebody does
	JSON      string // where the facts of this page are as JSON
	Scripts   []string
	Database  string
	Version   string
	Request   string // id of the request, also in the log
	Body      any
}

// crumb is one step of the way to a page; the last one has no link.
type crumb struct{ Text, Link string }

// studyPage is a page below a study.
func studyPage(r *tuner.Summary, title string, crumbs ...crumb) page {
	at := "/studies/" + url.PathEscape(r.Name)
	first := crumb{Text: r.Name, Link: at}
	if len(crumbs) == 0 {
		first.Link = ""
	}
	now := time.Now()
	p := page{
		Title: title, Crumbs: append([]crumb{first}, crumbs...), Host: r.Host, Simulated: r.Simulated, Study: r.Name, State: stateID(r, now),
		Running: r.State == tuner.StudyRunning, JSON: "/api/v1" + at,
	}
	if r.Silent(now) {
		p.Silent = "tuner not heard since " + lastHeard(r, now)
	}
	return p
}

// render executes a template into memory first, so that a failure is a clean 500.
func (h *Handler) render(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	text, err := h.made(r, name, p)
	if err != nil {
		http.Error(w, notMade(r), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the reader has gone; nothing is left to do
}

// renderFirst sends the first part of a page at once, to be read while the rest is made; false means that it could
// not be made, which has been answered. renderRest has to follow.
func (h *Handler) renderFirst(w http.ResponseWriter, r *http.Request, name string, p page) bool {
	text, err := h.made(r, name, p)
	if err != nil {
		http.Error(w, notMade(r), http.StatusInternalServerError)
		return false
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text)                      // the reader has gone; the rest will not reach it either
	_ = http.NewResponseController(w).Flush() // as above; what cannot flush sends all at the end
	return true
}

// renderRest sends what follows renderFirst. The status has been sent: what cannot be made is a sentence on the page.
func (h *Handler) renderRest(w http.ResponseWriter, r *http.Request, name string, p page) {
	text, err := h.made(r, name, p)
	if err != nil {
		text = []byte("<p>" + template.HTMLEscapeString(notMade(r)) + "</p></main></body></html>")
	}
	_, _ = w.Write(text) // the reader has gone; nothing is left to do
}

// made is a template's text; a failure is told to the log.
func (h *Handler) made(r *http.Request, name string, p page) ([]byte, error) {
	p.Database, p.Version, p.Request = filepath.Base(h.opts.DB), h.opts.Version, requestID(r.Context())
	p.JSON = orElse(p.JSON, "/api/v1/studies")
	var b bytes.Buffer
	err := h.pages.ExecuteTemplate(&b, name, p)
	if err != nil {
		h.opts.Log.ErrorContext(r.Context(), "cannot render a page", "page", name, "request", p.Request, "error", err)
	}
	return b.Bytes(), err
}

// notMade is what a reader is told of a page that failed.
func notMade(r *http.Request) string {
	return "The page could not be made. The reason is in the log of sgtune, request " + requestID(r.Context()) + "."
}

// Errors of requests that name something that is not there.
var (
	errNoPage = errors.New("no such page")
	errNoFile = errors.New("no such file")
)

// misasked is a request whose query cannot be answered; its text says why and what to do.
type misasked struct{ text string }

func (m misasked) Error() string { return m.text }

// errorBody is what an error page shows.
type errorBody struct {
	Text  string
	Asked string // path as it came, cut
	Where []crumb
}

// longestAsked is how much of a path an error page repeats.
const longestAsked = 200

// fail answers with what was asked and where to go.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := requestID(r.Context())
	status, text := http.StatusInternalServerError, "The database did not answer. The reason is in the log of sgtune, request "+id+"."
	var asked misasked
	where := []crumb{{Text: "All studies", Link: "/"}}
	switch {
	case errors.Is(err, tuner.ErrNoStudy):
		status, text = http.StatusNotFound, "There is no study of this name in "+filepath.Base(h.opts.DB)+"."
	case errors.Is(err, tuner.ErrNoTrial):
		status, text = http.StatusNotFound, "The study has no trial of this number."
	case errors.Is(err, errNoFile):
		status, text = http.StatusNotFound, "There is no such file. Files of a trial lie in sgtune.files beside the database; they may have been moved or removed."
	case errors.Is(err, errNoPage):
		status, text = http.StatusNotFound, "There is no such page."
	case errors.As(err, &asked):
		status, text = http.StatusBadRequest, asked.text
	case errors.Is(err, context.Canceled): // nobody reads the answer
	default:
		h.opts.Log.ErrorContext(r.Context(), "cannot answer a request", "path", cut(r.URL.Path, longestAsked), "request", id, "error", err)
	}
	if strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/metrics" || r.URL.Path == "/events" {
		http.Error(w, text, status)
		return
	}
	if name, err := studyName(r); err == nil && name != "" && status != http.StatusInternalServerError && !errors.Is(err, tuner.ErrNoStudy) {
		where = append([]crumb{{Text: "The study " + cut(name, longestAsked), Link: "/studies/" + url.PathEscape(cut(name, longestAsked))}}, where...)
	}
	h.render(w, r, status, "error.html", page{
		Title: http.StatusText(status), Body: errorBody{Text: text, Asked: cut(r.URL.Path, longestAsked), Where: where},
	})
}

// cut keeps the first bytes of a text, whole characters only.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// studyName is the study a request's path names.
func studyName(r *http.Request) (string, error) {
	name, err := url.PathUnescape(chi.URLParam(r, "id"))
	if err != nil {
		return "", tuner.ErrNoStudy
	}
	return name, nil
}

type requestKey struct{}

// withRequestID gives each request a name, which its answer carries and the log repeats.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		id := hex.EncodeToString(b[:])
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, id)))
	})
}

// requestID is the name of a request, "" outside of one.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// recoverer turns a panic of a page into a 500 that names the request.
func (h *Handler) recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				h.opts.Log.ErrorContext(r.Context(), "a page panicked", "path", cut(r.URL.Path, longestAsked), "request", requestID(r.Context()), "panic", p)
				http.Error(w, notMade(r), http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
