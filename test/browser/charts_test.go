package browser_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image/png"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// drawnSeries is one series as the chart library holds it.
type drawnSeries struct {
	Type string       `json:"type"`
	Name string       `json:"name"`
	Grid int          `json:"grid"`
	Data []drawnPoint `json:"data"`
}

// drawnPoint is one of its points: the trial it belongs to, -1 for none, and its figures, null for what is none.
type drawnPoint struct {
	Number int        `json:"number"`
	Value  []*float64 `json:"value"`
}

// figure is a chart of the page: what is drawn, and what its table says.
type figure struct {
	Series []drawnSeries `json:"series"`
	Rows   [][]string    `json:"rows"`
}

// figure reads a chart back.
func (tb *tab) figure(name string) figure {
	tb.t.Helper()
	return eval[figure](tb, fmt.Sprintf(`((f) => ({
		series: echarts.getInstanceByDom(f.querySelector(".plot")).getOption().series.map((s) => ({
			type: s.type, name: s.name || "", grid: s.xAxisIndex || 0,
			data: (s.data || []).map((d) => ({ number: d.number ?? -1, value: [d.value ?? d].flat().map((v) => (typeof v === "number" ? v : null)) })),
		})),
		rows: [...f.querySelectorAll("tbody tr")].map((r) => [...r.cells].map((c) => c.textContent.trim())),
	}))(document.querySelector("#chart-%s"))`, name))
}

// numbered are the points that belong to trials, of one type and grid.
func (f figure) numbered(kind string, grid int) map[int][]*float64 {
	out := map[int][]*float64{}
	for _, s := range f.Series {
		for _, p := range s.Data {
			if p.Number >= 0 && s.Type == kind && s.Grid == grid {
				out[p.Number] = p.Value
			}
		}
	}
	return out
}

// first is the number that a cell starts with; ok is false for a cell without one.
func first(cell string) (v float64, ok bool) {
	cell = strings.NewReplacer(",", "", "−", "-", "%", "").Replace(cell)
	word, _, _ := strings.Cut(cell, " ")
	v, err := strconv.ParseFloat(word, 64)
	return v, err == nil
}

// near is whether a figure is the one that was rounded for a person: they are given three or four digits.
func near(drawn, said float64) bool { return math.Abs(drawn-said) <= 2e-3*math.Abs(said)+1e-9 }

// column is what the rows of a table say of each trial; the first cell names it.
func (f figure) column(t *testing.T, at int) map[int]float64 {
	t.Helper()
	out := map[int]float64{}
	for _, row := range f.Rows {
		number, ok := first(row[0])
		if !ok {
			t.Fatalf("no trial in %q", row)
		}
		if v, ok := first(row[at]); ok {
			out[int(number)] = v
		}
	}
	return out
}

// same compares drawn points with what a table says of the same trials.
func same(t *testing.T, name string, drawn map[int][]*float64, at int, said map[int]float64) {
	t.Helper()
	if len(drawn) == 0 || len(drawn) != len(said) {
		t.Errorf("%s: %d trials are drawn, %d are in the table", name, len(drawn), len(said))
	}
	for number, want := range said {
		p, ok := drawn[number]
		if !ok || p[at] == nil || !near(*p[at], want) {
			t.Errorf("%s: trial %d is drawn as %v, the table says %v", name, number, p, want)
		}
	}
}

// TestChartsSayWhatTheirTablesSay reads every chart of a study back and compares it with its table and with the data that was sent.
func TestChartsSayWhatTheirTablesSay(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "night").url+"/studies/night")
	tb.charts()

	best := tb.figure("best")
	same(t, "best", best.numbered("scatter", 0), 1, best.column(t, 2))
	sent := eval[struct {
		Number []int      `json:"number"`
		Value  []*float64 `json:"value"`
		TTFT   []*float64 `json:"ttft_s"`
		Void   []int      `json:"void"`
	}](tb, `fetch("/api/v1/studies/night/charts").then((r) => r.json()).then((d) => ({ number: d.rows.number, value: d.rows.value, ttft_s: d.rows.ttft_s, void: d.rows.void || [] }))`)
	drawn, tradeoff := best.numbered("scatter", 0), tb.figure("tradeoff")
	waits := tradeoff.numbered("scatter", 0)
	for i, number := range sent.Number {
		if sent.Value[i] == nil || slices.Contains(sent.Void, i) {
			continue
		}
		if p := drawn[number]; p == nil || p[1] == nil || *p[1] != *sent.Value[i] {
			t.Errorf("trial %d is drawn as %v, %v was sent", number, p, *sent.Value[i])
		}
		if p := waits[number]; sent.TTFT[i] != nil && (p == nil || *p[0] != *sent.TTFT[i]) {
			t.Errorf("trial %d waits %v in the chart, %v was sent", number, p, *sent.TTFT[i])
		}
	}
	same(t, "tradeoff", waits, 1, tradeoff.column(t, 1))

	night := tb.figure("night")
	if a, b := keys(night.numbered("scatter", 0)), keys(night.column(t, 0)); !slices.Equal(a, b) {
		t.Errorf("night: trials %v are drawn, %v are in the table", a, b)
	}
	knobs := tb.figure("knobs")
	said := knobs.column(t, 1)
	for _, row := range knobs.Rows { // a confirmation launch is no line: it has the knobs of the trial that it confirms
		if number, _ := first(row[0]); strings.Contains(row[0], "confirm") {
			delete(said, int(number))
		}
	}
	if a, b := keys(knobs.numbered("parallel", 0)), keys(said); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("knobs: trials %v are drawn, %v are in the table", a, b)
	}
	sameBars(t, tb.figure("matter"))
	sameCurves(t, tb.figure("levels"))
	sameCells(t, tb.figure("area"))
}

