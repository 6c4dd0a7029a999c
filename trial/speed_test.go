package trial

import (
	"math"
	"testing"
	"time"
)

// TestServerSpeed: lines are read late and several at once; their own times and stretches count.
func TestServerSpeed(t *testing.T) {
	t.Parallel()
	origin := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	server := time.Date(2026, 1, 1, 20, 0, 0, 0, time.UTC) // its clock has another zone
	line := func(printed, read int, toks float64) speed {
		return speed{read: origin.Add(time.Duration(read) * time.Second), printed: server.Add(time.Duration(printed) * time.Second), toks: toks}
	}
	lines := []speed{line(10, 11, 999), line(20, 21, 100), line(30, 45, 200), line(40, 45, 300), line(60, 61, 50)}
	at := func(s int) time.Time { return origin.Add(time.Duration(s+1) * time.Second) } // quickest reading: a second late
	for _, c := range []struct {
		name     string
		from, to int
		want     float64
	}{
		{"whole stretches", 10, 40, 200},
		{"a stretch is cut", 25, 35, 250},
		{"longer stretches weigh more", 30, 60, (300*10 + 50*20) / 30.0},
		{"before the first line", 0, 9, 0},
		{"after the last", 70, 90, 0},
	} {
		if got := serverSpeed(lines, at(c.from), at(c.to)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g tok/s, want %g", c.name, got, c.want)
		}
	}
	var both []speed
	for _, l := range lines { // two ranks of DP attention print in turn, one at half the speed
		second := l
		second.dp, second.toks = 1, l.toks/2
		both = append(both, l, second)
	}
	if got := serverSpeed(both, at(10), at(40)); math.Abs(got-300) > 1e-9 {
		t.Errorf("two DP ranks: %g tok/s, want the sum of 200 and 100", got)
	}
	if got := serverSpeed(nil, at(0), at(10)); got != 0 {
		t.Errorf("no lines: %g", got)
	}
}
