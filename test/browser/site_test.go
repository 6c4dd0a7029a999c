package browser_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sgtune/store"
	"sgtune/test/webbed"
	"sgtune/web"
)

// site is a database whose pages are served on loopback.
type site struct {
	url  string
	db   *store.DB
	root *os.Root // evidence

	addr string
	dir  string
	stop func() error
}

// filling is what a site's database holds.
type filling func(ctx context.Context, s *site) error

// standing fills a site with studies in these states, all of them unless named; each carries the name of its state.
func standing(states ...string) filling {
	if len(states) == 0 {
		states = webbed.States
	}
	return func(ctx context.Context, s *site) error {
		for i, name := range states {
			if err := webbed.Stand(ctx, s.db, s.root, name, webbed.Start.Add(-time.Duration(i)*24*time.Hour)); err != nil {
				return err
			}
		}
		return nil
	}
}

// nightOf fills a site with the study "night" of so many search trials.
func nightOf(trials int) filling {
	return func(ctx context.Context, s *site) error {
		return webbed.Fill(ctx, s.db, webbed.Make("night", trials, 7))
	}
}

// newSite serves a database of the test's own.
func newSite(t testing.TB, fill filling) *site {
	t.Helper()
	need(t)
	s, err := fillSite(context.WithoutCancel(t.Context()), t.TempDir(), fill) // it is stopped below
	if s != nil {
		t.Cleanup(func() {
			if err := s.close(); err != nil {
				t.Errorf("stop the page: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fillSite(ctx context.Context, dir string, fill filling) (*site, error) {
	s := &site{dir: dir, addr: "127.0.0.1:0"}
	evidence := filepath.Join(dir, "sgtune.files")
	err := os.Mkdir(evidence, 0o700)
	if err == nil {
		s.root, err = os.OpenRoot(evidence)
	}
	if err == nil {
		s.db, err = store.Open(ctx, filepath.Join(dir, "sgtune.db"))
	}
	if err == nil {
		err = fill(ctx, s)
	}
	if err == nil {
		err = s.start(ctx, nil)
	}
	return s, err
}

// start serves the pages, again at the same address once they were stopped. between stands between browser and pages, nil = nothing.
func (s *site) start(ctx context.Context, between func(http.Handler) http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	var h http.Handler = web.New(s.db, web.Options{DB: "sgtune.db", Evidence: s.root.Name(), Version: "v1", Commands: s.db, Poll: 50 * time.Millisecond})
	if between != nil {
		h = between(h)
	}
	addr, wait, err := web.Serve(ctx, s.addr, h)
	if err != nil {
		cancel()
		return err
	}
	if s.url != "" && addr != s.addr {
		cancel()
		return errors.Join(fmt.Errorf("the port of %s was taken meanwhile", s.addr), wait())
	}
	s.addr, s.url = addr, "http://"+addr
	s.stop = func() error {
		s.stop = nil
		cancel()
		return wait()
	}
	return nil
}

func (s *site) close() error {
	var err error
	if s.stop != nil {
		err = s.stop()
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
	}
	return err
}

// shared are the sites that tests only read, made when the first test asks.
var shared = map[string]*sharedSite{
	"states":  {fill: standing()},                                        // a study in each state
	"none":    {fill: func(context.Context, *site) error { return nil }}, // no study
	"night":   {fill: nightOf(30)},                                       // a study with all charts
	"many":    {fill: nightOf(10_000)},                                   // the same with 10,000 trials
	"picture": {fill: pictured},                                          // of the pictures
}

type sharedSite struct {
	fill filling
	once sync.Once
	site *site
	err  error
}

// read is a shared site.
func read(t testing.TB, name string) *site {
	t.Helper()
	need(t)
	s := shared[name]
	s.once.Do(func() {
		dir, err := os.MkdirTemp("", "sgtune-browser-"+name+"-")
		if err != nil {
			s.err = err
			return
		}
		s.site, s.err = fillSite(context.Background(), dir, s.fill)
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.site
}

// closeShared ends the shared sites, after the last test.
func closeShared() {
	for _, s := range shared {
		if s.site == nil {
			continue
		}
		_ = s.site.close() // nothing is judged any more
		_ = os.RemoveAll(s.site.dir)
	}
}
