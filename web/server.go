package web

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"sgtune/trial"
	"sgtune/tuner"
)

// Reader is what the pages ask the store for. Unknown names give tuner.ErrNoStudy and
// tuner.ErrNoTrial.
type Reader interface {
	Rows
	Lists
	Journal
}

// Rows are the stored objects themselves.
type Rows interface {
	Studies(ctx context.Context) ([]tuner.Summary, error)
	Study(ctx context.Context, name string) (*tuner.Record, error)
	Trials(ctx context.Context, study string) ([]*trial.Trial, error)
	Trial(ctx context.Context, study string, number int) (*trial.Trial, error)
	// Events lists events after an id; a negative after means the newest -after ones.
	Events(ctx context.Context, study string, after int64, limit int) (events []tuner.Event, last int64, err error)
}

// Lists are what the store counts, sorts and cuts itself, so that a page costs the same at 10,000 trials as at 30.
type Lists interface {
	Summary(ctx context.Context, study string) (*tuner.Summary, error)
	// Pulse is Summary's name, state, sign of life and revision alone: streams ask for it every second.
	Pulse(ctx context.Context, study string) (*tuner.Summary, error)
	// Pulses is Pulse of every study.
	Pulses(ctx context.Context) ([]tuner.Summary, error)
	Overview(ctx context.Context, study string) (*tuner.Overview, error)
	TrialPage(ctx context.Context, study string, q tuner.TrialQuery) (page []*trial.Trial, total int, err error)
}

// Journal is what happened and what was asked for.
type Journal interface {
	// Happened is Events with ids.
	Happened(ctx context.Context, study string, after int64, limit int) ([]tuner.Happened, error)
	// Asked lists the newest commands, newest first.
	Asked(ctx context.Context, study string, limit int) ([]tuner.Command, error)
	// Tally counts the trials of all studies.
	Tally(ctx context.Context) ([]tuner.Tally, error)
}

// Options are the settings of the pages; the zero value works on loopback.
type Options struct {
	Addr      string        // address asked for; a host name in it is one of our own names
	Hosts     []string      // further names a browser may use for this machine
	Token     string        // SGTUNE_TOKEN; with it every request needs it
	DB        string        // database file as the user named it: commands carry it, pages show its last element
	Version   string        // of sgtune, for the footer
	Poll      time.Duration // how often a live page's source is looked at, default 1 s
	Commands  Asker         // takes what people ask of a running study, nil = the pages only show
	Heartbeat time.Duration // of a stream on which nothing happens, default 15 s
	Log       *slog.Logger  // failures of requests, default none

	// Evidence is the folder of the studies' evidence (sgtune.files beside the database), out of which no name leads.
	// The first trial makes it, so it may appear later; "" = none can be read.
	Evidence string

	// Draft reads the text of a new study and looks at no file; nil = tuner.ParseDraft.
	Draft func(name string, source []byte) (*tuner.Study, error)
}

// Handler serves the pages.
type Handler struct {
	reader Reader
	opts   Options
	pages  *template.Template
	routes http.Handler
	hash   string        // of the embedded files
	live   chan struct{} // one place a live page
	logs   logIndexes    // line numbers of the logs that were looked at
	charts drawnStudies

	checking sync.Mutex // one text of a new study at a time
}

//go:embed template/*.html static
var files embed.FS

// maxLive is how many live pages are served at once.
const maxLive = 128

// New makes the pages over reader.
func New(reader Reader, opts Options) *Handler {
	if opts.Poll <= 0 {
		opts.Poll = time.Second
	}
	if opts.Heartbeat <= 0 {
		opts.Heartbeat = heartbeat
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if name := hostOnly(opts.Addr); name != "" {
		opts.Hosts = append(slices.Clone(opts.Hosts), name)
	}
	h := &Handler{reader: reader, opts: opts, live: make(chan struct{}, maxLive)}
	var err error
	if h.hash, err = staticHash(files); err != nil { // embedded: it cannot fail
		opts.Log.Error("static files will not be found", "error", err)
	}
	words := template.FuncMap{"static": func(name string) string { return fmt.Sprintf("/static/%s/%s", h.hash, name) }}
	h.pages = template.Must(template.New("").Funcs(wording).Funcs(words).Funcs(chartWording).ParseFS(files, "template/*.html"))
	h.routes = h.router()
	return h
}

// router says which page answers which address.
func (h *Handler) router() http.Handler {
	r := chi.NewRouter()
	r.Use(secureHeaders, withRequestID, h.recoverer, h.checkHost, checkOrigin, h.checkToken, middleware.GetHead,
		middleware.Compress(5, "text/html", "text/css", "text/javascript"))
	r.NotFound(func(w http.ResponseWriter, r *http.Request) { h.fail(w, r, errNoPage) })
	r.Get("/", h.studies)
	r.Route("/studies/{id}", func(r chi.Router) {
		r.Get("/", h.study)
		r.Get("/trials", h.trials)
		r.Get("/trials/{number}", h.trial)
		r.Get("/trials/{number}/files/{file}", h.file)
		r.Get("/compare", h.compare)
		r.Get("/export", h.export)
		r.Get("/ask/{control}", h.askForm)
		r.Post("/ask/{control}", h.ask)
		r.Get("/report.html", h.report)
	})
	r.Get("/new", h.newStudy)
	r.Post("/new", h.checkNew)
	r.Get("/events", h.events)
	r.Get("/api/v1/studies", h.apiStudies)
	r.Get("/api/v1/studies/{id}", h.apiStudy)
	r.Get("/api/v1/studies/{id}/trials", h.apiTrials)
	r.Get("/api/v1/studies/{id}/events", h.apiEvents)
	r.Get("/api/v1/studies/{id}/trials/{number}", h.apiTrial)
	r.Get("/metrics", h.metrics)
	h.chartRoutes(r)
	r.Get("/login", h.loginForm)
	r.Post("/login", h.login)
	r.Get("/static/{hash}/*", h.hashed)
	r.Get("/favicon.ico", func(w http.ResponseWriter, r *http.Request) { // asked for beside a log, which names no icon
		http.Redirect(w, r, fmt.Sprintf("/static/%s/icon.svg", h.hash), http.StatusFound)
	})
	return r
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }
