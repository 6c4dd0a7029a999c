package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sgtune/web/chart"
)

// plain is a phone whose browser runs no scripts.
var plain = view{width: 390, height: 844, noScript: true}

// seen is the text of a page as it is seen, in one line.
func seen(tb *tab) string {
	tb.t.Helper()
	return strings.Join(strings.Fields(eval[string](tb, "document.body.innerText")), " ")
}

// wants fails for each text that is not seen.
func (tb *tab) wants(texts ...string) {
	tb.t.Helper()
	page := seen(tb)
	for _, want := range texts {
		if !strings.Contains(page, want) {
			tb.t.Errorf("%q is not seen:\n%.2000s", want, page)
		}
	}
}

// TestWithoutScripts has every page give its facts to a browser without JavaScript.
func TestWithoutScripts(t *testing.T) {
	need(t)
	t.Parallel()
	for _, tt := range []struct {
		place
		want []string
	}{
		{place{"studies", "states", "/"}, []string{"CHANGE", "better by 14.2%", "RUNNING", "STOPPED", "gpu-box is not clean"}},
		{place{"no study", "none", "/"}, []string{"No study yet", "sgtune tune examples/quickstart.yaml"}},
		{place{"verdict", "states", "/studies/better"}, []string{
			"CHANGE better by 14.2%", "95% interval +11.6% to +16.9%", "hicache-size", "48 GB per rank", "clean: GPU memory released", "Get the profile",
			"sgtune export better", "What failed and why", "GPU memory", "Best so far", "The night",
		}},
		{place{"running", "states", "/studies/running"}, []string{"RUNNING", "trial 6", "measuring", "+15.1% against today, unconfirmed", "Stop after this trial"}},
		{place{"dirty", "states", "/studies/dirty"}, []string{"STOPPED", "gpu-box is not clean", "GPU 3 still holds 71.2 GB", "sgtune reclaim"}},
		{place{"trials", "night", "/studies/night/trials"}, []string{"Trials of night", "trials, 1 to", "GPU memory", "Value", "Gain"}},
		{place{"failed trial", "states", "/studies/better/trials/1"}, []string{"GPU 3 ran out of memory in prefill", "Why it matters", "8 min 51 s", "torch.OutOfMemoryError", "2,632 lines"}},
		{place{"comparison", "states", "/studies/better/compare?t=0,2"}, []string{"#0", "#2", "better: +", "hicache-size"}},
		{place{"profile", "states", "/studies/better/export?t=2"}, []string{"#!/bin/sh", "--mem-fraction-static 0.88", "Download better-2.sh"}},
		{place{"new study", "states", "/new"}, []string{"New study", "Check"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tb := tt.open(t, plain)
			tb.wants(tt.want...)
		})
	}
}

// TestDrawingsWithoutScripts has the night, the best and the map drawn, the other charts say where their figures are, and a table unfold,
// in a browser without JavaScript.
func TestDrawingsWithoutScripts(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, plain, read(t, "night").url+"/studies/night")
	high := eval[map[string]float64](tb, `Object.fromEntries([...document.querySelectorAll("figure.chart")].map((f) => {
		const d = f.querySelector(".drawing, noscript p");
		return [f.dataset.chart, d && d.checkVisibility() ? d.getBoundingClientRect().height : 0];
	}))`)
	for _, name := range chart.Names {
		least := 15.0 // a sentence
		if name == "night" || name == "best" || name == "area" {
			least = 100
		}
		if high[name] < least {
			t.Errorf("%s is %.0f px high", name, high[name])
		}
	}
	tb.click("#chart-best summary")
	tb.until("the table is unfolded", `document.querySelector("#chart-best tbody td").checkVisibility()`)
}

// TestFormsWithoutScripts posts the form of a new study and sends the filter of trials without JavaScript.
func TestFormsWithoutScripts(t *testing.T) {
	need(t)
	t.Parallel()
	s := read(t, "night")
	tb := open(t, plain, s.url+"/new")
	tb.do(chromedp.SetValue(chromedp.CSS("textarea#text"), "study: x\nserver: {model: /m}\nspase: {}\n"))
	tb.click(`button[value="check"]`)
	tb.until("the mistakes are shown", `document.querySelector(".mistakes")`)
	tb.wants("spase", "line 3")
	tb.visit(s.url + "/studies/night/trials")
	tb.do(chromedp.SetValue(chromedp.CSS(`select[name="outcome"]`), "gpu_oom"))
	tb.click(`form[role="search"] button`)
	tb.until("the filter is in the address", `location.search.includes("outcome=gpu_oom")`)
	tb.wants("GPU memory", "shown")
}
