package webspeed

import (
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"sgtune/store"
	"sgtune/test/webbed"
	"sgtune/tuner"
	"sgtune/web"
)

// idle is how many bytes an hour the server of a live page sends to a browser while nothing happens, headers included.
func (b *bed) idle(t *testing.T) float64 {
	t.Helper()
	n := night(30)
	n.Record.State, n.Record.Verdict, n.Record.EndedAt, n.Record.Releases = tuner.StudyRunning, nil, time.Time{}, ""
	db, err := store.Open(t.Context(), filepath.Join(b.dir, "idle.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nobody reads it any more
	if err := webbed.Fill(t.Context(), db, n); err != nil {
		t.Fatal(err)
	}
	defer alive(t, db, n.Record.Name)()

	var sent atomic.Int64
	s := httptest.NewUnstartedServer(web.New(db, web.Options{DB: "idle.db"}))
	s.Listener = countedListener{s.Listener, &sent}
	s.Start()
	defer s.Close()
	page := ourStudy(server{url: s.URL})
	page.charts = 1 // a running study has no verdict to draw
	browser := newBrowser(t, page)
	defer browser.close()
	if _, whole, err := browser.load(limit); err != nil || !whole {
		t.Fatalf("open the live page: whole %v, %v", whole, err)
	}

	const watched = time.Minute
	before := sent.Load()
	time.Sleep(watched)
	after := sent.Load()
	state, err := chromedp.Run(browser.ctx, chromedp.Evaluate[string](`document.getElementById("live").dataset.state`))
	if err != nil || state != "live" || after == before {
		t.Fatalf("the page is %q after a minute, %d bytes, %v", state, after-before, err)
	}
	return float64(after-before) * float64(time.Hour/watched)
}

// alive says that somebody runs a study, until stop: a study that nobody hears of for long is not live.
func alive(t *testing.T, db *store.DB, study string) (stop func()) {
	t.Helper()
	begin := time.Now()
	hear := func() {
		if err := db.Hear(t.Context(), study, tuner.Heard{At: time.Now(), Since: begin, PID: os.Getpid()}); err != nil {
			t.Error(err)
		}
	}
	hear()
	ended, beat := make(chan struct{}), time.NewTicker(tuner.HeardEvery)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-beat.C:
				hear()
			}
		}
	})
	return func() {
		beat.Stop()
		close(ended)
		wg.Wait()
	}
}

// countedListener counts what is written to its connections.
type countedListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.sent}, err
}

type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}
