package browser_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Most that a page may be.
const (
	mostHTML  = 60_000 // bytes, before they are compressed
	mostNodes = 2_500
	mostShift = 0.02 // cumulative layout shift
)

// weighs holds a page to its size: bytes of HTML, nodes, and how far anything moved while it was loaded.
func weighs(t *testing.T, p place, tb *tab) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, read(t, p.site).url+p.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // only read
	html, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(html) > mostHTML {
		t.Errorf("%d bytes of HTML", len(html))
	}
	if n := eval[int](tb, `document.querySelectorAll("*").length`); n > mostNodes {
		t.Errorf("%d nodes", n)
	}
	if shift := eval[float64](tb, layoutShift); shift > mostShift {
		t.Errorf("things moved by %.3f", shift)
	}
}

// layoutShift sums the shifts that the page saw since it was opened.
const layoutShift = `new Promise((done) => {
	let sum = 0;
	new PerformanceObserver((all) => all.getEntries().forEach((e) => { if (!e.hadRecentInput) sum += e.value; })).observe({ type: "layout-shift", buffered: true });
	requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(sum))));
})`

// TestBytes holds what the page of a study costs a browser that comes for the first time, and the second; and that no script holds up the text.
func TestBytes(t *testing.T) {
	need(t)
	t.Parallel()
	for _, tt := range []struct {
		site       string
		cold, warm int
	}{{"night", 500_000, 60_000}, {"many", 600_000, 150_000}} {
		t.Run(tt.site, func(t *testing.T) {
			t.Parallel()
			tb := open(t, desk, read(t, tt.site).url+"/studies/night")
			tb.charts()
			if n := eval[int](tb, transferred); n < 100_000 || n > tt.cold {
				t.Errorf("%d bytes at the first visit, %d allowed", n, tt.cold)
			}
			if late := eval[[]string](tb, `performance.getEntriesByType("resource").filter((e) => e.initiatorType === "script" && e.renderBlockingStatus === "blocking").map((e) => e.name)`); len(late) > 0 {
				t.Errorf("scripts hold up the text: %s", strings.Join(late, ", "))
			}
			tb.visit(read(t, tt.site).url + "/")
			tb.visit(read(t, tt.site).url + "/studies/night")
			tb.charts()
			if n := eval[int](tb, transferred); n > tt.warm {
				t.Errorf("%d bytes at the second visit, %d allowed", n, tt.warm)
			}
		})
	}
}

// transferred is what came over the network for the page, headers included.
const transferred = `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((sum, e) => sum + e.transferSize, 0)`
