package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// axeSource is axe-core, read once.
var axeSource = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile(axePath())
	return string(b) + ";0", err
})

// axe finds what breaks the rules of accessible pages; no rule is off.
func (tb *tab) axe() []string {
	tb.t.Helper()
	source, err := axeSource()
	if err != nil {
		tb.t.Fatal(err)
	}
	if !eval[bool](tb, `"axe" in window`) {
		tb.do(chromedp.Evaluate[chromedp.Void](source))
	}
	return eval[[]string](tb, `axe.run(document, {
		runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}, resultTypes: ["violations"],
	}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + " at " + n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " "))))`)
}

// views are the ways in which every page is judged.
var views = []view{
	{width: 390, height: 844},
	{width: 390, height: 844, dark: true},
	{width: 1280, height: 900, dark: true},
	{width: 1280, height: 900},
}

// openDetails shows what is folded away, so that it is judged as well.
const openDetails = `document.querySelectorAll("details").forEach(d => { d.open = true; }), 0`

// judgeViews judges the page as it stands in each view.
func (tb *tab) judgeViews() {
	tb.t.Helper()
	for _, v := range views {
		tb.look(v)
		found := tb.axe()
		for i, f := range found {
			if i == 5 {
				tb.t.Errorf("and %d more at %d px, dark %v", len(found)-i, v.width, v.dark)
				break
			}
			tb.t.Errorf("%d px, dark %v: %.400s", v.width, v.dark, f)
		}
	}
}

// TestAxeOnWhatOpens judges what is there only after a click or a mistake.
func TestAxeOnWhatOpens(t *testing.T) {
	need(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		path, first, click, shown string
	}{
		"keys":       {"/studies/better", "0", ".keys-link", "dialog[open]"},
		"question":   {"/studies/running", "0", `a[href$="stop-now"]`, "dialog.asking[open]"},
		"wrong file": {"/new", `document.getElementById("text").value = "study: x\nspase: {}\n", 0`, `button[value="check"]`, ".mistakes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := open(t, desk, read(t, "states").url+tt.path)
			tb.charts()
			eval[int](tb, tt.first)
			tb.click(tt.click)
			tb.until(tt.shown+" is there", fmt.Sprintf("document.querySelector(%q)", tt.shown))
			tb.judgeViews()
		})
	}
}

// TestAxeOnTheReport judges the report as the file that somebody got by mail.
func TestAxeOnTheReport(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "night").url+"/studies/night")
	name, text := tb.download(func() { tb.click(`a[href$="report.html"]`) })
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	tb.visit("file://" + file)
	tb.judgeViews()
	tb.look(phone)
	tb.fits(phone)
}

// TestAxeSees proves that a fault is found: an image without a text, and text that can hardly be seen.
func TestAxeSees(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "states").url+"/")
	eval[int](tb, `(() => {
		const p = document.createElement("p");
		p.append(document.createElement("img"), "pale");
		document.querySelector("main").append(p);
		p.style.color = "#eeeeee";
		return 0;
	})()`)
	found := fmt.Sprint(tb.axe())
	for _, rule := range []string{"image-alt", "color-contrast"} {
		if !strings.Contains(found, rule) {
			t.Errorf("%s was not found: %s", rule, found)
		}
	}
}
