package web_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"sgtune/web"
)

var (
	anyTag   = regexp.MustCompile(`(?s)<[^>]*>`)
	blank    = regexp.MustCompile(`[ \t]+`)
	manyEnds = regexp.MustCompile(`\n\s*`)
)

// bare is the text of some HTML as a reader sees it, a line for each block.
func bare(markup string) string {
	for _, end := range []string{"</p>", "</tr>", "</li>", "</div>", "</h2>", "</summary>", "</pre>", "</a>"} {
		markup = strings.ReplaceAll(markup, end, " \n"+end)
	}
	text := html.UnescapeString(anyTag.ReplaceAllString(markup, " "))
	return strings.TrimSpace(manyEnds.ReplaceAllString(blank.ReplaceAllString(text, " "), "\n")) + "\n"
}

// most is how many bytes of HTML a page may have.
const most = 60_000

// wellFormed finds what no page may hold.
func wellFormed(t *testing.T, path, text string) {
	t.Helper()
	for _, not := range []string{nasty, "<script>alert", "style=", "onclick", "onload", "<nil>", "%!", "ZgotmplZ", "&amp;lt;", "javascript:"} {
		if strings.Contains(text, not) {
			at := strings.Index(text, not)
			t.Errorf("%s: %q is on the page: %s", path, not, text[max(0, at-200):min(len(text), at+200)])
		}
	}
	if n := strings.Count(text, "<h1"); n != 1 {
		t.Errorf("%s: %d h1", path, n)
	}
	if strings.Count(text, "<table") != strings.Count(text, "<caption") {
		t.Errorf("%s: a table without a caption", path)
	}
	if strings.Count(text, "<th>") > 0 || strings.Contains(text, "<th class") {
		t.Errorf("%s: a heading of a table without a scope", path)
	}
	if len(text) > most {
		t.Errorf("%s: %d bytes", path, len(text))
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("%s: the id %s twice", path, m[1])
		}
		ids[m[1]] = true
	}
}

// TestEveryState runs every page on every state of a study.
func TestEveryState(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.handler()
	paths := []string{"/", "/?state=running", "/?state=complete", "/?state=stopped", "/login"}
	for _, name := range states {
		at := "/studies/" + name
		paths = append(paths, at, at+"/trials", at+"/trials?sort=-tok_s&outcome=gpu_oom", at+"/trials?knob.mem-fraction-static=0.88..0.92&outcome=void")
		if name == "begun" {
			continue
		}
		paths = append(paths, at+"/compare", at+"/compare?t=0,1,2&all=1", at+"/export", at+"/export?t=1", at+"/export?t=2&format=sglang-yaml")
		for _, n := range []string{"0", "1", "2"} {
			paths = append(paths, at+"/trials/"+n)
		}
		if name != "allfailed" {
			paths = append(paths, at+"/trials/3", at+"/trials/4", at+"/trials/5", at+"/trials/6")
		}
	}
	for _, path := range paths {
		w := get(t, h, path)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d\n%s", path, w.Code, bare(w.Body.String()))
			continue
		}
		wellFormed(t, path, w.Body.String())
	}
}

