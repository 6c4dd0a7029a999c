package browser_test

import (
	"fmt"
	"testing"
)

// smallTargets lists what can be tapped and is smaller than 44 px. Left out, as WCAG does: links within a sentence. And the line numbers
// of a log: each is as high as its line, and none is the only way to anything.
const smallTargets = `(() => {
	const bad = [];
	const sentence = (link) => {
		const block = link.closest("p, li, dd, td, th, h2, figcaption, summary");
		if (!block || getComputedStyle(link).display !== "inline") return false;
		const rest = block.cloneNode(true);
		rest.querySelectorAll("a, .unseen").forEach((a) => a.remove());
		return /\p{L}/u.test(rest.textContent);
	};
	for (const el of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")) {
		const target = el.matches("[type=checkbox]") ? el.closest("label") || el : el;
		const r = target.getBoundingClientRect();
		if (!el.checkVisibility({ visibilityProperty: true }) || r.width === 0 || r.right <= 0 || el.matches(".lines .no")) continue;
		if (r.width >= 43.5 && r.height >= 43.5 || el.matches("a") && sentence(el)) continue;
		bad.push(Math.round(r.width) + " x " + Math.round(r.height) + ": " + el.outerHTML.slice(0, 120));
	}
	return bad;
})()`

// wideParts lists what stands out of the page to the right, but for what scrolls in a box of its own.
const wideParts = `[...document.querySelectorAll("body *")].filter((el) => el.getBoundingClientRect().right > innerWidth + 1
	&& el.checkVisibility() && !el.parentElement.closest(".scroll, .log, pre, svg")).slice(0, 5).map((el) => el.outerHTML.slice(0, 120))`

// fits fails for a page that is wider than the view.
func (tb *tab) fits(v view) {
	tb.t.Helper()
	if wide := eval[int](tb, "document.documentElement.scrollWidth"); wide > int(v.width) {
		tb.t.Errorf("%d px wide on %d: %q", wide, v.width, eval[[]string](tb, wideParts))
	}
}

// TestEveryPage judges every page, and the pages that differ by state, as a phone loads it: its weight; that it fits, there and on a desk;
// that everything can be hit by a thumb; and by axe-core in every view, with all that is folded away unfolded.
func TestEveryPage(t *testing.T) {
	each(t, append(append([]place{}, everyPage...), everyState...), func(t *testing.T, p place) {
		tb := p.open(t, phone)
		weighs(t, p, tb)
		tb.fits(phone)
		for _, small := range eval[[]string](tb, smallTargets) {
			t.Errorf("too small to tap: %s", small)
		}
		eval[int](tb, openDetails)
		tb.judgeViews() // the last is a desk
		tb.fits(desk)
	})
}

// bottoms gives where parts of a page end, in px from its top; -1 for what is not there or not seen.
func bottoms(tb *tab, selectors []string) []float64 {
	tb.t.Helper()
	return eval[[]float64](tb, fmt.Sprintf(`%s.map((s) => {
		const el = document.querySelector(s);
		return el && el.checkVisibility() ? el.getBoundingClientRect().bottom + scrollY : -1;
	})`, list(selectors)))
}

// list is a list of strings as JavaScript.
func list(all []string) string {
	out := "["
	for _, s := range all {
		out += fmt.Sprintf("%q,", s)
	}
	return out + "]"
}

// morning is what a person looks for at 7 o'clock; the first of it stands on the first screen of a phone.
var morning = []string{
	"#verdict-act", "#verdict > p", `#verdict .actions a[href*="export"]`, "#verdict .machine", "#verdict .diff", "#failures .failure-list > li", ".quiet-box .command",
}

const onFirst = 4

// TestFirstScreen has a finished study answer on the first screen of a desk, and on the first two of a phone: there the first holds
// whether to change, how sure that is, the way to the profile and the state of the machine; with two flags to change, the whole box.
func TestFirstScreen(t *testing.T) {
	need(t)
	t.Parallel()
	for _, p := range []place{{"two flags", "states", "/studies/better"}, {"eight flags", "night", "/studies/night"}, {"10,000 trials", "many", "/studies/night"}} {
		for _, v := range []view{{width: 1440, height: 900}, phone} {
			t.Run(fmt.Sprintf("%s at %d", p.name, v.width), func(t *testing.T) {
				t.Parallel()
				tb := p.open(t, v)
				for i, b := range bottoms(tb, morning) {
					most := float64(v.height)
					if v == phone && i >= onFirst {
						most *= 2
					}
					if b < 0 || b > most {
						t.Errorf("%s ends at %.0f px of %.0f", morning[i], b, most)
					}
				}
				if b := bottoms(tb, []string{"#verdict"})[0]; p.name == "two flags" && b > float64(v.height) {
					t.Errorf("the box of the verdict ends at %.0f px of %d", b, v.height)
				}
			})
		}
	}
}
