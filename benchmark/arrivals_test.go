package benchmark

import (
	"math"
	"slices"
	"testing"
	"time"
)

// rowFeed hands out rows again and again, as a real feed does.
type rowFeed struct {
	rows []Row
	n    int
}

func (f *rowFeed) Next() Prompt {
	p := Prompt{Row: f.rows[f.n%len(f.rows)], Pass: f.n / len(f.rows), IDs: []int{1}, OutputTokens: 1}
	f.n++
	return p
}

func (f *rowFeed) Passes() int { return 1 + f.n/len(f.rows) }

func oneRow() *rowFeed { return &rowFeed{rows: []Row{{InputTokens: 1, OutputTokens: 1}}} }

// dues are the first n times of a schedule in seconds.
func dues(t *testing.T, a Arrivals, feed Feed, n int) []float64 {
	t.Helper()
	a, err := a.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, out := newSchedule(a, feed), []float64(nil)
	for range n {
		out = append(out, s.next().due.Seconds())
	}
	return out
}

// farthest is the Kolmogorov-Smirnov distance of samples from a distribution.
func farthest(samples []float64, cdf func(float64) float64) float64 {
	slices.Sort(samples)
	d, n := 0.0, float64(len(samples))
	for i, x := range samples {
		d = max(d, math.Abs(cdf(x)-float64(i)/n), math.Abs(cdf(x)-float64(i+1)/n))
	}
	return d
}

func TestArrivalsHaveTheirDistribution(t *testing.T) {
	t.Parallel()
	const n, rate = 20_000, 50.0
	gammaOf := func(shape float64) func(float64) float64 {
		return func(x float64) float64 { return regularisedGamma(shape, shape*rate*x) }
	}
	for _, c := range []struct {
		name string
		a    Arrivals
		cdf  func(float64) float64
		cv   float64
	}{
		{"poisson", Arrivals{Process: ArrivalsPoisson, Rate: rate}, func(x float64) float64 { return 1 - math.Exp(-rate*x) }, 1},
		{"gamma 1 is poisson", Arrivals{Process: ArrivalsGamma, Rate: rate}, func(x float64) float64 { return 1 - math.Exp(-rate*x) }, 1},
		{"bursts", Arrivals{Process: ArrivalsGamma, Rate: rate, Burstiness: 0.25}, gammaOf(0.25), 2},
		{"regular", Arrivals{Process: ArrivalsGamma, Rate: rate, Burstiness: 4}, gammaOf(4), 0.5},
	} {
		for _, seed := range []uint64{0, 7} {
			c.a.Seed = seed
			at := dues(t, c.a, oneRow(), n)
			between := make([]float64, n)
			for i := range at {
				between[i] = at[i]
				if i > 0 {
					between[i] -= at[i-1]
				}
			}
			mean := at[n-1] / n
			var squares float64
			for _, g := range between {
				squares += (g - mean) * (g - mean)
			}
			cv := math.Sqrt(squares/n) / mean
			// 1.95/sqrt(n) is the distance that one sample in a thousand exceeds; the mean has a relative error of cv/sqrt(n).
			if d, limit := farthest(between, c.cdf), 1.95/math.Sqrt(n); d > limit {
				t.Errorf("%s, seed %d: %.4f from its distribution, more than %.4f", c.name, seed, d, limit)
			}
			if math.Abs(mean*rate-1) > 3.5*c.cv/math.Sqrt(n) || math.Abs(cv/c.cv-1) > 0.06 {
				t.Errorf("%s, seed %d: mean %g, CV %g; want %g, %g", c.name, seed, mean, cv, 1/rate, c.cv)
			}
		}
	}
}

// regularisedGamma is the lower one, by its series (Abramowitz and Stegun 6.5.29).
func regularisedGamma(a, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x > 700 {
		return 1
	}
	term := 1 / a
	sum := term
	for k := 1.0; term > sum*1e-15; k++ {
		term *= x / (a + k)
		sum += term
	}
	log, _ := math.Lgamma(a)
	return math.Exp(-x+a*math.Log(x)-log) * sum
}

func TestArrivalsAreDrawnBySeed(t *testing.T) {
	t.Parallel()
	for _, process := range []string{ArrivalsPoisson, ArrivalsGamma} {
		a := Arrivals{Process: process, Rate: 10, Burstiness: 2, Seed: 5}
		one, two := dues(t, a, oneRow(), 100), dues(t, a, oneRow(), 100)
		a.Seed = 6
		if !slices.Equal(one, two) || slices.Equal(one, dues(t, a, oneRow(), 100)) {
			t.Errorf("%s: the seed does not make the schedule", process)
		}
		if !slices.IsSorted(one) {
			t.Errorf("%s: times go back", process)
		}
	}
}

func TestConstantArrivals(t *testing.T) {
	t.Parallel()
	for i, at := range dues(t, Arrivals{Process: ArrivalsConstant, Rate: 300}, oneRow(), 5000) {
		if math.Abs(at-float64(i)/300) > 1e-6 {
			t.Fatalf("arrival %d at %g s, want %g", i, at, float64(i)/300)
		}
	}
}

func TestRecordedArrivals(t *testing.T) {
	t.Parallel()
	stamped := func(seconds ...float64) *rowFeed {
		f := &rowFeed{}
		for i, s := range seconds {
			f.rows = append(f.rows, Row{Number: i, At: time.Duration(s * float64(time.Second)), InputTokens: 1, OutputTokens: 1})
		}
		return f
	}
	for _, c := range []struct {
		name string
		a    Arrivals
		feed *rowFeed
		want []float64
	}{
		{"as the file says", Arrivals{}, stamped(0, 1, 1, 4), []float64{0, 1, 1, 4}},
		{"begins in the middle", Arrivals{}, stamped(10, 11, 14), []float64{0, 1, 4}},
		{"twice as fast", Arrivals{Speed: 2}, stamped(0, 1, 1, 4), []float64{0, 0.5, 0.5, 2}},
		{"equal stamps spread", Arrivals{Spread: true}, stamped(0, 3, 3, 3, 6), []float64{0, 3, 4, 5, 6}},
		{"out of order", Arrivals{}, stamped(0, 2, 1, 3), []float64{0, 2, 2, 3}},
		{"passed again at the mean distance", Arrivals{}, stamped(5, 6, 9), []float64{0, 1, 4, 6, 7, 10, 12}},
		{"all at once, spread", Arrivals{Spread: true}, stamped(2, 2), []float64{0, 0, 0, 0, 0}},
		{"one row", Arrivals{}, stamped(7), []float64{0, 0, 0}},
	} {
		c.a.Process = ArrivalsRecorded
		got := dues(t, c.a, c.feed, len(c.want))
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-6 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}
