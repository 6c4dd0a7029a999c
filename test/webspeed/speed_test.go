package webspeed

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// budget is what the page may take at one size: ratios to the peer's figure, and bytes.
type budget struct {
	verdict       float64 // painted answer / its first chart
	charts        float64 // all charts / all charts
	cold, ratio   float64 // bytes of a first visit, and / its
	warm, bare    float64 // bytes of a second visit, of one without scripts
	summary, page float64 // a study in short, a page of trials / its whole study, by API
	memory        float64 // of the server after all that / its
}

// budgets are by the number of searched trials.
var budgets = map[int]budget{
	30:     {verdict: 0.10, charts: 0.40, cold: 500e3, ratio: 0.25, warm: 60e3, bare: 60e3, summary: 0.5, page: 1, memory: 0.8},
	1000:   {verdict: 0.10, charts: 0.20, cold: 550e3, ratio: 0.09, warm: 110e3, bare: 70e3, summary: 0.05, page: 0.1, memory: 0.5},
	10_000: {verdict: 0.03, charts: 0.06, cold: 600e3, ratio: 0.014, warm: 150e3, bare: 70e3, summary: 0.01, page: 0.02, memory: 0.1},
}

// The peer does not finish a page of 10,000 trials: it is visited once, gets so long, and counts as if it had finished
// then.
const (
	endless      = 10_000
	endlessLimit = 150 * time.Second
	limit        = time.Minute
)

// Limits that hold at any size.
const (
	mostHTML    = 60e3
	mostNodes   = 2500
	mostShift   = 0.02
	mostTask    = 200 // ms, before the answer is painted
	mostGrowth  = 40e6
	mostIdle    = 100e3 // a live page on which nothing happens, in an hour
	mostLog     = 200e3
	mostLogGrow = 16 << 20
)

// worst are the highest figures of any size.
type worst struct{ html, list, nodes, shift, task float64 }

func TestBesideOptunaDashboard(t *testing.T) {
	b := newBed(t)
	rounds := 5
	if text := os.Getenv("SGTUNE_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("SGTUNE_ROUNDS is %q, wants a number from 1 on", text)
		}
	}
	var out table
	var top worst
	begin, load := time.Now(), loadAverage(t)
	held := map[int]float64{}
	for _, n := range sizes(t) {
		held[n] = b.compare(t, n, rounds, &out, &top)
		t.Logf("%s trials are done after %.0f s", grouped(n), time.Since(begin).Seconds())
	}
	if held[30] > 0 && held[endless] > 0 {
		out.alone("server memory, growth from 30", grouped(endless), held[endless]-held[30], size, mostGrowth, true)
	}
	out.alone("HTML of the study's page", "any", top.html, size, mostHTML, true)
	out.alone("HTML of a page of trials", "any", top.list, size, mostHTML, true)
	out.alone("elements of the study's page", "any", top.nodes, count, mostNodes, false)
	out.alone("layout shift", "any", top.shift, share, mostShift, false)
	out.alone("longest task before the answer is painted", "any", top.task, millis, mostTask, false)
	out.alone("live page, nothing happens, an hour", "30", b.idle(t), size, mostIdle, true)
	html, grown := b.hugeLog(t)
	out.alone("first screen of a log of 2 GB", "30", html, size, mostLog, true)
	out.alone("server memory for it", "30", grown, size, mostLogGrow, true)

	fmt.Printf("\n%s, %d cores, load %s before and %s after; %s; medians of %d alternating visits, each with a new browser; %.0f s\n\n%s\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), load, loadAverage(t), chromiumVersion(t), rounds, time.Since(begin).Seconds(), out.markdown())
	for _, miss := range out.missed() {
		t.Error(miss)
	}
}

