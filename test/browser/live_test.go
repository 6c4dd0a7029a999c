package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"sgtune/sglang"
	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
)

// The words of the header about the connection.
const (
	words        = `document.getElementById("live-words").textContent`
	isLive       = words + ` === "live"`
	reconnecting = `/^reconnecting, last update \d\d:\d\d:\d\d$/.test(` + words + `)`
)

// finish ends trial 6 of the study "running", as the tuner does.
func (s *site) finish(t *testing.T) {
	t.Helper()
	done, err := s.db.Trial(t.Context(), "running", 6)
	if err != nil {
		t.Fatal(err)
	}
	value := 2300.0
	done.State, done.Step, done.Value, done.Best, done.EndedAt = trial.Complete, trial.StepSave, &value, 120, done.StartedAt.Add(14*time.Minute)
	s.save(t, done)
}

// begin has the next trial run, as the tuner does.
func (s *site) begin(t *testing.T, number int) {
	t.Helper()
	next := webbed.Measured(number, trial.RoleSearch, sglang.Config{"mem-fraction-static": 0.9}, 0, 0)
	next.Study, next.State, next.Step, next.Value, next.Best = "running", trial.Running, trial.StepWait, nil, 0
	next.CreatedAt, next.StartedAt, next.Levels = webbed.Start.Add(2*time.Hour), webbed.Start.Add(2*time.Hour), nil
	s.save(t, next)
}

func (s *site) save(t *testing.T, row *trial.Trial) {
	t.Helper()
	if err := s.db.SaveTrial(t.Context(), row); err != nil {
		t.Fatal(err)
	}
}

// happen adds an event to the study "running".
func (s *site) happen(t *testing.T, text string) {
	t.Helper()
	if err := s.db.AddEvent(t.Context(), "running", tuner.Event{At: webbed.Start.Add(2 * time.Hour), Kind: "plan", Text: text}); err != nil {
		t.Fatal(err)
	}
}

// follow opens a page that follows the study "running", and marks its document: a page that was loaded again has lost the mark.
func (s *site) follow(t *testing.T, path string) *tab {
	t.Helper()
	tb := open(t, desk, s.url+path)
	tb.until("live", isLive)
	eval[int](tb, `window.sameDocument = 1`)
	return tb
}

// same fails the test when the page was loaded again.
func (tb *tab) same() {
	tb.t.Helper()
	if !eval[bool](tb, `window.sameDocument === 1`) {
		tb.t.Errorf("%s was loaded again", eval[string](tb, "location.href"))
	}
}

// untilRows waits until the list shows trials n to 0, each once.
func (tb *tab) untilRows(n int) {
	tb.t.Helper()
	var want []string
	for ; n >= 0; n-- {
		want = append(want, fmt.Sprint(n))
	}
	list := strings.Join(want, ",")
	tb.until("the rows "+list, `[...document.querySelectorAll("#rows tbody th a")].map((a) => a.textContent).join() === `+quoted(list))
}

// TestRowsComeAlive finishes a trial and begins another while three pages are open: each shows it without being loaded again, nothing twice,
// and what the reader marked, opened and stood on stays.
func TestRowsComeAlive(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("running"))
	list, other, study := s.follow(t, "/studies/running/trials"), s.follow(t, "/studies/running/trials"), s.follow(t, "/studies/running")
	list.untilRows(6)
	list.click(`#rows input[value="2"]`)
	list.do(chromedp.Focus(chromedp.CSS(`#rows a[href$="trials/3"]`)))

	s.finish(t)
	s.begin(t, 7)
	for _, tb := range []*tab{list, other} {
		tb.untilRows(7)
		tb.until("the value", `document.querySelector("#rows").textContent.includes("2,300")`)
		tb.holds("#count", "8 trials, 1 to 8 shown")
		tb.same()
	}
	if a, b := list.text("#rows"), other.text("#rows"); a != b {
		t.Errorf("two pages show\n%s\nand\n%s", a, b)
	}
	if marked := eval[[]string](list, `[...document.querySelectorAll("#rows :checked")].map((box) => box.value)`); !slices.Equal(marked, []string{"2"}) {
		t.Errorf("marked are %v, not trial 2", marked)
	}
	if at := list.focus(`#rows a[href$="trials/3"]`); !at.There {
		t.Errorf("the focus went to %s", at.Name)
	}
	study.until("the next trial", `document.getElementById("live-box").textContent.includes("trial 7 (search)")`)
	study.holds("#live-box", "Best so far #6", "2,300", "unconfirmed")
	study.until("the chart's table", `[...document.querySelectorAll("#chart-best-table td a")].some((a) => a.textContent.trim() === "6")`)
	study.same()
}

