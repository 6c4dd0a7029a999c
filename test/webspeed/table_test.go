package webspeed

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// line is a row of the table: one measure at one size.
type line struct {
	what, at    string
	ours, peers string
	ratio       string
	budget      string
	ok          bool
	fails       bool // a miss fails the test; without, it is only told
}

// table is what a run measured.
type table struct{ lines []line }

// unit is how a figure is printed; a nil unit prints as it is.
type unit func(float64) string

func millis(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%.1f s", v/1000)
	}
	return fmt.Sprintf("%.*f ms", digits(v), v)
}

func size(v float64) string {
	if v >= 999_500 {
		return fmt.Sprintf("%.2f MB", v/1e6)
	}
	return fmt.Sprintf("%.*f kB", digits(v/1000), v/1000)
}

func count(v float64) string { return fmt.Sprintf("%.0f", v) }

func share(v float64) string { return fmt.Sprintf("%.3f", v) }

// digits is how many decimals leave three figures of a number.
func digits(v float64) int {
	switch {
	case v < 10:
		return 2
	case v < 100:
		return 1
	}
	return 0
}

// beside adds a figure of both products. least says that the peer's is a bound: it took at least that.
func (b *table) beside(what, at string, ours, peers float64, as unit, most float64, least bool) {
	r := ours / peers
	l := line{what: what, at: at, ours: as(ours), peers: as(peers), ratio: fmt.Sprintf("%.3f", r), budget: fmt.Sprintf("R ≤ %g", most), ok: r <= most, fails: true}
	if least {
		l.peers, l.ratio = "> "+l.peers, "< "+l.ratio
	}
	b.lines = append(b.lines, l)
}

// alone adds a figure of ours with a limit of its own.
func (b *table) alone(what, at string, ours float64, as unit, most float64, fails bool) {
	b.lines = append(b.lines, line{what: what, at: at, ours: as(ours), budget: "≤ " + as(most), ok: ours <= most, fails: fails})
}

// told adds a figure that nothing is asked of.
func (b *table) told(what, at string, ours float64, as unit) {
	b.lines = append(b.lines, line{what: what, at: at, ours: as(ours), ok: true})
}

// markdown is the table as text.
func (b *table) markdown() string {
	var out strings.Builder
	out.WriteString("| | trials | sgtune | optuna-dashboard | R | budget | |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, l := range b.lines {
		held := "held"
		switch {
		case l.budget == "":
			held = ""
		case !l.ok:
			held = "**missed**"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", l.what, l.at, l.ours, l.peers, l.ratio, l.budget, held)
	}
	return out.String()
}

// missed are the lines that fail a run.
func (b *table) missed() []string {
	var out []string
	for _, l := range b.lines {
		if l.fails && !l.ok {
			out = append(out, fmt.Sprintf("%s, %s trials: %s, %s", l.what, l.at, strings.TrimSpace(l.ours+" "+l.ratio), l.budget))
		}
	}
	return out
}

// median is the middle of some figures, of an even number the mean of the two.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN() // no figure keeps any budget
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b table
	b.beside("fast", "30", 10, 100, millis, 0.1, false)
	b.beside("slow", "30", 11, 100, millis, 0.1, false)
	b.beside("bound", "30", 6000, 150_000, millis, 0.06, true)
	b.beside("nothing", "30", median(nil), 100, millis, 0.1, false)
	b.alone("heavy", "any", 60_100, size, 60_000, true)
	b.alone("many", "any", 2501, count, 2500, false)
	b.told("first", "30", 900, millis)
	missed := strings.Join(b.missed(), "\n")
	if want := "slow, 30 trials: 11.0 ms 0.110, R ≤ 0.1\nnothing, 30 trials: NaN ms NaN, R ≤ 0.1\nheavy, any trials: 60.1 kB, ≤ 60.0 kB"; missed != want {
		t.Errorf("missed:\n%s\nwant:\n%s", missed, want)
	}
	for _, want := range []string{"| bound | 30 | 6000 ms | > 150.0 s | < 0.040 | R ≤ 0.06 | held |\n", "| many | any | 2501 |  |  | ≤ 2500 | **missed** |\n", "| first | 30 | 900 ms |  |  |  |  |\n"} {
		if !strings.Contains(b.markdown(), want) {
			t.Errorf("no %q in\n%s", want, b.markdown())
		}
	}
	if median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1}) != 2.5 {
		t.Error("a median is wrong")
	}
}
