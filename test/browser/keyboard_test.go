package browser_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// hand is a way to use a page.
type hand struct {
	name string
	use  func(tb *tab, selector string) // follows a link, presses a button, goes into a field
}

// hands are the two ways in which each task has to be possible.
var hands = []hand{{"pointer", (*tab).click}, {"keys", (*tab).enter}}

// tasks does a task in each way.
func tasks(t *testing.T, task func(t *testing.T, h hand)) {
	t.Helper()
	need(t)
	t.Parallel()
	for _, h := range hands {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			task(t, h)
		})
	}
}

// press presses keys one after another. A key and its character are one event, as from a real keyboard: what a page does at the key
// keeps the character from the field that it went to.
func (tb *tab) press(keys ...string) {
	tb.t.Helper()
	for _, key := range keys {
		for _, r := range key {
			events := kb.Encode(r)
			down, up := *events[0], *events[len(events)-1]
			if len(events) == 3 {
				down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
			}
			call(tb, input.DispatchKeyEvent, down)
			call(tb, input.DispatchKeyEvent, up)
		}
	}
}

// enter goes to an element with Tab alone and presses Enter there; in a field it stays.
func (tb *tab) enter(selector string) {
	tb.t.Helper()
	tb.tabTo(selector)
	if !eval[bool](tb, `document.activeElement.matches("input:not([type=submit]), select, textarea")`) {
		tb.press(kb.Enter)
	}
}

// focused is where the focus is.
type focused struct {
	There bool   // at the element that is looked for
	Body  bool   // nowhere: it has gone around
	Ring  bool   // seen: a ring of 2 pixels
	Shown bool   // inside of the window
	Name  string // for people
}

// mostStops is how often Tab is pressed on the way to anything.
const mostStops = 400

// focus says where the focus is, and whether that is the first element of a selector; it leaves a mark there.
func (tb *tab) focus(selector string) focused {
	tb.t.Helper()
	return eval[focused](tb, fmt.Sprintf(`(() => {
		const e = document.activeElement, r = e.getBoundingClientRect();
		const ring = (e) => { const s = getComputedStyle(e); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2; };
		e.dataset.passed = "";
		return {
			There: e === document.querySelector(%s), Body: e === document.body, Name: e.outerHTML.slice(0, 120),
			Ring: ring(e) || e.matches(".editor textarea") && ring(e.parentElement), // with its line numbers
			Shown: r.width > 0 && r.height > 0 && r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth,
		};
	})()`, quoted(selector)))
}

// tabTo presses Tab until the first element of a selector has the focus. Each stop on the way must be seen.
func (tb *tab) tabTo(selector string) {
	tb.t.Helper()
	if !eval[bool](tb, "document.querySelector("+quoted(selector)+") !== null") {
		tb.t.Fatalf("there is no %s on %s", selector, eval[string](tb, "location.href"))
	}
	at := tb.focus(selector)
	for range mostStops {
		if at.There {
			return
		}
		tb.press(kb.Tab)
		at = tb.focus(selector)
		tb.seen(at)
	}
	tb.t.Fatalf("Tab does not lead to %s on %s; after %d it is at %s", selector, eval[string](tb, "location.href"), mostStops, at.Name)
}

// seen fails the test when the focus is at an element that does not show it.
func (tb *tab) seen(at focused) {
	tb.t.Helper()
	if !at.Body && !(at.Ring && at.Shown) {
		tb.t.Errorf("the focus is not seen (ring %v, in the window %v) at %s", at.Ring, at.Shown, at.Name)
	}
}

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}

// goes does what leads to another page, or to a place on the page, and waits for the path, query and fragment it leads to.
func (tb *tab) goes(to string, do func()) {
	tb.t.Helper()
	do()
	tb.until("the way to "+to, `document.readyState === "complete" && decodeURI(location.pathname + location.search + location.hash) === `+quoted(to))
}