func keys[V any](m map[int]V) []int {
	var out []int
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// sameBars compares the importances: a bar a knob, in the table's order.
func sameBars(t *testing.T, f figure) {
	t.Helper()
	bars := f.Series[0].Data
	if len(bars) == 0 || len(bars) != len(f.Rows) {
		t.Errorf("matter: %d bars, %d rows", len(bars), len(f.Rows))
		return
	}
	for i, row := range f.Rows {
		if said, ok := first(row[1]); !ok || math.Abs(100**bars[i].Value[0]-said) > 0.06 {
			t.Errorf("matter: %s is drawn as %v, the table says %s", row[0], *bars[i].Value[0], row[1])
		}
	}
}

// sameCurves compares the load levels: throughput over clients, in the table's order.
func sameCurves(t *testing.T, f figure) {
	t.Helper()
	var drawn [][]*float64
	for _, s := range f.Series {
		if s.Type != "line" || s.Grid != 0 {
			continue
		}
		for _, p := range s.Data {
			drawn = append(drawn, p.Value)
		}
	}
	if len(drawn) == 0 || len(drawn) != len(f.Rows) {
		t.Errorf("levels: %d points, %d rows", len(drawn), len(f.Rows))
		return
	}
	for i, row := range f.Rows {
		clients, _ := first(row[1])
		said, ok := first(row[2])
		if p := drawn[i]; *p[0] != clients || ok != (p[1] != nil) || ok && !near(*p[1], said) {
			t.Errorf("levels: row %q is drawn as %v", row, p)
		}
	}
}

// sameCells compares the map: how many places were tried, and what the highest of each made.
func sameCells(t *testing.T, f figure) {
	t.Helper()
	var drawn, said []float64
	for _, p := range f.Series[0].Data {
		if p.Value[4] != nil {
			drawn = append(drawn, *p.Value[4])
		}
	}
	for _, row := range f.Rows {
		if v, ok := first(row[2]); ok {
			said = append(said, v)
		}
	}
	slices.Sort(drawn)
	slices.Sort(said)
	if len(f.Series[0].Data) != len(f.Rows) || len(drawn) == 0 || !slices.EqualFunc(drawn, said, near) {
		t.Errorf("area: %d places drawn with %v, %d rows with %v", len(f.Series[0].Data), drawn, len(f.Rows), said)
	}
}

// TestTrialChartSaysWhatItsTableSays compares a trial's series: their names, points and highest figures.
func TestTrialChartSaysWhatItsTableSays(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "night").url+"/studies/night/trials/0")
	tb.charts()
	f := tb.figure("life")
	if len(f.Series) == 0 || len(f.Series) != len(f.Rows) {
		t.Fatalf("%d series, %d rows", len(f.Series), len(f.Rows))
	}
	for i, row := range f.Rows {
		most, points := math.Inf(-1), 0
		for _, p := range f.Series[i].Data {
			if p.Value[1] != nil {
				most, points = max(most, *p.Value[1]), points+1
			}
		}
		said, _ := first(row[4])
		count, _ := first(row[5])
		if f.Series[i].Name != row[0] || !near(most, said) || points != int(count) {
			t.Errorf("%q is drawn as %s, most %v, %d points", row, f.Series[i].Name, most, points)
		}
	}
}

// TestManyTrialsAreThinned has a study of 10,000 trials say how many it left out of its drawings, and keep the highest.
func TestManyTrialsAreThinned(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "many").url+"/studies/night")
	tb.charts()
	tb.wants("left out of the drawing")
	if table := eval[string](tb, `document.querySelector("#chart-best-table").textContent`); !strings.Contains(table, "more rows are in the CSV file") {
		t.Errorf("the table does not say what it lacks: %.300s", table)
	}
	points := len(tb.figure("best").numbered("scatter", 0))
	if points < 1000 || points > 4000 {
		t.Errorf("%d points", points)
	}
}