// TestListOfStudiesComesAlive has the list of studies show what its running study found.
func TestListOfStudiesComesAlive(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("running", "better"))
	tb := s.follow(t, "/")
	tb.holds("#rows", "best so far +15.1%, unconfirmed", "better by 14.2%")
	s.finish(t)
	tb.until("the new best", `document.getElementById("rows").textContent.includes("best so far +24.8%, unconfirmed")`)
	tb.same()
}

// resumed are the ids after which pages took up their streams again.
type resumed struct {
	mu  sync.Mutex
	ids []string
}

func (r *resumed) between(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if id := q.Header.Get("Last-Event-ID"); id != "" && q.URL.Path == "/events" {
			r.mu.Lock()
			r.ids = append(r.ids, id)
			r.mu.Unlock()
		}
		next.ServeHTTP(w, q)
	})
}

// TestServerComesBack stops the server under open pages and starts it again: the header says so, with the time, and the pages recover by
// themselves, with what happened meanwhile and nothing twice.
func TestServerComesBack(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("running"))
	list, study := s.follow(t, "/studies/running/trials"), s.follow(t, "/studies/running")
	pages := []*tab{list.expects("net::ERR_"), study.expects("net::ERR_")}
	s.finish(t)
	s.happen(t, "before it went")
	const lines = `[...document.querySelectorAll("#events li")].filter((li) => /before it went|while it was away/.test(li.textContent)).length`
	list.until("the value", `document.querySelector("#rows").textContent.includes("2,300")`)
	study.until("the event", lines+" === 1")

	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for _, tb := range pages {
		tb.until("reconnecting", reconnecting)
		tb.until("it is told", `/connection was lost/.test(document.getElementById("status").textContent)`)
	}
	list.untilRows(6) // what was there stays
	s.begin(t, 7)
	s.happen(t, "while it was away")
	was := &resumed{}
	if err := s.start(context.WithoutCancel(t.Context()), was.between); err != nil {
		t.Fatal(err)
	}
	for _, tb := range pages {
		tb.until("live again", isLive)
	}
	list.untilRows(7)
	study.until("both events, each once", lines+" === 2")
	study.holds("#live-box", "trial 7 (search)")
	for _, tb := range pages {
		tb.same()
	}
	was.mu.Lock()
	defer was.mu.Unlock()
	if len(was.ids) < len(pages) {
		t.Errorf("streams were taken up after %q, by two pages", was.ids)
	}
}

// TestMissedNewsIsFetchedLater has the page's own request fail after the stream told of news: the page comes back to it.
func TestMissedNewsIsFetchedLater(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("running"))
	var broken atomic.Bool
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	err := s.start(context.WithoutCancel(t.Context()), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken.Load() && r.URL.Path != "/events" {
				http.Error(w, "not now", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	list := s.follow(t, "/studies/running/trials").expects("503")
	broken.Store(true)
	s.begin(t, 7)
	list.until("it says that it is behind", reconnecting)
	broken.Store(false)
	list.untilRows(7)
	list.until("live again", isLive)
	list.same()
}

// TestSleepingTabCatchesUp freezes a page, as browsers do with those that nobody looks at, while a trial ends.
func TestSleepingTabCatchesUp(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("running"))
	list := s.follow(t, "/studies/running/trials")
	call(list, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateFrozen})
	s.finish(t)
	s.begin(t, 7)
	call(list, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateActive})
	list.untilRows(7)
	list.until("live", isLive)
	list.same()
}

