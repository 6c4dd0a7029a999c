package browser_test

import (
	"testing"
	"time"
)

// TestComplaintsAreHeard plants what the policy of the pages forbids, and what else a page may do wrong: each is blocked and heard.
func TestComplaintsAreHeard(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "states").url+"/studies/better")
	tb.charts()
	eval[int](tb, `document.querySelector("main").insertAdjacentHTML("beforeend", '<img src="/static/no" alt="" onerror="planted = 1"><p style="color: red">planted</p>'), 0`)
	if ran := eval[bool](tb, `"planted" in window`); ran {
		t.Error("an inline handler ran")
	}
	eval[int](tb, `console.error("of the page"), setTimeout(() => { throw new Error("thrown late"); }), fetch("/nowhere").then(() => 0)`)
	for _, part := range []string{"inline event handler", "inline style", "of the page", "thrown late", "http 404"} {
		tb.expects(part)
		heard(t, tb, part)
	}
	tb.expects("Failed to load resource", "Content Security Policy")
}

// heard waits for a complaint: it comes by another way than answers do.
func heard(t *testing.T, tb *tab, part string) {
	t.Helper()
	for end := time.Now().Add(limit); len(tb.heard(part)) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("not heard: %q; heard: %q", part, tb.heard(""))
			return
		}
	}
}
