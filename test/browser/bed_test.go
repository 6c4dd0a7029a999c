package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// limit is how long one step in the browser may take on a busy machine.
const limit = 40 * time.Second

// view is how a page is looked at.
type view struct {
	width, height  int64
	dark, noScript bool
}

var (
	desk  = view{width: 1280, height: 900}
	phone = view{width: 390, height: 844}
)

// tab is one page in a browser of its own (cookies, cache). What goes wrong in it fails its test at the end.
type tab struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // chromedp's handle of the tab

	mu       sync.Mutex
	problems []string
	expected []string
}

// chromium is the one process of the package; ctx is its handle.
var chromium struct {
	once sync.Once
	ctx  context.Context //nolint:containedctx // chromedp's handle of the browser
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	closeShared()
	os.Exit(code)
}

// missing is what is not here, "" when a test can run.
func missing() string {
	if _, err := browserPath(); err != nil {
		return "no chromium here"
	}
	if _, err := os.Stat(axePath()); err != nil {
		return "no axe-core here"
	}
	return ""
}

// need skips a test that cannot run here.
func need(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a real browser: make test-all runs it")
	}
	what := missing()
	switch {
	case what == "":
	case os.Getenv("SGTUNE_BROWSER") == "required":
		t.Fatalf("%s: run make test-browser, or test/browser/setup.sh DIR and set SGTUNE_BROWSER_DIR to DIR", what)
	default:
		t.Skipf("%s: run make test-browser, or test/browser/setup.sh DIR and set SGTUNE_BROWSER_DIR to DIR", what)
	}
}

func browserPath() (string, error) { return exec.LookPath("chromium") }

// axePath is where setup.sh put axe-core: in SGTUNE_BROWSER_DIR, else where make test-browser has it.
func axePath() string {
	dir := os.Getenv("SGTUNE_BROWSER_DIR")
	if dir == "" {
		home, _ := os.UserHomeDir() // "" gives a path that is not there
		dir = filepath.Join(home, ".cache", "sgtune-browser")
	}
	return filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
}

// startChromium starts the browser once.
func startChromium() {
	path, err := browserPath()
	if err != nil {
		chromium.err = err
		return
	}
	profile, err := os.MkdirTemp("", "sgtune-browser-")
	if err != nil {
		chromium.err = err
		return
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("host-resolver-rules", "MAP evil.test 127.0.0.1")) // a foreign name bent to our address
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, stop := chromedp.NewContext(allocator)
	chromium.ctx = ctx
	chromium.stop = func() {
		stop()
		stopAllocator()
		_ = os.RemoveAll(profile) // what stays of it is in the folder for temporary files
	}
	chromium.err = chromedp.Do(ctx) // starts it
}

// open shows a page in a tab of its own.
func open(t testing.TB, v view, url string) *tab {
	t.Helper()
	need(t)
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		t.Fatalf("start chromium: %v", chromium.err)
	}
	ctx, leave := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	tb := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		leave()
		tb.judge()
	})
	if err := chromedp.Do(ctx); err != nil { // the tab lives as long as this context: no limit
		t.Fatalf("open a tab: %v", err)
	}
	if err := chromedp.Listen(ctx, tb.hear); err != nil {
		t.Fatalf("listen to a tab: %v", err)
	}
	tb.look(v)
	tb.visit(url)
	return tb
}

// hear collects what the browser complains of.
func (tb *tab) hear(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			problem = "console " + string(e.Type)
			for _, a := range e.Args {
				problem += " " + string(a.Value) + a.Description
			}
		}
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			problem += " " + x.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			problem = fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			problem = fmt.Sprintf("http %d %s", e.Response.Status, e.Response.URL)
		}
	}
	if problem != "" {
		tb.mu.Lock()
		defer tb.mu.Unlock()
		tb.problems = append(tb.problems, problem)
	}
}

// expects names problems, by a part of their text, that the test means to cause.
func (tb *tab) expects(parts ...string) *tab {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.expected = append(tb.expected, parts...)
	return tb
}

// heard are the problems so far that have a text in them.
func (tb *tab) heard(part string) []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var out []string
	for _, p := range tb.problems {
		if strings.Contains(p, part) {
			out = append(out, p)
		}
	}
	return out
}

// judge fails the test for each problem that it did not name.
func (tb *tab) judge() {
	tb.mu.Lock()
	defer tb.mu.Unlock()
problems:
	for _, p := range tb.problems {
		for _, part := range tb.expected {
			if strings.Contains(p, part) {
				continue problems
			}
		}
		tb.t.Errorf("the browser complains: %s", p)
	}
}

// look changes how the page is looked at.
func (tb *tab) look(v view) {
	tb.t.Helper()
	scheme := "light"
	if v.dark {
		scheme = "dark"
	}
	tb.do(chromedp.EmulateViewport(v.width, v.height))
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	call(tb, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.noScript})
}

// visit loads another page in the tab.
func (tb *tab) visit(url string) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(url))
}

// do runs steps that give nothing.
func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, stop := context.WithTimeout(tb.ctx, limit)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tb.t.Fatal(err)
	}
}

// get runs a step that gives a value.
func get[T any](tb *tab, step chromedp.Action[T]) T {
	tb.t.Helper()
	ctx, stop := context.WithTimeout(tb.ctx, limit)
	defer stop()
	v, err := chromedp.Run(ctx, step)
	if err != nil {
		tb.t.Fatal(err)
	}
	return v
}

// eval evaluates JavaScript in the page, which works without the page's scripts as well; a promise is waited for.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	return get(tb, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// text is the text of the first element of a CSS selector as it is seen.
func (tb *tab) text(selector string) string {
	tb.t.Helper()
	return get(tb, chromedp.Text(chromedp.CSS(selector)))
}

// click clicks the first element of a CSS selector.
func (tb *tab) click(selector string) {
	tb.t.Helper()
	tb.do(chromedp.Click(chromedp.CSS(selector)))
}

// until waits for a condition in JavaScript; what happens between pages counts as not yet.
func (tb *tab) until(what, condition string) {
	tb.t.Helper()
	for end := time.Now().Add(limit); ; {
		ctx, stop := context.WithTimeout(tb.ctx, limit)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		stop()
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			tb.t.Fatalf("not within %s: %s (%v)", limit, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// charts waits until all charts of the page are drawn.
func (tb *tab) charts() {
	tb.t.Helper()
	tb.until("charts are drawn", `!document.querySelector("[data-charts]") || "chartsDone" in document.body.dataset`)
}

// shot is what is seen now, as PNG.
func (tb *tab) shot() []byte {
	tb.t.Helper()
	return get(tb, chromedp.CaptureScreenshot())
}
