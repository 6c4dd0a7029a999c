package webspeed

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed probe.js
var probe string

// subject is a page as it is looked at: what counts as its answer and as its charts.
type subject struct {
	url     string
	Verdict string `json:"verdict"` // selector of the answer, "" = it has none
	Chart   string `json:"chart"`   // selector of a drawn chart
	Done    string `json:"done"`    // selector that is there once all charts are drawn, "" = it does not say
	charts  int    // how many a whole page has
}

func ourStudy(s server) subject {
	return subject{url: s.url + "/studies/night", Verdict: "#verdict-act", Chart: ".plot canvas", Done: "body[data-charts-done]", charts: 7}
}

func peerStudy(s server) subject {
	return subject{url: s.url + "/dashboard/studies/1", Chart: ".js-plotly-plot .main-svg", charts: 4}
}

// seen is what the probe saw of a page, in ms since the navigation.
type seen struct {
	Now     float64      `json:"now"`
	FCP     float64      `json:"fcp"`     // first content painted
	Verdict float64      `json:"verdict"` // answer painted
	Chart   float64      `json:"chart"`   // first chart in the document
	Drawn   float64      `json:"drawn"`   // all charts painted, where the page says when they are done
	Changed float64      `json:"changed"` // last change of the document
	Shift   float64      `json:"shift"`   // sum of layout shifts
	Tasks   [][2]float64 `json:"tasks"`   // long tasks: start and duration
	Charts  int          `json:"charts"`
	Nodes   int          `json:"nodes"` // elements
}

// all is when the page stood still with all its charts.
func (s seen) all() float64 { return max(s.Changed, s.Drawn) }

// longest is the longest long task that began before a time.
func (s seen) longest(before float64) float64 {
	var most float64
	for _, task := range s.Tasks {
		if task[0] < before {
			most = max(most, task[1])
		}
	}
	return most
}

// still is how long nothing has happened.
func (s seen) still() time.Duration {
	last := s.all()
	for _, task := range s.Tasks {
		last = max(last, task[0]+task[1])
	}
	return time.Duration((s.Now - last) * float64(time.Millisecond))
}

// quiet is how long a page stands still before it counts as finished.
const quiet = 4 * time.Second

// browser is a chromium with a profile that was never used before.
type browser struct {
	ctx   context.Context //nolint:containedctx // chromedp's handle of the browser
	page  subject
	close func()

	mu       sync.Mutex
	bytes    float64                    // that came over the network
	requests int                        // that were answered
	open     map[network.RequestID]bool // that are not; streams are not waited for
	told     float64                    // when the first chart came, of a page that may not be asked any more
}

func newBrowser(t *testing.T, s subject) *browser {
	t.Helper()
	want, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "sgtune-browser-")
	if err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true))
	allocator, end := chromedp.NewExecAllocator(t.Context(), opts...)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &browser{ctx: ctx, page: s, open: map[network.RequestID]bool{}}
	b.close = sync.OnceFunc(func() {
		cancel()
		end()
		_ = os.RemoveAll(profile) // of a browser that may still be ending; it lies in the folder for temporary files
	})
	t.Cleanup(b.close)
	if err := chromedp.Do(ctx); err != nil { // starts it
		t.Fatal("start chromium: ", err)
	}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	if err == nil {
		_, err = chromedp.Call(ctx, runtime.AddBinding, runtime.AddBindingParams{Name: "speedTold"})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf("(%s)(%s)", probe, want)})
	}
	if err != nil {
		t.Fatal("prepare chromium: ", err)
	}
	return b
}

// hear counts what a page loads.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Type != network.ResourceTypeEventSource {
			b.open[e.RequestID] = true
		}
	case *network.EventLoadingFinished:
		delete(b.open, e.RequestID)
		b.bytes += e.EncodedDataLength
		b.requests++
	case *network.EventLoadingFailed:
		delete(b.open, e.RequestID)
	case *runtime.EventBindingCalled:
		b.told, _ = strconv.ParseFloat(e.Payload, 64) // the probe sends numbers
	}
}

// load opens the page and waits until all of it is there, at most a while. whole is false when it was not: then what
// was seen is only when the first chart came.
func (b *browser) load(most time.Duration) (v seen, whole bool, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, most)
	defer cancel()
	if err := b.visit(ctx, b.page.url); err != nil {
		return v, false, err
	}
	look := fmt.Sprintf(look, b.page.Chart)
	for ctx.Err() == nil {
		v, err = chromedp.Run(ctx, chromedp.Evaluate[seen](look))
		if err == nil && b.loading() == 0 && v.Charts >= b.page.charts && (b.page.Done == "" || v.Drawn > 0) && v.still() > quiet {
			return v, true, nil
		}
		time.Sleep(200 * time.Millisecond) // a page that is asked all the time has less time for itself
	}
	if b.ctx.Err() != nil {
		return v, false, b.ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return seen{Chart: b.told}, false, nil
}

// look reads what the probe saw. A plot may be made of several elements that look like a chart.
const look = `!window.speedSeen ? {now: 0} : {...speedSeen, now: performance.now(), nodes: document.querySelectorAll("*").length,
	charts: new Set([...document.querySelectorAll(%q)].map((e) => e.parentElement.closest(".plot, .js-plotly-plot"))).size}`

// visit goes to an address and does not wait for what is there.
func (b *browser) visit(ctx context.Context, url string) error {
	answer, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: url})
	if err == nil && answer.ErrorText != "" {
		err = fmt.Errorf("open %s: %s", url, answer.ErrorText)
	}
	return err
}

// loading is how many requests have no whole answer yet.
func (b *browser) loading() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// traffic is what has come over the network so far.
func (b *browser) traffic() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// bare loads the page without scripts and says how many bytes came.
func (b *browser) bare() (float64, error) {
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		return 0, err
	}
	visit := chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error { return b.visit(ctx, b.page.url) })
	if _, err := chromedp.Run(ctx, chromedp.WaitEvent(page.LoadEventFired, nil, visit)); err != nil {
		return 0, err
	}
	for b.loading() > 0 {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("%s is still loading: %w", b.page.url, ctx.Err())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return b.traffic(), nil
}