// TestWhatPagesSay holds the facts a reader comes for, in the order in which they are read.
func TestWhatPagesSay(t *testing.T) {
	t.Parallel()
	h := newFixture(t).handler()
	tests := []struct {
		path string
		want []string // in this order
		not  []string
	}{
		{"/", []string{"Studies", "CHANGE", "better", "better by 14.2% (+11.6 to +16.9)", "gpu-box", "KEEP", "no difference found", "STOPPED", "gpu-box is not clean", "RUNNING", "best so far +15.1%, unconfirmed"}, nil},
		{"/?state=running", []string{"running", "begun"}, []string{"dirty-better", "allfailed"}},
		{
			"/studies/better",
			[]string{
				"gpu-box · SGLang 0.5.10 · ended", "CHANGE", "better by 14.2%", "Output 1,842 → 2,104 tok/s. 95% interval +11.6% to +16.9%, 5 launches each.",
				"hicache-size", "not set", "48 GB per rank (384 GB host)", "mem-fraction-static", "0.85", "0.88", "2 other flags are the same",
				"Margin", "GPU memory free at the least 2.0 GiB", "nearest failure at mem-fraction-static 0.915", "host RAM free at the least 71 GB", "host pools 384 GB", "Quality", "KV cache bfloat16, unchanged",
				"Wait", "TTFT p95 4.18 → 4.32 s, longer by", "Machine", "clean: GPU memory released, port free, nothing left behind", "Get the profile", "Compare with today",
				"Next", "sgtune export better --db", "--format sh > launch.sh", "What failed and why", "3 of 16 trials failed", "GPU memory", "2 ×", "all at mem-fraction-static 0.915 or above", "not the configuration's fault", "refused", "56.0 GB",
			},
			[]string{"SIMULATED", "RUNNING"},
		},
		{"/studies/keep", []string{"KEEP", "no difference found", "#2: +0.8%", "Nothing to change"}, []string{"change to", "Get the profile"}},
		{"/studies/unconfirmed", []string{"SIMULATED", "NO VERDICT", "the night ended before the confirmation", "unconfirmed"}, nil},
		{"/studies/dirty", []string{"STOPPED", "gpu-box is not clean", "GPU 3 still holds 71.2 GB", "sgtune reclaim"}, []string{"CHANGE"}},
		{"/studies/dirty-better", []string{"STOPPED", "gpu-box is not clean", "CHANGE", "better by 14.2%"}, nil},
		{
			"/studies/running",
			[]string{"RUNNING", "trial 6 (search), measuring, load level", "launch ✓ 4 s", "measure ▶", "Best so far", "#2", "+15.1% against today, unconfirmed", "11 more trials of 14 min fit"},
			[]string{"CHANGE", "better by"},
		},
		{"/studies/begun", []string{"RUNNING", "before the first trial", "Nothing has been measured yet"}, []string{"0 of 0"}},
		{"/studies/allfailed", []string{"STOPPED", "3 of 3 trials failed", "Nothing was measured", "GPU 3 ran out of memory in prefill"}, nil},
		{"/studies/better/trials/1", []string{"Trial 1", "GPU memory", "GPU 3 ran out of memory in prefill", "Why it matters", "gpu_oom / prefill / prefill_activation · learnt from: yes", "2 differ from today", "wait", "8 min 51 s", "2,632 lines · evidence at", "2,481", "2,490", "torch.OutOfMemoryError", "server.log"}, nil},
		{"/studies/better/trials/2", []string{"Trial 2", "ok", "+15.1% against today, one launch, unconfirmed", "2,121 output tok/s at 120 clients", "80", "± 1.1%", "2.2 s / 4.4 s", "400 / 2", "21%, warm", "nothing was measured", "no log"}, nil},
		{"/studies/better/compare?t=0,2,3", []string{"#0", "#2", "#3", "5 launches of the confirmation", "output", "better: +", "TTFT p95", "worse: +", "KV tokens", "hicache-size"}, []string{"trust-remote-code"}},
		{"/studies/better/export?t=2", []string{"confirmed to be better", "#!/bin/sh", "--mem-fraction-static 0.88", "Download better-2.sh"}, []string{"UNCONFIRMED"}},
		{"/studies/better/export?t=1", []string{"nothing shows that it works"}, []string{"#!/bin/sh"}},
		{"/studies/better/trials?outcome=gpu_oom", []string{"2 of 16 trials, 1 to 2 shown", "GPU memory"}, []string{"replay"}},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			w := get(t, h, tt.path)
			text := strings.ReplaceAll(bare(w.Body.String()), "\n", " ")
			rest := text
			for _, want := range tt.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is not there, or not in order:\n%s", want, text)
				}
				rest = after
			}
			for _, not := range tt.not {
				if strings.Contains(text, not) {
					t.Errorf("%q is on the page:\n%s", not, text)
				}
			}
		})
	}
}

// TestManyTrials holds the size of pages of a study with 10,000 trials.
func TestManyTrials(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	total := 10_000
	if testing.Short() {
		total = 1_000 // the slow tier has them all
	}
	f.multiply("better", total)
	h := f.handler()
	last, pages := total-1, total/50
	for path, want := range map[string]string{
		"/studies/better": "better by 14.2%", "/studies/better/trials": "1 to 50 shown", "/studies/better/trials?page=2": fmt.Sprintf("trials/%d\"", last-50),
		"/studies/better/trials?sort=-tok_s&page=10": fmt.Sprintf("page 10 of %d", pages), "/studies/better/trials?page=999999": fmt.Sprintf("page %d of %[1]d", pages),
		"/studies/better/trials?page=-1": fmt.Sprintf("page 1 of %d", pages), "/studies/better/trials?knob.mem-fraction-static=0.88": "1 to 50 shown",
		fmt.Sprintf("/studies/better/trials/%d", last): fmt.Sprintf("Trial %d ", last), fmt.Sprintf("/studies/better/compare?t=0,%d", last): fmt.Sprintf("#%d", last), "/": web.Number(float64(total)),
	} {
		w := get(t, h, path)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) || w.Body.Len() > most {
			t.Errorf("%s: status %d, %d bytes, wants %q", path, w.Code, w.Body.Len(), want)
		}
	}
}