// sizes are how many trials are searched in the nights to compare.
func sizes(t *testing.T) []int {
	t.Helper()
	var out []int
	for _, text := range strings.Fields(os.Getenv("SGTUNE_SIZES")) {
		n, err := strconv.Atoi(text)
		if _, known := budgets[n]; err != nil || !known {
			t.Fatalf("SGTUNE_SIZES has %q, wants some of 30, 1000, 10000", text)
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return []int{30, 1000, endless}
	}
	return out
}

// visits are the figures of one product's page.
type visits struct{ answer, charts, bytes, nodes, shift, task []float64 }

// add visits a page with a new browser. The answer of a page that has none is its first chart. It reports whether the
// page was whole in time.
func (v *visits) add(t *testing.T, s subject, most time.Duration) (whole bool) {
	t.Helper()
	b := newBrowser(t, s)
	defer b.close()
	got, whole, err := b.load(most)
	if err != nil {
		t.Fatal(err)
	}
	answer, all := got.Verdict, got.all()
	if s.Verdict == "" {
		answer = got.Chart
	}
	if !whole {
		all = float64(most.Milliseconds())
		if answer == 0 {
			answer = all
		}
	}
	v.answer, v.charts, v.bytes = append(v.answer, answer), append(v.charts, all), append(v.bytes, b.traffic())
	v.nodes, v.shift, v.task = append(v.nodes, float64(got.Nodes)), append(v.shift, got.Shift), append(v.task, got.longest(answer))
	return whole
}

// compare measures both products with a night of n trials. What our server holds at the end is returned.
func (b *bed) compare(t *testing.T, n, rounds int, out *table, top *worst) (memory float64) {
	t.Helper()
	most, at := budgets[n], grouped(n)
	trials := night(n)
	ours, peer := b.serveOurs(t, b.ours(t, strconv.Itoa(n), trials)), b.servePeer(t, b.peers(t, trials))
	defer ours.stop()
	defer peer.stop()

	asked := b.ask(t, rounds, ours, peer)
	mine, theirs := ourStudy(ours), peerStudy(peer)
	var we, they visits
	finished := true
	for round := range rounds {
		if n < endless && !they.add(t, theirs, limit) {
			t.Fatalf("optuna-dashboard has not drawn %d trials in %s", n, limit)
		}
		if !we.add(t, mine, limit) {
			t.Fatalf("%s has not been drawn in %s", mine.url, limit)
		}
		if round == 0 {
			out.told("all charts, first visit after the start of the server", at, we.charts[0], millis)
		}
	}
	if n >= endless { // last: its server goes on working for a browser that has gone
		finished = they.add(t, theirs, endlessLimit)
	}

	out.beside("answer painted / first chart", at, median(we.answer), median(they.answer), millis, most.verdict, median(they.answer) >= float64(endlessLimit.Milliseconds()))
	out.beside("all charts", at, median(we.charts), median(they.charts), millis, most.charts, !finished)
	out.beside("bytes, first visit", at, median(we.bytes), median(they.bytes), size, most.ratio, !finished)
	out.alone("bytes, first visit", at, median(we.bytes), size, most.cold, true)
	warm, bare := again(t, mine)
	out.alone("bytes, second visit", at, warm, size, most.warm, true)
	out.alone("bytes without scripts", at, bare, size, most.bare, true)
	out.beside("API: study in short / whole study", at, asked.summary, asked.whole, millis, most.summary, false)
	out.beside("API: page of trials, slowest of "+strconv.Itoa(len(trialPages))+" / whole study", at, asked.page, asked.whole, millis, most.page, false)
	out.beside("the same as HTML / whole study by API", at, asked.html, asked.whole, millis, most.page, false)
	memory = ours.memory(t, "VmRSS")
	out.beside("server memory afterwards", at, memory, peer.memory(t, "VmRSS"), size, most.memory, false)

	html, _, err := fetch(t.Context(), mine.url, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	top.html, top.list = max(top.html, float64(html)), max(top.list, asked.list)
	top.nodes, top.shift, top.task = max(top.nodes, median(we.nodes)), max(top.shift, median(we.shift)), max(top.task, median(we.task))
	return memory
}

// again is how many bytes a second visit takes with the same browser, and how many a first one without scripts.
func again(t *testing.T, s subject) (warm, bare float64) {
	t.Helper()
	b := newBrowser(t, s)
	defer b.close()
	var before float64
	for range 2 {
		before = b.traffic()
		if _, whole, err := b.load(limit); err != nil || !whole {
			t.Fatalf("visit %s: whole %v, %v", s.url, whole, err)
		}
		warm = b.traffic() - before
		if err := b.visit(b.ctx, "about:blank"); err != nil {
			t.Fatal(err)
		}
	}
	plain := newBrowser(t, s)
	defer plain.close()
	bare, err := plain.bare()
	if err != nil {
		t.Fatal(err)
	}
	return warm, bare
}

// trialPages are pages of the list of trials, by every kind of order and filter.
var trialPages = []string{"", "?page=999999", "?sort=-tok_s", "?sort=took&page=2", "?sort=-outcome", "?sort=-knob.mem-fraction-static", "?sort=tokens&outcome=gpu_oom", "?sort=ended&knob.mem-fraction-static=0.88..0.92"}

// asked are the median times of answers in ms.
type asked struct {
	whole   float64 // the peer's study
	summary float64
	page    float64 // the slowest page of trials
	html    float64 // the same of the pages that people see
	list    float64 // the most bytes of one
}

// ask asks both servers in turn; the first answers don't count.
func (b *bed) ask(t *testing.T, rounds int, ours, peer server) asked {
	t.Helper()
	urls := []string{peer.url + "/api/studies/1?after=0", ours.url + "/api/v1/studies/night"}
	for _, query := range trialPages {
		urls = append(urls, ours.url+"/api/v1/studies/night/trials"+query, ours.url+"/studies/night/trials"+query)
	}
	var out asked
	times := make([][]float64, len(urls))
	for round := range rounds + 1 {
		for i, url := range urls {
			bytes, took, err := fetch(t.Context(), url, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if round > 0 {
				times[i] = append(times[i], took.Seconds()*1000)
			}
			if i > 1 && i%2 == 1 {
				out.list = max(out.list, float64(bytes))
			}
		}
	}
	out.whole, out.summary = median(times[0]), median(times[1])
	for i := 2; i < len(urls); i += 2 {
		out.page, out.html = max(out.page, median(times[i])), max(out.html, median(times[i+1]))
	}
	return out
}

// grouped is a number with separators.
func grouped(n int) string {
	text := strconv.Itoa(n)
	if len(text) > 3 {
		text = text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return text
}

// loadAverage is how many processes ran in the last minute.
func loadAverage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))[0]
}

func chromium(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v (test/browser/setup.sh installs it)", err)
	}
	return path
}

func chromiumVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), chromium(t), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(out))
	return strings.Join(words[:min(2, len(words))], " ")
}
