package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestDistributeWeighsMergedTokens(t *testing.T) {
	t.Parallel()
	// One event of 98 tokens is 98 gaps, not one.
	got := distribute([]weightedSample{{100, 1}, {1, 98}, {50, 1}})
	want := &Distribution{Mean: 2.48, P50: 1, P90: 1, P95: 1, P99: 50, Max: 100}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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

func TestLedgerBooksByTimeStamp(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	l := newLedger(start, 10*time.Second)
	l.enter(at(0))
	l.enter(at(5))
	l.tokens(at(9.9), 100, 40)
	l.tokens(at(10), 30, 0)
	l.leave(at(12))
	l.tokens(at(23), 50, 0)
	l.close(at(25))
	l.tokens(at(26), 1000, 7) // draining
	l.leave(at(40))
	want := []Window{
		{Start: at(0), Seconds: 10, Output: 10, Prompt: 4, InFlight: 1.5},
		{Start: at(10), Seconds: 10, Output: 3, InFlight: 1.2},
		{Start: at(20), Seconds: 5, Output: 10, InFlight: 1},
	}
	for k, w := range want {
		if diff := cmp.Diff(w, l.window(k)); diff != "" {
			t.Errorf("window %d (-want +got):\n%s", k, diff)
		}
	}
	if l.most() != 2 {
		t.Errorf("peak = %d, want 2", l.most())
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
	w.Write(Request{Row: 8, Intended: at, Sent: at, Wanted: 5, Failed: "stream_error", Error: "say \"no\"\n"})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := `{"row":7,"at":"2026-01-01T22:00:00.5Z","lag_ms":0.100,"ttft_ms":220.400,"e2e_ms":1900.200,"prompt":1096,"cached":64,"output":300,"wanted":300}`
	if len(lines) != 2 || lines[0] != want {
		t.Errorf("got %q", lines)
	}
	var second map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &second); err != nil || second["error"] != "say \"no\"\n" || second["failed"] != "stream_error" {
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
