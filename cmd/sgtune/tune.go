package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

type tuneOptions struct {
	db, web, until string
	trials         int
	wall           time.Duration
	fresh, json    bool
	detach         bool
	callerFD       int // of a detached study: where its beginning is told
}

func newTuneCommand() *cobra.Command {
	var o tuneOptions
	cmd := &cobra.Command{
		Use: "tune STUDY.yaml", Short: "Run a study to its verdict: baseline, search, confirmation", Args: cobra.ExactArgs(1),
		Long: "Run a study to its budget and print the verdict. Running it again on the same database continues it: after Ctrl-C,\n" +
			"kill -9 or a power cut nothing finished is lost. Ctrl-C once stops cleanly; twice stops without waiting for the server.\n" +
			"A closed terminal stops nothing; --detach gives the terminal back as soon as the study has begun.",
		Example: "  sgtune tune examples/quickstart.yaml\n  sgtune tune night.yaml --wall 9h --until 07:00 --db night.db\n  sgtune tune night.yaml --detach",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.detach {
				return detach(cmd, args[0], o)
			}
			return tuneDetached(cmd.Context(), args[0], o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.db, "db", "", "database file (default sgtune.db beside the study file)")
	f.StringVar(&o.web, "web", "127.0.0.1:8090", "address of the live page, or off; the next free port is taken if this one is not")
	f.BoolVar(&o.fresh, "fresh", false, "start anew; what is stored under this name is kept under another")
	f.IntVar(&o.trials, "trials", 0, "baseline and search launches (overrides budget.trials)")
	f.DurationVar(&o.wall, "wall", 0, "host time for the whole study (overrides budget.wall)")
	f.StringVar(&o.until, "until", "", "end by this hour of the host's clock, as 07:00 (overrides budget.until)")
	f.BoolVar(&o.json, "json", false, "print one JSON object an event")
	f.BoolVar(&o.detach, "detach", false, "run in a session of its own, once it has begun; prints how to watch and how to stop it")
	f.IntVar(&o.callerFD, "caller-fd", 0, "")
	_ = f.MarkHidden("caller-fd") // it is there: the line above made it
	return cmd
}

// override applies the command line's budget.
func (o tuneOptions) override(s *tuner.Study) error {
	if o.trials < 0 || o.wall < 0 {
		return usagef("--trials and --wall cannot be negative")
	}
	if o.until != "" {
		if _, err := time.Parse("15:04", o.until); err != nil {
			return usagef("--until %q is not an hour; write it as 07:00", o.until)
		}
		s.Budget.Until = o.until
	}
	if o.trials > 0 {
		s.Budget.Trials = o.trials
	}
	if o.wall > 0 {
		s.Budget.Wall = o.wall
	}
	return nil
}

func tune(ctx context.Context, path string, o tuneOptions, stdout io.Writer, s *starter) error {
	study, err := readStudy(path)
	if err != nil {
		return err
	}
	if err := o.override(study); err != nil {
		return err
	}
	workload, err := benchmark.ReadWorkload(study.Workload.File)
	if err != nil {
		return usagef("%w", err)
	}
	if err := asking(study, func(ask asker) error {
		if problems := study.Fit(quickInstalled(ctx, ask, study)); len(problems) > 0 {
			return usagef("%s: %s; sgtune check says more", path, strings.Join(problems, "; "))
		}
		return nil
	}); err != nil {
		return err
	}
	study.FitWorkload(workload.Reuse)
	if o.db == "" {
		o.db = filepath.Join(filepath.Dir(path), "sgtune.db")
	}
	db, err := store.Open(ctx, o.db)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	n := &night{study: study, workload: workload, db: db, options: o, path: path, stdout: stdout, starter: s}
	ctx, stop := n.signals(ctx)
	defer stop()
	return n.run(ctx)
}

// night is one run of the program over a study.
type night struct {
	study    *tuner.Study
	workload *benchmark.Workload
	db       *store.DB
	options  tuneOptions
	path     string
	stdout   io.Writer
	starter  *starter // tells the caller of a detached study that it began
	hurry    chan struct{}
	screen   *terminal
	watcher  atomic.Pointer[terminal]    // the screen, for the signals' goroutine
	machine  atomic.Pointer[host.Remote] // the study's host where it is another machine, likewise
}

func (n *night) run(ctx context.Context) error {
	page, stop, err := n.servePages(ctx)
	if err != nil {
		return usagef("%w", err)
	}
	defer stop()
	if n.options.fresh {
		if err := n.startFresh(ctx); err != nil {
			return err
		}
	}
	record, err := n.record(ctx)
	if err != nil {
		return err
	}
	trials, err := n.db.Trials(ctx, n.study.Name)
	if err != nil {
		return err
	}
	where, err := newPlace(n.study, n.options.db, n.origin(record, trials))
	if err != nil {
		return err
	}
	defer func() { _ = where.close() }()
	n.machine.Store(where.remote)
	if err := os.MkdirAll(where.files, 0o700); err != nil {
		return fmt.Errorf("make the evidence folder %s: %w; choose another place with --db", where.files, err)
	}
	release, err := where.host.Lease(ctx, "study "+n.study.Name)
	if err != nil {
		return err
	}
	defer func() { _ = release() }()
	defer n.beHeard(ctx)()
	if record, err = n.record(ctx); err != nil { // who held the lease may have changed it
		return err
	}
	if _, err := where.hostUntil(ctx, n.study); err != nil {
		return err
	}
	record.Host = where.name
	n.screen = n.newScreen(where, record, trials)
	n.watcher.Store(n.screen)
	defer n.screen.Close()
	if !settled(n.study, record, trials) {
		if page != "" {
			n.screen.Say("live page: %s", page)
		}
		n.screen.Start()
	}
	loop, err := n.wire(ctx, where, record)
	if err != nil {
		return err
	}
	n.watchBeginning(loop, page)
	verdict, err := loop.Run(ctx)
	n.screen.Close()
	return n.report(record, verdict, err)
}

// origin is where the host's clock starts: a simulated one goes on where the stored rows end.
func (n *night) origin(r *tuner.Record, trials []*trial.Trial) time.Time {
	now := time.Now()
	if n.study.Host.Kind != tuner.HostSimulated {
		return now
	}
	times := []time.Time{now}
	for _, t := range trials {
		times = append(times, t.CreatedAt, t.StartedAt, t.EndedAt)
		for _, level := range t.Levels { // of a trial that is adopted
			times = append(times, level.EndedAt)
		}
	}
	return latest(r, times...)
}

// record is the study's stored row, or a new one. A study that is continued must be the same in all
// that its trials depend on.
func (n *night) record(ctx context.Context) (*tuner.Record, error) {
	s := n.study
	server := s.Server
	if len(server.Command) == 0 {
		server.Command = simCommand(s, "sgtune")
	}
	if s.Port > 0 { // the user's own port belongs to what is exported
		server.Flags = sglang.Merge(server.Flags, sglang.Config{"port": float64(s.Port)})
	}
	r, err := n.db.Study(ctx, s.Name)
	switch {
	case errors.Is(err, tuner.ErrNoStudy):
		r = &tuner.Record{Name: s.Name, Identity: s.Identity()}
	case err != nil:
		return nil, err
	default:
		if diff := tuner.DiffIdentity(r.Identity, s.Identity()); len(diff) > 0 {
			return nil, usagef("%s: not what study %s was begun with: %s; use another study: name, or --fresh", n.path, s.Name, some(diff))
		}
	}
	r.Simulated, r.Source, r.Server, r.Objective = s.Simulated, string(s.Source), server, s.Objective.Metric
	return r, nil
}

// startFresh keeps what is stored under the study's name under another one. What an earlier run left
// on the host is cleaned up first, while its rows can still be found by name.
func (n *night) startFresh(ctx context.Context) error {
	if _, err := n.db.Study(ctx, n.study.Name); errors.Is(err, tuner.ErrNoStudy) {
		return nil
	}
	trials, err := n.db.Trials(ctx, n.study.Name)
	if err != nil {
		return err
	}
	where, err := newPlace(n.study, n.options.db, n.origin(nil, trials))
	if err != nil {
		return err
	}
	defer func() { _ = where.close() }()
	release, err := where.host.Lease(ctx, "study "+n.study.Name)
	if err != nil {
		return err
	}
	defer func() { _ = release() }()
	if err := where.recover(ctx, n.study.Name, running(trials), n.db); err != nil {
		err = fmt.Errorf("clean up after the earlier %s: %w", n.study.Name, err)
		return failf(exitHost, "%w", errors.Join(err, n.tellUnclean(ctx, err)))
	}
	name, err := n.db.Retire(ctx, n.study.Name)
	if err != nil {
		return err
	}
	err = os.Rename(where.files, filepath.Join(filepath.Dir(where.files), name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keep the evidence of the earlier %s: %w", n.study.Name, err)
	}
	return nil
}

// running are the rows that an earlier run of the program left unfinished on the host.
func running(trials []*trial.Trial) []*trial.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t *trial.Trial) bool { return t.State != trial.Running })
}

