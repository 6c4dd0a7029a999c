package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDistributeIsNearestRank(t *testing.T) {
	t.Parallel()
	upTo := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(n - i)
		}
		return out
	}
	for _, c := range []struct {
		name    string
		samples []float64
		want    *Distribution
	}{
		{"none", nil, nil},
		{"one", []float64{7}, &Distribution{7, 7, 7, 7, 7, 7}},
		{"twenty", upTo(20), &Distribution{10.5, 10, 18, 19, 20, 20}},
		{"hundred", upTo(100), &Distribution{50.5, 50, 90, 95, 99, 100}},
		{"three", []float64{3, 1, 2}, &Distribution{2, 2, 3, 3, 3, 3}},
	} {
		if diff := cmp.Diff(c.want, Distribute(c.samples)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// gapsOf is one part of gaps.
func gapsOf(gaps ...gap) func(func([]gap) bool) {
	return func(yield func([]gap) bool) { yield(gaps) }
}

func TestDistributeGapsWeighsMergedTokens(t *testing.T) {
	t.Parallel()
	// One event of 98 tokens is 98 gaps, not one.
	got := distributeGaps(gapsOf(gap{100, 1}, gap{1, 98}, gap{50, 1}))
	want := &Distribution{Mean: 2.48, P50: 1, P90: 1, P95: 1, P99: 50, Max: 100}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := distributeGaps(gapsOf()); got != nil {
		t.Errorf("a distribution of nothing: %+v", got)
	}
}

// Counting in two steps must find the very values that sorting finds; the folded form is near them.
func TestDistributeGapsEqualsSorting(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		draw func(i int) float64
	}{
		{"narrow", func(int) float64 { return 20 + 0.01*random.NormFloat64() }},
		{"wide", func(int) float64 { return math.Exp(3 * random.NormFloat64()) }},
		{"all equal", func(int) float64 { return 20 }},
		{"zeros and a stall", func(i int) float64 { return float64(i/4999) * 2000 }},
	} {
		var gaps []gap
		var single []float64
		var folded histogram
		for i := range 5000 {
			g := gap{float32(c.draw(i)), uint32(1 + i%3)}
			gaps = append(gaps, g)
			folded.add(g.Ms, int64(g.Tokens))
			for range g.Tokens {
				single = append(single, float64(g.Ms))
			}
		}
		want := Distribute(single)
		exact := distributeGaps(func(yield func([]gap) bool) { _ = yield(gaps[:1234]) && yield(gaps[1234:]) })
		near := cmpopts.EquateApprox(1e-9, 0)
		if diff := cmp.Diff(want, exact, near); diff != "" {
			t.Errorf("%s (-sorted +counted):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(want, folded.distribution(), cmpopts.EquateApprox(0.004, 1e-6)); diff != "" {
			t.Errorf("%s (-sorted +folded):\n%s", c.name, diff)
		}
	}
}

// flat are n windows that hardly move.
func flat(n int) []float64 {
	var out []float64
	for i := range n {
		out = append(out, 5+0.1*float64(i%3-1))
	}
	return out
}

func rising(n int) []float64 {
	var out []float64
	for i := range n {
		out = append(out, float64(i))
	}
	return out
}

func TestSteadyFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		windows []float64
		from    int
		steady  bool
	}{
		{"nothing", nil, 0, false},
		{"too short", []float64{5, 5, 5, 5}, 0, false},
		{"flat", []float64{5, 5.1, 4.9, 5, 5.1, 4.9}, 0, true},
		{"few and rising", []float64{1, 2, 3, 4, 5, 6, 7, 8}, 0, false},
		{"few and noisy", []float64{65, 168, 82, 95, 69, 106, 153, 110, 90}, 0, true},
		{"many with a ramp", append([]float64{1, 3}, flat(20)...), 2, true},
		{"many with a spike at the start", append([]float64{50}, flat(20)...), 1, true},
		{"many and still rising", rising(24), 12, false},
	} {
		from, steady := steadyFrom(c.windows)
		if from != c.from || steady != c.steady {
			t.Errorf("%s: from %d, steady %v; want %d, %v", c.name, from, steady, c.from, c.steady)
		}
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	if _, _, ok := interval([]float64{1}); ok {
		t.Error("an interval of one value")
	}
	// s = 1, n = 3, t(0.975, 2) = 4.302653.
	mean, half, ok := interval([]float64{9, 10, 11})
	if !ok || mean != 10 || math.Abs(half-4.302653/math.Sqrt(3)) > 1e-6 {
		t.Errorf("%g ± %g", mean, half)
	}
	// Windows that swing slowly are not as many as they look: merged, their interval is wider.
	var slow []float64
	for i := range 240 {
		slow = append(slow, math.Sin(float64(i)/20))
	}
	_, merged, _ := interval(slow)
	if naive := studentT(239) * 0.71 / math.Sqrt(240); merged < 2*naive {
		t.Errorf("half-width %g of a correlated series, no more than %g", merged, naive)
	}
}

// The 95% interval must hold the true mean about that often, also of a series whose windows follow each other:
// x(i) = r·x(i-1) + noise around 100. An interval that took them for independent would hold it far less often.
func TestIntervalCoversTheMean(t *testing.T) {
	t.Parallel()
	const series = 1000
	for _, c := range []struct {
		n             int
		r             float64
		least, atMost float64
	}{
		{12, 0, 0.92, 0.99},
		{25, 0, 0.92, 0.99},
		{100, 0, 0.92, 0.99},
		{12, 0.5, 0.79, 0.97},
		{25, 0.5, 0.85, 0.98},
		{100, 0.5, 0.90, 0.99},
		{100, 0.8, 0.86, 0.99},
	} {
		random := rand.New(rand.NewPCG(3, uint64(c.n)))
		held := 0
		for range series {
			windows, x := make([]float64, c.n), random.NormFloat64()/math.Sqrt(1-c.r*c.r)
			for i := range windows {
				windows[i] = 100 + x
				x = c.r*x + random.NormFloat64()
			}
			if mean, half, ok := interval(windows); ok && math.Abs(mean-100) <= half {
				held++
			}
		}
		if share := float64(held) / series; share < c.least || share > c.atMost {
			t.Errorf("%d windows of correlation %g: the interval held the mean %.3f of the time, want %g to %g", c.n, c.r, share, c.least, c.atMost)
		}
	}
}

func TestPilesUp(t *testing.T) {
	t.Parallel()
	var growing, level, tide []Window
	for i := range 10 {
		growing = append(growing, Window{InFlight: 10 + 5*float64(i)})
		level = append(level, Window{InFlight: 10 + float64(i%3)})
		tide = append(tide, Window{InFlight: 100 + float64(i)})
	}
	if !pilesUp(growing) || pilesUp(level) || pilesUp(tide) || pilesUp(growing[:4]) {
		t.Errorf("piles up: growing %v, level %v, tide %v, too few %v", pilesUp(growing), pilesUp(level), pilesUp(tide), pilesUp(growing[:4]))
	}
}

func TestLedgerBooksByTimeStamp(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	l := newLedger(start, 10*time.Second)
	one, two := l.meter(), l.meter()
	l.enter(at(0))
	l.enter(at(5))
	one.tokens(at(9.9), 60, 40)
	two.tokens(at(10), 30, 0)
	one.tokens(at(9.95), 40, 0) // a client that got the CPU late
	l.window(1)
	l.leave(at(12), false) // likewise
	l.enter(at(20))
	l.leave(at(21), true)
	two.tokens(at(23), 50, 0)
	l.close(at(25))
	two.tokens(at(26), 1000, 7) // draining
	l.leave(at(40.5), false)
	want := []Window{
		{Start: at(0), Seconds: 10, Output: 10, Prompt: 4, InFlight: 1.5},
		{Start: at(10), Seconds: 10, Output: 3, InFlight: 1.2},
		{Start: at(20), Seconds: 5, Output: 10, InFlight: 1.2},
	}
	for k, w := range want {
		if diff := cmp.Diff(w, l.window(k), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("window %d (-want +got):\n%s", k, diff)
		}
	}
	if l.most() != 2 || l.prompt.Load() != 47 {
		t.Errorf("peak = %d, want 2; %d prompt tokens, want 47", l.most(), l.prompt.Load())
	}
	series := l.series()
	for _, want := range []Point{
		{T: 0, InFlight: 1, Started: 1},
		{T: 5, InFlight: 2, Started: 1},
		{T: 9, OutputTokS: 100, PromptTokS: 40, InFlight: 2},
		{T: 10, OutputTokS: 30, InFlight: 2},
		{T: 12, InFlight: 1, Ended: 1},
		{T: 20, InFlight: 2, Started: 1},
		{T: 21, InFlight: 1, Ended: 1, Failed: 1},
		{T: 26, OutputTokS: 1000, PromptTokS: 7, InFlight: 1},
		{T: 40, InFlight: 0.5, Ended: 1},
	} {
		if diff := cmp.Diff(want, series[int(want.T)], cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
			t.Errorf("second %g (-want +got):\n%s", want.T, diff)
		}
	}
	if len(series) != 41 {
		t.Errorf("%d seconds, want 41", len(series))
	}
}

// Whatever order clients come in, nothing they count is lost or counted twice.
func TestMetersLoseNothing(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	l := newLedger(start, 300*time.Millisecond)
	const clients, events = 8, 5000
	var gone sync.WaitGroup
	for range clients {
		m := l.meter()
		gone.Go(func() {
			for i := range events {
				m.tokens(start.Add(time.Duration(i)*time.Millisecond), 2, 1)
			}
		})
	}
	for range 50 {
		l.window(3)
	}
	gone.Wait()
	l.close(start.Add(4500 * time.Millisecond))
	var output, prompt, seconds float64
	for k := range 15 {
		w := l.window(k)
		output += w.Output * w.Seconds
		prompt += w.Prompt * w.Seconds
	}
	for _, p := range l.series() {
		seconds += p.OutputTokS
	}
	// Of what was booked before the end was known, only windows behind it may show the rest.
	if math.Abs(output-2*clients*4500) > 1e-6 || math.Abs(prompt-clients*4500) > 1e-6 || seconds != 2*clients*events || l.prompt.Load() != clients*events {
		t.Errorf("windows hold %g output and %g prompt tokens, seconds %g, the ledger %d", output, prompt, seconds, l.prompt.Load())
	}
}

func TestServerDisagreement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server float64
		want   string
	}{{0, ""}, {1040, ""}, {960, ""}, {1070, "server disagrees by 7%"}, {900, "server disagrees by 10%"}} {
		r := Report{OutputTokS: 1000}
		r.SetServer(c.server)
		if got := strings.Join(r.Flags, ","); got != c.want {
			t.Errorf("%g: flags %q, want %q", c.server, got, c.want)
		}
	}
}