// TestFocusIsSeen goes through whole pages with Tab: each stop shows a ring inside of the window, the first one skips to the content,
// and every link and button is a stop.
func TestFocusIsSeen(t *testing.T) {
	each(t, everyPage, func(t *testing.T, p place) {
		tb := p.open(t, desk)
		tb.press(kb.Tab)
		if at := tb.focus(".skip"); !at.There {
			t.Errorf("the first stop is %s, not the link to the content", at.Name)
		} else {
			tb.seen(at)
		}
		stops := 1
		for ; stops < mostStops; stops++ {
			tb.press(kb.Tab)
			at := tb.focus(".skip")
			if at.Body || at.There {
				break
			}
			tb.seen(at)
		}
		missed := eval[[]string](tb, `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
			.filter((e) => e.checkVisibility() && !("passed" in e.dataset)).map((e) => e.outerHTML.slice(0, 120))`)
		if stops == mostStops {
			t.Errorf("Tab does not come around in %d stops", stops)
		} else if len(missed) > 0 {
			t.Errorf("Tab leads past %d things, first %s", len(missed), missed[0])
		}
		if odd := eval[int](tb, `document.querySelectorAll("[tabindex]:not([tabindex='0'], [tabindex='-1'])").length`); odd > 0 {
			t.Errorf("%d elements change the order of Tab", odd)
		}
	})
}

// TestKeys holds the keys that the page adds, and that they are off where one writes.
func TestKeys(t *testing.T) {
	need(t)
	t.Parallel()
	s := read(t, "states")

	tb := open(t, desk, s.url+"/studies/better/trials/2")
	tb.goes("/studies/better/trials/3", func() { tb.press("]") })
	tb.goes("/studies/better/trials/2", func() { tb.press("[") })

	tb.visit(s.url + "/studies/better/trials")
	row := func(want int) {
		t.Helper()
		const rows = `[...document.querySelectorAll("#rows tbody tr")]`
		if at := eval[int](tb, rows+`.findIndex((r) => r.contains(document.activeElement))`); at != want {
			t.Errorf("in row %d, not %d", at, want)
		}
		if at := eval[[]int](tb, rows+`.flatMap((r, i) => r.classList.contains("current") ? [i] : [])`); len(at) != 1 || at[0] != want {
			t.Errorf("shown as current: %v, not %d", at, want)
		}
		tb.seen(tb.focus("body"))
	}
	tb.press("k")
	row(0)
	tb.press("j", "j", "j", "k")
	row(2)
	link := eval[string](tb, `new URL(document.activeElement.href).pathname`)
	tb.goes(link, func() { tb.press(kb.Enter) })

	tb.visit(s.url + "/studies/better/trials")
	tb.press("/")
	if at := tb.focus("[data-search]"); !at.There {
		t.Errorf("/ leads to %s", at.Name)
	}
	const typed = "j/k?c[]"
	tb.press(strings.Split(typed, "")...)
	if got := eval[string](tb, `document.activeElement.value`); got != typed {
		t.Errorf("in a field %q becomes %q", typed, got)
	}
	if eval[bool](tb, `document.querySelector("#rows tr.current") !== null || document.getElementById("keys-help").open`) {
		t.Error("keys act while one writes")
	}

	tb.tabTo("#rows tbody tr:nth-child(2) th a")
	tb.press("c", "?") // marks the row of the focus
	if marked := eval[int](tb, `document.querySelectorAll("#rows tr:nth-child(2) :checked").length`); marked != 1 {
		t.Error("c does not mark the row that has the focus")
	}
	tb.until("the list of keys", `document.getElementById("keys-help").open`)
	tb.press("j", "/", "c")
	if !eval[bool](tb, `document.getElementById("keys-help").contains(document.activeElement)`) {
		t.Error("keys act behind the list of keys")
	}
	tb.press(kb.Escape)
	tb.until("the list of keys is closed", `!document.getElementById("keys-help").open`)
	if at := tb.focus("#rows tbody tr:nth-child(2) th a"); !at.There {
		t.Errorf("closing the list of keys leads to %s", at.Name)
	}
	tb.enter(".keys-link")
	tb.until("the list of keys", `document.getElementById("keys-help").open`)
	tb.press(kb.Enter) // its button
	tb.until("the list of keys is closed", `!document.getElementById("keys-help").open`)
}
