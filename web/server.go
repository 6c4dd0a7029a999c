package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"sgtune/trial"
	"sgtune/tuner"
)

// Reader is what the pages ask the store for. Unknown names give tuner.ErrNoStudy and
// tuner.ErrNoTrial.
type Reader interface {
	Studies(ctx context.Context) ([]tuner.Summary, error)
	Study(ctx context.Context, name string) (*tuner.Record, error)
	Trials(ctx context.Context, study string) ([]*trial.Trial, error)
	Trial(ctx context.Context, study string, number int) (*trial.Trial, error)
	// Events lists events after an id; a negative after means the newest -after ones.
	Events(ctx context.Context, study string, after int64, limit int) (events []tuner.Event, last int64, err error)
}

// Options are the settings of the pages; the zero value works on loopback.
type Options struct {
	Addr    string        // address asked for; a host name in it is one of our own names
	Hosts   []string      // further names a browser may use for this machine
	Token   string        // SGTUNE_TOKEN; with it every request needs it
	DB      string        // shown name of the database file
	Version string        // of sgtune, for the footer
	Poll    time.Duration // how often a live page's source is looked at, default 1 s
	Log     *slog.Logger  // failures of requests, default none
}

// Handler serves the pages.
type Handler struct {
	reader Reader
	opts   Options
	pages  *template.Template
	routes http.Handler
	live   chan struct{} // one place a live page
}

//go:embed template/*.html static/*
var files embed.FS

// maxLive is how many live pages are served at once.
const maxLive = 128

// New makes the pages over reader.
func New(reader Reader, opts Options) *Handler {
	if opts.Poll <= 0 {
		opts.Poll = time.Second
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if name := hostOnly(opts.Addr); name != "" {
		opts.Hosts = append(slices.Clone(opts.Hosts), name)
	}
	h := &Handler{reader: reader, opts: opts, live: make(chan struct{}, maxLive)}
	h.pages = template.Must(template.New("").Funcs(wording).ParseFS(files, "template/*.html"))
	r := chi.NewRouter()
	r.Use(secureHeaders, h.checkHost, checkOrigin, h.checkToken)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) { h.fail(w, r, errNoPage) })
	r.Get("/", h.studies)
	r.Get("/studies/{id}", h.study)
	r.Get("/studies/{id}/trials/{number}", h.trial)
	r.Get("/events", h.events)
	r.Get("/api/v1/studies", h.apiStudies)
	r.Get("/metrics", h.metrics)
	r.Get("/login", h.loginForm)
	r.Post("/login", h.login)
	for name, kind := range map[string]string{"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"} {
		r.Get("/static/"+name, static(name, kind))
	}
	h.routes = r
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// static serves one embedded file.
func static(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		content, err := files.ReadFile("static/" + name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		w.Header().Set("Cache-Control", "public, max-age=300")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	}
}

// page is what every template is given.
type page struct {
	Title     string
	Simulated bool
	Running   bool   // refresh without JavaScript, follow with it
	Study     string // name, "" on pages of no study
	Revision  int64
	Database  string
	Version   string
	Body      any
}

// render executes a template into memory first, so that a failure is a clean 500.
func (h *Handler) render(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.Database, p.Version = h.opts.DB, h.opts.Version
	var b bytes.Buffer
	if err := h.pages.ExecuteTemplate(&b, name, p); err != nil {
		h.opts.Log.ErrorContext(r.Context(), "cannot render a page", "page", name, "error", err)
		http.Error(w, "The page could not be made. The reason is in the log of sgtune.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the reader has gone; nothing is left to do
}

var errNoPage = errors.New("no such page")

// fail answers with what was asked and where to go.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusInternalServerError, "The database did not answer. The reason is in the log of sgtune."
	switch {
	case errors.Is(err, tuner.ErrNoStudy):
		status, text = http.StatusNotFound, "There is no study of this name in "+h.opts.DB+"."
	case errors.Is(err, tuner.ErrNoTrial):
		status, text = http.StatusNotFound, "The study has no trial of this number."
	case errors.Is(err, errNoPage):
		status, text = http.StatusNotFound, "There is no such page."
	default:
		h.opts.Log.ErrorContext(r.Context(), "cannot answer a request", "path", r.URL.Path, "error", err)
	}
	if strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/metrics" || r.URL.Path == "/events" {
		http.Error(w, text, status)
		return
	}
	h.render(w, r, status, "error.html", page{Title: http.StatusText(status), Body: text})
}

// studyName is the study a request's path names.
func studyName(r *http.Request) (string, error) {
	name, err := url.PathUnescape(chi.URLParam(r, "id"))
	if err != nil {
		return "", tuner.ErrNoStudy
	}
	return name, nil
}