func TestSampleWriter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 22, 0, 0, 5e8, time.UTC)
	var out bytes.Buffer
	w := NewSampleWriter(&out)
	w.Write(Request{
		Row: 7, Intended: at, Sent: at.Add(100 * time.Microsecond), TTFT: 220400 * time.Microsecond,
		E2E: 1900200 * time.Microsecond, Prompt: 1096, Cached: 64, Output: 300, Wanted: 300,
	})
	w.Write(Request{Row: 8, Turn: 2, Attempts: 3, Intended: at, Sent: at, Wanted: 5, Failed: "stream_error", Error: "say \"no\"\n"})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := `{"row":7,"at":"2026-01-01T22:00:00.5Z","lag_ms":0.100,"ttft_ms":220.400,"e2e_ms":1900.200,"prompt":1096,"cached":64,"output":300,"wanted":300}`
	if len(lines) != 2 || lines[0] != want {
		t.Errorf("got %q", lines)
	}
	var second map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &second); err != nil || second["error"] != "say \"no\"\n" || second["failed"] != "stream_error" || second["turn"] != 2.0 || second["attempts"] != 3.0 {
		t.Errorf("%v: %v", err, second)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestSampleWriterKeepsTheFirstError(t *testing.T) {
	t.Parallel()
	w := NewSampleWriter(fullDisk{})
	for range 2000 {
		w.Write(Request{})
	}
	if err := w.Flush(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("err = %v", err)
	}
}
