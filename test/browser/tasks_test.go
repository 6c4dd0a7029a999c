package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"sgtune/test/webbed"
	"sgtune/tuner"
)

// holds fails the test for each text that is not in the first element of a selector.
func (tb *tab) holds(selector string, texts ...string) {
	tb.t.Helper()
	text := tb.text(selector)
	for _, want := range texts {
		if !strings.Contains(text, want) {
			tb.t.Errorf("no %q in %s: %.600s", want, selector, text)
		}
	}
}

// rows are the numbers of the trials in the list, from the top.
func (tb *tab) rows() []string {
	tb.t.Helper()
	return eval[[]string](tb, `[...document.querySelectorAll("#rows tbody th a")].map((a) => a.textContent)`)
}

// choose takes an option of a select by its first letters.
func (tb *tab) choose(h hand, selector, option string) {
	tb.t.Helper()
	if h.name == "pointer" { // its list is drawn outside of the page
		tb.do(chromedp.Focus(chromedp.CSS(selector)))
	} else {
		h.use(tb, selector)
	}
	tb.press(strings.Split(option, "")...)
	if got := eval[string](tb, "document.querySelector("+quoted(selector)+").value"); got != option {
		tb.t.Fatalf("%s is %q, not %q", selector, got, option)
	}
}

// TestFromVerdictToProfile is the morning after: from the list of studies to the verdict, to the line of the log that says why a trial
// failed, back, and to the profile in the clipboard.
func TestFromVerdictToProfile(t *testing.T) {
	tasks(t, func(t *testing.T, h hand) {
		s := read(t, "states")
		tb := open(t, desk, s.url+"/")
		tb.goes("/studies/better", func() { h.use(tb, `#rows a[href="/studies/better"]`) })
		tb.holds("#verdict", "CHANGE", "better by 14.2%", "1,842 → 2,104 tok/s", "5 launches each", "hicache-size")

		tb.goes("/studies/better/trials", func() { h.use(tb, `#failures a[href="/studies/better/trials"]`) })
		tb.goes("/studies/better/trials/1", func() { h.use(tb, `#rows a[href$="trials/1"]`) })
		tb.holds("#outcome", "GPU memory", "GPU 3 ran out of memory in prefill", "Why it matters")
		h.use(tb, "#log-title a")
		tb.until("the line at the evidence", `document.readyState === "complete" && location.hash === "#L2481"`)
		tb.holds("#L2481.evidence", "2481", webbed.Evidence, webbed.Nasty)
		tb.until("the line is in the window", `(() => { const r = document.querySelector("#L2481").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()`)

		tb.goes("/studies/better", func() { h.use(tb, `.crumbs a[href="/studies/better"]`) })
		tb.goes("/studies/better/export?t=2", func() { h.use(tb, `#verdict a[href^="/studies/better/export"]`) })
		tb.holds("main", "confirmed to be better")
		copied(tb, h)
	})
}

// copied presses Copy with leave to write the clipboard, and without.
func copied(tb *tab, h hand) {
	tb.t.Helper()
	profile := eval[string](tb, `document.getElementById("profile").innerText`)
	if !strings.Contains(profile, "--mem-fraction-static 0.88") {
		tb.t.Fatalf("no profile: %s", profile)
	}
	tb.permit("clipboard-write", browser.PermissionSettingGranted)
	tb.permit("clipboard-read", browser.PermissionSettingGranted)
	h.use(tb, "#copy")
	tb.until("it is copied", `document.getElementById("copy").textContent === "Copied" && document.getElementById("status").textContent === "Copied"`)
	if got := eval[string](tb, `navigator.clipboard.readText()`); got != profile {
		tb.t.Errorf("in the clipboard is\n%s\nnot\n%s", got, profile)
	}
	tb.permit("clipboard-write", browser.PermissionSettingDenied)
	h.use(tb, "#copy")
	tb.until("it is selected", `document.getElementById("copy").textContent.includes("selected")`)
	if got := eval[string](tb, `getSelection().toString()`); strings.TrimSpace(got) != strings.TrimSpace(profile) {
		tb.t.Errorf("selected is\n%s\nnot\n%s", got, profile)
	}
}

// permit sets what pages of this tab's browser may do.
func (tb *tab) permit(name string, setting browser.PermissionSetting) {
	tb.t.Helper()
	_, err := chromedp.CallBrowser(tb.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: name}, Setting: setting, BrowserContextID: chromedp.FromContext(tb.ctx).BrowserContextID,
	})
	if err != nil {
		tb.t.Fatal(err)
	}
}