// servePages serves the page of the study; where it is, is "" when nobody wants one.
func (n *night) servePages(ctx context.Context) (page string, stop func(), err error) {
	if n.options.web == "off" {
		return "", func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	pages := web.New(n.db, web.Options{Addr: n.options.web, Version: version(), Token: os.Getenv("SGTUNE_TOKEN"), DB: n.options.db, Commands: n.db, Evidence: evidenceFolder(n.options.db), Draft: readDraft})
	addr, wait, err := web.Serve(ctx, n.options.web, pages)
	if err != nil {
		cancel()
		return "", nil, err
	}
	return fmt.Sprintf("http://%s/studies/%s", addr, n.study.Name), func() {
		cancel()
		_ = wait()
	}, nil
}

func (n *night) newScreen(where *place, r *tuner.Record, trials []*trial.Trial) *terminal {
	f, isFile := n.stdout.(*os.File)
	live := isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	t := newTerminal(n.stdout, live, n.options.json, n.study, n.options.db, where.clock.Now)
	if live {
		t.size = func() (int, int) {
			if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
				return w, h
			}
			return 80, 24
		}
	}
	if settled(n.study, r, trials) {
		t.Say("study %s has its verdict since %s; nothing is launched. To run it anew: --fresh, or another study: name", r.Name, day(r.EndedAt))
		return t
	}
	t.Head(where.name, len(trials))
	return t
}