// TestChartsFailAndComeBack has the data of the charts fail: each place says so and keeps its drawing and table, and Retry draws.
func TestChartsFailAndComeBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, nightOf(30))
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	var failing atomic.Bool
	failing.Store(true)
	err := s.start(t.Context(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/charts") && failing.Load() {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	tb := open(t, desk, "about:blank").expects("503")
	tb.visit(s.url + "/studies/night")
	tb.until("every chart says why it is not drawn", `document.querySelectorAll("[data-chart]").length > 0
		&& document.querySelectorAll(".failed").length === document.querySelectorAll("[data-chart]").length`)
	tb.wants("Chart data did not load (503).", "Retry", "Best so far")
	if n := eval[int](tb, `[...document.querySelectorAll("[data-chart]")].filter((f) => !f.querySelector("tbody td")).length`); n > 0 {
		t.Errorf("%d charts lost their table", n)
	}
	if n := eval[int](tb, `document.querySelectorAll("[data-chart] .drawing").length`); n != 3 {
		t.Errorf("%d drawings stand", n)
	}
	const retry = "#chart-best .failed button"
	eval[bool](tb, `document.querySelector("`+retry+`").classList.toggle("pressed")`)
	tb.click(retry)
	tb.until("the focus is on the Retry that came in place of the pressed one", `document.activeElement.matches("`+retry+`:not(.pressed)")`)
	failing.Store(false)
	tb.click(retry)
	tb.until("the focus is on the heading of the chart", `document.activeElement.matches("#chart-best h3")`)
	tb.charts()
	if n := eval[int](tb, `document.querySelectorAll(".failed").length`); n > 0 {
		t.Errorf("%d places still say that nothing came", n)
	}
}

// TestChartFiles takes a chart as a picture and as figures.
func TestChartFiles(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "night").url+"/studies/night")
	tb.charts()
	name, picture := tb.download(func() { tb.click("#chart-best [data-png]") })
	if _, err := png.Decode(bytes.NewReader(picture)); err != nil || name != "night-best.png" {
		t.Errorf("%s: %v", name, err)
	}
	name, text := tb.download(func() { tb.click(`#chart-best a[href$="best.csv"]`) })
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || name != "night-best.csv" || len(rows) != 1+len(tb.figure("best").Rows) {
		t.Errorf("%s: %d rows, %v", name, len(rows), err)
	}
}

// TestChartText has the letters of every chart stand out from the page, light and dark, also after the theme changed under the page.
func TestChartText(t *testing.T) {
	need(t)
	t.Parallel()
	tb := open(t, desk, read(t, "night").url+"/studies/night")
	tb.charts()
	for _, v := range []view{desk, {width: 1280, height: 900, dark: true}} {
		tb.look(v)
		tb.until("the charts have the colours of the theme", `echarts.getInstanceByDom(document.querySelector("#chart-knobs .plot")).getOption().textStyle.color
			=== getComputedStyle(document.documentElement).getPropertyValue("--chart-text").trim()`)
		colors := eval[[][]float64](tb, chartColors)
		if len(colors) < 20 {
			t.Fatalf("only %d colours", len(colors))
		}
		for _, c := range colors {
			if ratio := contrast(c[:3], c[3:]); ratio < 4.5 {
				t.Errorf("dark %v: text of %v on %v: contrast %.2f", v.dark, c[:3], c[3:], ratio)
			}
		}
	}
}

// chartColors lists the colours of text in all charts, each with the ground it stands on, as red, green and blue from 0 to 255.
const chartColors = `(() => {
	const rgb = (color) => {
		const c = document.createElement("canvas").getContext("2d");
		c.fillStyle = color;
		c.fillRect(0, 0, 1, 1);
		return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3);
	};
	const ground = rgb(getComputedStyle(document.documentElement).getPropertyValue("--chart-ground").trim());
	return [...document.querySelectorAll("[data-chart] .plot")].flatMap((el) => {
		const o = echarts.getInstanceByDom(el).getOption();
		return [o.textStyle, ...(o.legend || []).map((l) => l.textStyle), ...(o.title || []).map((l) => l.textStyle),
			...["xAxis", "yAxis", "parallelAxis"].flatMap((a) => (o[a] || []).flatMap((x) => [x.axisLabel, x.nameTextStyle]))]
			.filter((s) => s && typeof s.color === "string").map((s) => [...rgb(s.color), ...ground]);
	});
})()`

// contrast is the ratio of two colours as WCAG defines it.
func contrast(a, b []float64) float64 {
	light := func(c []float64) float64 {
		var l float64
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := c[i] / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			l += weight * v
		}
		return l
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