// TestTrialsToComparison filters the list by outcome, sorts it, marks two trials and compares them.
func TestTrialsToComparison(t *testing.T) {
	tasks(t, func(t *testing.T, h hand) {
		s := read(t, "states")
		tb := open(t, desk, s.url+"/studies/better/trials")
		tb.choose(h, `select[name="outcome"]`, "gpu_oom")
		h.use(tb, `main form[role="search"] button`)
		tb.until("the filter", `document.readyState === "complete" && new URLSearchParams(location.search).get("outcome") === "gpu_oom"`)
		if got := tb.rows(); !slices.Equal(got, []string{"3", "1"}) {
			t.Errorf("out of GPU memory: %v", got)
		}
		tb.holds("main", "2 of 16 trials")
		tb.until("the filter is lifted", `document.querySelector(".chips a") !== null`)
		h.use(tb, ".chips a")
		tb.until("all trials", `document.readyState === "complete" && document.querySelectorAll("#rows tbody tr").length === 16`)

		const value = `#rows th[aria-sort] a[href*="sort=-value"]`
		h.use(tb, value)
		tb.until("the order", `document.readyState === "complete" && location.search.includes("sort=-value")`)
		if order := eval[string](tb, `document.querySelector("#rows th[aria-sort]:not([aria-sort=none])").textContent.trim()+" "+document.querySelector("#rows th[aria-sort]:not([aria-sort=none])").ariaSort`); !strings.HasPrefix(order, "Value") || !strings.HasSuffix(order, "descending") {
			t.Errorf("sorted by %q", order)
		}
		rows := tb.rows()
		if rows[0] != "2" { // 2,121 tok/s
			t.Errorf("from the fastest: %v", rows)
		}

		tb.press("j", "c", "j", "c")
		if marked := eval[[]string](tb, `[...document.querySelectorAll("#rows :checked")].map((box) => box.value)`); !slices.Equal(marked, rows[:2]) {
			t.Fatalf("marked %v of %v", marked, rows[:2])
		}
		h.use(tb, `main form[action$="compare"] .actions button`)
		tb.until("the comparison", `document.readyState === "complete" && location.pathname === "/studies/better/compare"`)
		tb.holds("h1", "#"+rows[0], "#"+rows[1])
	})
}

// TestComparisonShowsWhatDiffers compares with today: flags that are the same are not shown before somebody asks.
func TestComparisonShowsWhatDiffers(t *testing.T) {
	tasks(t, func(t *testing.T, h hand) {
		s := read(t, "states")
		tb := open(t, desk, s.url+"/studies/better")
		tb.goes("/studies/better/compare?t=0,2", func() { h.use(tb, `#verdict a[href^="/studies/better/compare"]`) })
		flags := func() (all, same []string) {
			for _, row := range eval[[][]string](tb, `[...document.querySelectorAll(".compare tbody:last-child tr")].map((tr) => [...tr.cells].map((c) => c.textContent))`) {
				all = append(all, row[0])
				if row[1] == row[2] {
					same = append(same, row[0])
				}
			}
			return all, same
		}
		all, same := flags()
		if !slices.Contains(all, "mem-fraction-static") || !slices.Contains(all, "hicache-size") || len(same) > 0 {
			t.Errorf("flags that differ: %v, of those the same: %v", all, same)
		}
		tb.visit(s.url + "/studies/better/compare?t=1,2")
		if all, _ := flags(); !slices.Equal(all, []string{"mem-fraction-static"}) {
			t.Errorf("flags that differ: %v", all)
		}
		h.use(tb, `.filters > a`)
		tb.until("all flags", `document.readyState === "complete" && location.search.includes("all=1")`)
		if _, same = flags(); !slices.Equal(same, []string{"hicache-size"}) {
			t.Errorf("all flags: the same are %v", same)
		}
	})
}

// TestProfileInAnotherFormat switches the format of a profile and takes it home as a file.
func TestProfileInAnotherFormat(t *testing.T) {
	tasks(t, func(t *testing.T, h hand) {
		tb := open(t, desk, read(t, "states").url+"/studies/better/export?t=2")
		h.use(tb, `nav[aria-label="Format"] a[href*="format=sglang-yaml"]`)
		tb.until("the format", `document.readyState === "complete" && location.search.includes("format=sglang-yaml")`)
		tb.holds("#profile", "mem-fraction-static: 0.88", "hicache-size: 48")
		name, content := tb.download(func() { h.use(tb, "main a[download]") })
		if want := eval[string](tb, `document.querySelector("main a[download]").download`); name != want {
			t.Errorf("the file is %s, not %s", name, want)
		}
		if want := eval[string](tb, `document.getElementById("profile").textContent`); string(content) != want {
			t.Errorf("the file holds\n%s\nnot\n%s", content, want)
		}
	})
}