// settled reports whether a study has its answer already, so that running it again only shows it. One
// that is not confirmed has it when each side was launched as often as was fixed.
func settled(s *tuner.Study, r *tuner.Record, trials []*trial.Trial) bool {
	if r.State != tuner.StudyComplete || r.Verdict == nil {
		return false
	}
	if r.Verdict.Answer != benchmark.AnswerNotConfirmed {
		return true
	}
	sides := map[string]int{}
	for _, t := range trials {
		if t.Role == trial.RoleConfirm && t.State == trial.Complete && t.Value != nil && t.Void == "" {
			sides[tuner.Key(t.Config)]++
		}
	}
	return r.Candidate != nil && sides[tuner.Key(s.Baseline)] >= r.Confirm && sides[tuner.Key(r.Candidate)] >= r.Confirm
}

// again is the command that continues the study as it was started.
func (n *night) again() string {
	words := []string{"sgtune tune", shellWord(n.path), "--db", shellWord(n.options.db)}
	o := n.options
	if o.trials > 0 {
		words = append(words, "--trials", fmt.Sprint(o.trials))
	}
	if o.wall > 0 {
		words = append(words, "--wall", o.wall.String())
	}
	if o.until != "" {
		words = append(words, "--until", o.until)
	}
	return strings.Join(words, " ")
}

// report prints how the study ended and picks the exit code.
func (n *night) report(r *tuner.Record, v *tuner.Verdict, err error) error {
	var stopped *tuner.Stopped
	if err != nil && r.AfterDone != "" {
		n.screen.Say("%s", r.AfterDone)
	}
	if left := n.leftText(err); left != nil {
		return left
	}
	switch {
	case errors.Is(err, trial.ErrDirtyHost), errors.Is(err, tuner.ErrHeld):
		return failf(exitHost, "%w", err)
	case errors.Is(err, trial.ErrStopped):
		return failf(exitInterrupted, "stopped; everything finished is stored. To go on: %s", n.again())
	case errors.As(err, &stopped):
		return failf(exitFailed, "%w", err)
	case err != nil:
		return err
	}
	n.screen.Verdict(v, r)
	if v.Answer == benchmark.AnswerNotConfirmed {
		return failf(exitFailed, "")
	}
	return nil
}
