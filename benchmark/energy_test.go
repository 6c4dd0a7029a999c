package benchmark

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestEnergyArithmetic(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	counter := func(a, b float64) []PowerReading { return []PowerReading{{"a", a, 300}, {"b", b, 100}} }
	power := func(w float64) []PowerReading { return []PowerReading{{"a", -1, w}} }
	for _, c := range []struct {
		name          string
		looks         [][]PowerReading // ten seconds apart
		from, to      float64
		tokens        float64
		joules, watts float64
		perToken      float64
		sampled       bool
	}{
		{"counters of two GPUs", [][]PowerReading{counter(1000, 50), counter(4000, 1050)}, 0, 10, 2000, 4000, 400, 2, false},
		{"part of it", [][]PowerReading{counter(0, 0), counter(3000, 1000), counter(9000, 3000)}, 5, 15, 0, 6000, 600, 0, false},
		{"driver loaded again", [][]PowerReading{counter(9000, 0), counter(20, 1000)}, 0, 10, 0, 4000, 400, 0, false},
		{"counter that stands", [][]PowerReading{counter(9000, 0), counter(9000, 1000)}, 0, 10, 0, 4000, 400, 0, false},
		{"power alone", [][]PowerReading{power(100), power(300), power(300)}, 0, 20, 100, 5000, 250, 50, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &EnergyRecord{last: map[string]PowerReading{}}
			for i, gpus := range c.looks {
				if err := r.add(start.Add(time.Duration(i)*10*time.Second), gpus); err != nil {
					t.Fatal(err)
				}
			}
			at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
			e, why := r.Energy(at(c.from), at(c.to), c.tokens)
			if e == nil {
				t.Fatal(why)
			}
			want := Energy{Joules: c.joules, MeanWatts: c.watts, JoulesPerOutputToken: c.perToken, GPUs: len(c.looks[0]), Sampled: c.sampled}
			if math.Abs(e.Joules-c.joules) > 1e-6 || math.Abs(e.MeanWatts-c.watts) > 1e-6 || e.JoulesPerOutputToken != want.JoulesPerOutputToken || e.GPUs != want.GPUs || e.Sampled != want.Sampled {
				t.Errorf("%+v, want %+v", *e, want)
			}
			if e, why := r.Energy(at(c.from), at(1000), 1); e != nil || why == "" {
				t.Errorf("beyond what was watched: %+v", e)
			}
		})
	}
}

func TestEnergyWatch(t *testing.T) {
	t.Parallel()
	joules, broken := 100.0, false
	read := func(context.Context) ([]PowerReading, error) {
		if broken {
			return nil, errors.New("GPU lost")
		}
		joules += 50
		return []PowerReading{{"a", joules, 75}}, nil
	}
	w, err := WatchEnergy(t.Context(), nil, read)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	to := from.Add(time.Microsecond)
	for !time.Now().After(to) {
		time.Sleep(time.Millisecond)
	}
	e, why := w.Stop(t.Context()).Energy(from, to, 10)
	if e == nil || e.Joules <= 0 || e.Joules >= 50 || e.GPUs != 1 {
		t.Errorf("%+v, %q", e, why)
	}
	broken = true
	if w, err := WatchEnergy(t.Context(), nil, read); w != nil || err == nil {
		t.Error("a GPU that cannot be read is watched")
	}
	none := func(context.Context) ([]PowerReading, error) { return nil, nil }
	if _, err := WatchEnergy(t.Context(), nil, none); err == nil || !strings.Contains(err.Error(), "no GPU") {
		t.Errorf("%v", err)
	}
}

// TestEnergyOfOtherGPUs: a sum over other GPUs than before would be wrong.
func TestEnergyOfOtherGPUs(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, gpus := range map[string][]PowerReading{
		"fewer":  {{"a", 5, 75}},
		"others": {{"a", 5, 75}, {"c", 5, 75}},
		"silent": {{"a", 5, 75}, {"b", -1, -1}},
	} {
		r := &EnergyRecord{last: map[string]PowerReading{}}
		if err := r.add(start, []PowerReading{{"a", 1, 75}, {"b", 1, 75}}); err != nil {
			t.Fatal(err)
		}
		if err := r.add(start.Add(time.Second), gpus); err == nil || len(r.times) != 1 {
			t.Errorf("%s: %v, %d looks", name, err, len(r.times))
		}
	}
}