// TestFirstTrialComesAlive opens the pages of a study before its first trial.
func TestFirstTrialComesAlive(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("begun"))
	list, study := open(t, desk, s.url+"/studies/begun/trials"), open(t, desk, s.url+"/studies/begun")
	for _, tb := range []*tab{list, study} {
		tb.until("live", isLive)
	}
	first := webbed.Measured(0, trial.RoleBaseline, sglang.Config{"mem-fraction-static": 0.85}, 0, 0)
	first.Study, first.State, first.Step, first.Value, first.Best, first.Levels = "begun", trial.Running, trial.StepWait, nil, 0, nil
	first.CreatedAt, first.StartedAt = webbed.Start, webbed.Start
	s.save(t, first)
	list.untilRows(0)
	study.until("the trial", `document.getElementById("live-box").textContent.includes("trial 0 (baseline)")`)
}

// TestSilentTunerIsTold has the process that runs a study fall silent and be heard again while its page is open.
func TestSilentTunerIsTold(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("running"))
	hear := func(at time.Time) {
		t.Helper()
		if err := s.db.Hear(t.Context(), "running", tuner.Heard{At: at, Since: at.Add(-time.Hour), PID: 4711}); err != nil {
			t.Fatal(err)
		}
	}
	const most = 10 * time.Second
	study := s.follow(t, "/studies/running")
	heard := time.Now().Add(2*time.Second - tuner.SilentAfter) // due in 2 s
	hear(heard)
	study.until("the header says it", `/^tuner not heard since \d\d:\d\d/.test(`+words+`)`)
	if late := time.Since(heard.Add(tuner.SilentAfter)); late > most {
		t.Errorf("told %s after it was due", late)
	}
	study.holds("#live-box", "STOPPED", "the tuner (process 4711) has not been heard from since", "Nobody runs this study now")
	if n := eval[int](study, `document.querySelectorAll("a[data-ask]").length`); n != 0 {
		t.Errorf("%d things can be asked of nobody", n)
	}
	hear(time.Now())
	study.until("live again", isLive)
	study.holds("#live-box", "RUNNING")
	study.same()
}

// TestTwoBrowsersAskAtOnce has two browsers stop the same study, and make the same trial void, at the same moment.
func TestTwoBrowsersAskAtOnce(t *testing.T) {
	need(t)
	t.Parallel()
	for _, ask := range []struct{ name, path, link, kind, says string }{
		{"study", "/studies/running", `a[data-ask][href$="/ask/stop-now"]`, tuner.StopNow, "stop now and clean up. waits for the tuner"},
		{"trial", "/studies/running/trials/6", `a[data-ask][href*="/ask/void"]`, tuner.VoidTrial, "make trial 6 void. waits for the tuner"},
	} {
		t.Run(ask.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, standing("running"))
			pages := []*tab{s.follow(t, ask.path), s.follow(t, ask.path)}
			for _, tb := range pages {
				tb.click(ask.link)
				tb.until("the question", `document.querySelector("dialog.asking[open]") !== null`)
			}
			failed := make([]error, len(pages))
			var group sync.WaitGroup
			for i, tb := range pages {
				group.Go(func() { failed[i] = chromedp.Do(tb.ctx, chromedp.Click(chromedp.CSS("dialog.asking button"))) })
			}
			group.Wait()
			for i, tb := range pages {
				if failed[i] != nil {
					t.Fatal(failed[i])
				}
				tb.until("the answer", `document.readyState === "complete" && document.getElementById("asked") !== null`)
				tb.holds("#asked", ask.says)
				if n := eval[int](tb, `document.querySelectorAll("#asked li").length`); n != 1 {
					t.Errorf("browser %d shows %d requests", i, n)
				}
			}
			if asked := s.asked(t, "running"); len(asked) != 1 || asked[0].Kind != ask.kind {
				t.Errorf("stored: %+v", asked)
			}
		})
	}
}