// TestMistakeIsMended breaks the text of a new study, goes to the place that the page names, mends it there and gets the command.
func TestMistakeIsMended(t *testing.T) {
	tasks(t, func(t *testing.T, h hand) {
		tb := open(t, desk, read(t, "states").url+"/new")
		h.use(tb, "#text")
		const name = "hicache-size"
		// The caret behind the flag's name: arrow keys would do it, many of them.
		eval[int](tb, fmt.Sprintf(`(() => { const t = document.getElementById("text"); t.focus(); const at = t.value.indexOf(%q) + %d; t.setSelectionRange(at, at); return 0; })()`, name, len(name)))
		tb.press(kb.Backspace)
		tb.until("what is wrong", `document.querySelector("#checked .mistakes") !== null`)
		line := eval[int](tb, fmt.Sprintf(`document.getElementById("text").value.split("\n").findIndex((l) => l.includes(%q)) + 1`, name[:len(name)-1]))
		tb.holds("#checked", "1 to mend", fmt.Sprintf("line %d, column 3", line), "did you mean", name)
		h.use(tb, "#checked .place button")
		if at := tb.focus("#text"); !at.There {
			t.Fatalf("the place leads to %s", at.Name)
		}
		tb.press(slices.Repeat([]string{kb.ArrowRight}, len(name)-1)...)
		tb.press("e")
		tb.until("it is right", `document.querySelector("#checked #run") !== null`)
		tb.holds("#checked", "The file is right")
		tb.holds("#run", "sgtune check my-study.yaml", "sgtune tune my-study.yaml")
	})
}

// TestStopIsAskedOnce asks a running study to stop after this trial: the page asks once more, Esc takes it back, and what was asked for
// stands in the store and on the page.
func TestStopIsAskedOnce(t *testing.T) {
	tasks(t, func(t *testing.T, h hand) {
		s := newSite(t, standing("running"))
		tb := open(t, desk, s.url+"/studies/running")
		const link = `a[data-ask][href$="/ask/stop-after-trial"]`
		h.use(tb, link)
		tb.until("the question", `document.querySelector("dialog.asking[open]") !== null`)
		tb.holds("dialog.asking", "Stop after this trial?", "Trial 6 goes on to its end", "Lost: the trials and the confirmation")
		tb.press("]", "?") // off: one may be writing
		tb.press(kb.Escape)
		tb.until("the question is gone", `document.querySelector("dialog[open]") === null`)
		if at := tb.focus(link); !at.There {
			t.Errorf("Esc leads to %s", at.Name)
		}
		if asked := s.asked(t, "running"); len(asked) != 0 {
			t.Fatalf("asked without a yes: %+v", asked)
		}
		h.use(tb, link)
		tb.until("the question", `document.querySelector("dialog.asking[open]") !== null`)
		tb.goes("/studies/running#asked", func() {
			if h.name == "keys" {
				tb.press(kb.Enter)
			} else {
				tb.click("dialog.asking button")
			}
		})
		tb.holds("#asked", "stop after this trial. waits for the tuner", "at 127.0.0.1")
		asked := s.asked(t, "running")
		if len(asked) != 1 || asked[0].Kind != tuner.StopAfterTrial || time.Since(asked[0].At) > limit {
			t.Errorf("stored: %+v", asked)
		}
	})
}

// asked are the requests to a study, newest first.
func (s *site) asked(t *testing.T, study string) []tuner.Command {
	t.Helper()
	all, err := s.db.Asked(t.Context(), study, 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTasksWithoutScripts does what can be done in forms while no script runs.
func TestTasksWithoutScripts(t *testing.T) {
	tasks(t, func(t *testing.T, h hand) {
		bare := desk
		bare.noScript = true
		s := newSite(t, standing("running", "better"))
		tb := open(t, bare, s.url+"/studies/running")
		tb.goes("/studies/running/ask/stop-after-trial", func() { h.use(tb, `main a[href$="/ask/stop-after-trial"]`) })
		tb.holds("main", "Stop after this trial?", "Trial 6 goes on to its end")
		tb.goes("/studies/running#asked", func() { h.use(tb, "#ask form button") })
		tb.holds("#asked", "stop after this trial. waits for the tuner")
		if asked := s.asked(t, "running"); len(asked) != 1 || asked[0].Kind != tuner.StopAfterTrial {
			t.Errorf("stored: %+v", asked)
		}

		tb.visit(s.url + "/studies/better/trials")
		tb.choose(h, `select[name="outcome"]`, "gpu_oom")
		h.use(tb, `main form[role="search"] button`)
		tb.until("the filter", `document.readyState === "complete" && new URLSearchParams(location.search).get("outcome") === "gpu_oom"`)
		if got := tb.rows(); !slices.Equal(got, []string{"3", "1"}) {
			t.Errorf("out of GPU memory: %v", got)
		}

		tb.visit(s.url + "/studies/better/export?t=2")
		_, content := tb.download(func() { h.use(tb, "main a[download]") })
		if want := eval[string](tb, `document.getElementById("profile").textContent`); string(content) != want {
			t.Errorf("the file holds\n%s\nnot\n%s", content, want)
		}

		tb.visit(s.url + "/new")
		eval[int](tb, `document.body.dataset.before = 1`)
		h.use(tb, `#draft button[value="check"]`)
		tb.until("the file is checked", `document.readyState === "complete" && !("before" in document.body.dataset) && document.querySelector("#checked #run") !== null`)
		tb.holds("#checked", "The file is right")
	})
}
