package tuner

import (
	"encoding/json"
	"math"
	"testing"
)

func TestLearn(t *testing.T) {
	t.Parallel()
	if got := Learn(codedProblem()); got.Trials != 0 || got.Importances != nil || got.Feasibility != nil || got.Limit != nil {
		t.Errorf("before any trial: %+v", got)
	}
	p, _ := played()
	got := Learn(p)
	if got.Trials != len(p.History) || len(got.Importances) != len(p.Space) || got.Feasibility == nil || got.Limit == nil {
		t.Fatalf("%+v", got)
	}
	l, m := got.Limit, got.Feasibility
	if l.SD < 0 || l.MarginGiB == nil || *l.MarginGiB <= 0 {
		t.Errorf("limit %+v", l)
	}
	row := m.Cells[0]
	for i, pool := range m.HostPools {
		if pool == hostPool(m.At) {
			row = m.Cells[i]
		}
	}
	for i, f := range m.Fractions { // the map shows the same line
		if below := f < l.Fraction; below != (*row[i].OOM < 0.5) {
			t.Errorf("the line is at %.4f, and at %.2f the chance to run out of memory is %.3f", l.Fraction, f, *row[i].OOM)
		}
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
	p.Space = p.Space[3:]
	if got := Learn(p); got.Limit != nil || got.Feasibility == nil {
		t.Errorf("memory is not searched: %+v", got.Limit)
	}
}

func TestCrossing(t *testing.T) {
	t.Parallel()
	x := []float64{0.80, 0.84, 0.88, 0.92}
	for _, c := range []struct {
		name  string
		y     []float64
		level float64
		want  float64 // 0 = none
	}{
		{"in the middle", []float64{-9, -1, 1, 9}, 0, 0.86},
		{"at a point", []float64{-9, 0, 1, 9}, 0, 0.84},
		{"the first of two", []float64{-1, 1, -1, 1}, 0, 0.82},
		{"another level", []float64{-4, -2, 0, 2}, 1, 0.90},
		{"never", []float64{-9, -8, -7, -6}, 0, 0},
		{"from the start", []float64{1, 2, 3, 4}, 0, 0},
		{"one point", []float64{1}, 0, 0},
	} {
		at, ok := crossing(x[:len(c.y)], c.y, c.level)
		if ok != (c.want > 0) || math.Abs(at-c.want) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v", c.name, at, ok, c.want)
		}
	}
	for at, want := range map[float64]float64{0.80: 4, 0.82: 3, 0.92: 0, 0.94: -0.5, 0.78: 5} {
		if got := between(x, []float64{4, 2, 1, 0}, at); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
}

// What a study decides by is learnt trial by trial, as long as that is quick.
func TestLongHistoryIsLearntAtOnce(t *testing.T) {
	t.Parallel()
	p, _ := played()
	at := p.History[0].Config
	decided := func() standing {
		v, ok := physicsView(p)
		if !ok {
			t.Fatal("nothing was learnt")
		}
		s, _ := v.of(at)
		return s
	}
	looked := func() standing {
		v, _ := reviewed(p)
		s, _ := v.of(at)
		return s
	}
	if decided() == looked() {
		t.Error("a short history is learnt at once")
	}
	if testing.Short() {
		return // the rest takes some seconds under the race detector
	}
	for first := p.History; len(p.History) <= longHistory; {
		p.History = append(p.History, first...)
	}
	if a, b := decided(), looked(); a != b {
		t.Errorf("a long history is learnt trial by trial: %+v, at once %+v", a, b)
	}
}
