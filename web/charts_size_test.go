package web_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/store"
	"sgtune/test/webbed"
	"sgtune/tuner"
	"sgtune/web"
)

// TestChartsFitThePage holds the study page and its charts' data against the budgets of the page.
func TestChartsFitThePage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		trials int
		json   int // compressed bytes of the charts' data
		long   bool
	}{{"30", 30, 6_000, false}, {"1000", 1000, 40_000, true}, {"10000", 10_000, 90_000, true}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.long && testing.Short() {
				t.Skip("filling the database takes 2 s for each thousand trials")
			}
			db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "sgtune.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			name := strings.Repeat("a-long-name.", 10)
			if err := webbed.Fill(t.Context(), db, webbed.Make(name, tt.trials, 7)); err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if err := db.AddEvent(t.Context(), name, tuner.Event{At: night, Kind: "plan", Trial: new(int), Text: strings.Repeat("a long event & more ", 100)}); err != nil {
					t.Fatal(err)
				}
			}
			h := web.New(db, web.Options{DB: "sgtune.db"})
			page := get(t, h, "/studies/"+name).Body.String()
			if n := len(page); n > most {
				t.Errorf("%d bytes of HTML", n)
			}
			if n := strings.Count(page, "<") - strings.Count(page, "</"); n > 2500 {
				t.Errorf("%d elements", n)
			}
			for _, want := range []string{`data-chart="night"`, `data-chart="best"`, `data-chart="area"`, `data-chart="matter"`, `data-chart="levels"`, `data-chart="tradeoff"`, `data-chart="knobs"`, "<svg "} {
				if !strings.Contains(page, want) {
					t.Errorf("the page has no %s", want)
				}
			}
			if strings.Contains(page, " style=") || strings.Contains(page, "<script>") {
				t.Error("the page has a style attribute or an inline script")
			}
			w := get(t, h, "/api/v1/studies/"+name+"/charts", gzipped)
			if n := w.Body.Len(); w.Code != http.StatusOK || n > tt.json {
				t.Errorf("status %d, %d bytes of compressed data, want at most %d", w.Code, n, tt.json)
			}
		})
	}
}
