package virtual

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// studies are the nights, each with figures of its own in testdata/best.
var studies = []string{"kimi", "llama70b", "llama8b"}

// slow keeps a test out of the fast tier.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow tier: make test-nights runs it")
	}
}

// seeds is how many nights a test runs: few in CI, as many as SGTUNE_SEEDS says in `make test-long`.
func seeds(t *testing.T, few int) int {
	t.Helper()
	slow(t)
	n, err := strconv.Atoi(os.Getenv("SGTUNE_SEEDS"))
	if err != nil {
		return few
	}
	return n
}

// path is a study's file: kimi is the example that users start from.
func path(name string) string {
	if name == "kimi" {
		return filepath.Join("..", "..", "..", "examples", "kimi.yaml")
	}
	return filepath.Join("testdata", name+".yaml")
}

func study(t testing.TB, name string) (*tuner.Study, *Best) {
	t.Helper()
	s, err := tuner.ReadStudy(path(name))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "best", s.Name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	b := &Best{}
	if err := json.Unmarshal(text, b); err != nil {
		t.Fatal(err)
	}
	return s, b
}

func judge(t testing.TB, s *tuner.Study) *Judge {
	t.Helper()
	j, err := NewJudge(s)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func night(t *testing.T, j *Judge, o Options) *Night {
	t.Helper()
	n, err := j.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (j *Judge) long(t *testing.T, c sglang.Config) float64 {
	t.Helper()
	o, err := j.Long().Value(t.Context(), c, 0, Noise{Free: true})
	if err != nil {
		t.Fatal(err)
	}
	return o.Value
}

// The figures that the nights are judged by keep what the issue asks of a problem: what runs today is far from the
// best, and not everything runs.
func TestFigures(t *testing.T) {
	t.Parallel()
	for _, name := range studies {
		s, b := study(t, name)
		if b.Runs < 20_000 || b.Distance < 0.20 || b.Failing < 0.15 || b.Drawn < 500 || b.Profile != s.Host.Profile || b.Space != s.Space.Size() {
			t.Errorf("%s: %s", name, b.Text())
		}
		if testing.Short() {
			continue
		}
		if got := judge(t, s).long(t, b.Config); got != b.Value {
			t.Errorf("%s: the best is worth %.2f now, %.2f when it was found: run ./test/nights/best again", name, got, b.Value)
		}
	}
}

// The nights themselves: within 5% of the best in the median, no host OOM, at most two crashes a night.
func TestNights(t *testing.T) {
	few, most := seeds(t, 1), 0.10
	if few >= 10 {
		most = 0.05 // of one or two nights the median says little
	}
	for _, name := range studies {
		t.Run(name, func(t *testing.T) {
			s, b := study(t, name)
			j := judge(t, s)
			var regrets []float64
			crashes, hostOOMs := 0, 0
			for seed := 1; seed <= few; seed++ {
				n := night(t, j, Options{Seed: int64(seed)})
				regret := 1 - j.long(t, n.Config)/b.Value
				regrets = append(regrets, regret)
				crashes += n.Crashes()
				hostOOMs += n.HostOOMs()
				t.Logf("seed %d: regret %.1f%%, %d crashes, %.1f h, took %.1fs: %s", seed, 100*regret, n.Crashes(), n.Hours, n.Took.Seconds(), n.Config.Key())
				if regret > 0.05 {
					for _, line := range n.Trace() {
						t.Log(line)
					}
				}
			}
			slices.Sort(regrets)
			median := (regrets[(len(regrets)-1)/2] + regrets[len(regrets)/2]) / 2
			mean := float64(crashes) / float64(few)
			t.Logf("%s: %d nights, regret median %.1f%%, worst %.1f%%; crashes %.2f a night, host OOMs %d; %s", name, few, 100*median, 100*regrets[few-1], mean, hostOOMs, b.Text())
			if median > most || mean > 2 || hostOOMs > 0 {
				t.Errorf("want a median of at most %.0f%%, 2 crashes a night, no host OOM", 100*most)
			}
		})
	}
}

// A night whose baseline is the best already says so.
func TestKeep(t *testing.T) {
	few := seeds(t, 2)
	s, b := study(t, "kimi")
	s.Baseline = b.Config.Clone()
	delete(s.Baseline, "kv-cache-dtype") // as a person would write it
	j := judge(t, s)
	kept := 0
	for seed := 1; seed <= few; seed++ {
		n := night(t, j, Options{Seed: int64(seed)})
		if n.Kept() {
			kept++
		}
		t.Logf("seed %d: kept %v, %d crashes: %s", seed, n.Kept(), n.Crashes(), n.Verdict.Text)
		if n.HostOOMs() > 0 {
			t.Errorf("seed %d: %d host OOMs", seed, n.HostOOMs())
		}
	}
	t.Logf("kept %d of %d", kept, few)
	if few-kept > few/20 {
		t.Errorf("kept %d of %d, want at least 19 of 20", kept, few)
	}
}

// The claimed 95% interval holds the true gain, with launches that differ by 5%.
func TestCoverage(t *testing.T) {
	few := seeds(t, 2)
	if os.Getenv("SGTUNE_SEEDS") != "" {
		few *= 2 // 40 where the nights are 20
	}
	s, _ := study(t, "kimi")
	j := judge(t, s)
	// The truth is that of a night's own launches: the same rows, without chance.
	truth := func(c sglang.Config) float64 {
		o, err := j.Value(t.Context(), c, 0, Noise{Free: true})
		if err != nil {
			t.Fatal(err)
		}
		return o.Value
	}
	base, held, given := truth(s.Baseline), 0, 0
	for seed := 101; seed <= 100+few; seed++ {
		n := night(t, j, Options{Seed: int64(seed), Noise: Noise{Launch: 0.05}})
		v := n.Verdict
		if v.Low == nil {
			t.Logf("seed %d: no interval: %s", seed, v.Text)
			continue
		}
		given++
		gain := truth(v.Config)/base - 1
		in := *v.Low <= gain && gain <= *v.High
		if in {
			held++
		}
		t.Logf("seed %d: true gain %+.1f%%, claimed %+.1f%% (%+.1f%% to %+.1f%%), held %v", seed, 100*gain, 100*v.Gain, 100**v.Low, 100**v.High, in)
	}
	t.Logf("held %d of %d", held, given)
	if given < few-few/10 || 10*held < 9*given && given-held > 1 {
		t.Errorf("%d intervals of %d nights, %d hold the true gain; want at least 90%%", given, few, held)
	}
}

// A seed is a night: the sampler has no other memory, the machine no other chance.
func TestSameSeedSameNight(t *testing.T) {
	slow(t)
	s, _ := study(t, "llama8b")
	j := judge(t, s)
	values := func(seed int64) (out []string) {
		for _, tr := range night(t, j, Options{Seed: seed, Sampler: "random", Trials: 4}).Trials {
			line := tr.Config.Key() + string(tr.State)
			if tr.Value != nil {
				line += fmt.Sprint(*tr.Value)
			}
			out = append(out, line)
		}
		return out
	}
	one, again, other := values(1), values(1), values(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("seed 1 twice:\n%s", diff)
	}
	if cmp.Equal(one, other) {
		t.Error("seeds 1 and 2 are the same night")
	}
}

// A launch in virtual time leaves the row that trial.Runner would: log figures, low-water mark, levels with
// intervals, verdicts of the closed vocabulary.
func TestTrialRow(t *testing.T) {
	t.Parallel()
	s, _ := study(t, "kimi")
	s.Workload.Concurrency, s.Workload.Cap, s.Measure.Window = []int{40, 80}, 3*time.Minute, 10*time.Second
	j := judge(t, s)
	launch := func(c sglang.Config) *trial.Trial {
		tr, err := j.Trial(t.Context(), c, 1, Noise{})
		if err != nil {
			t.Fatal(err)
		}
		if !trial.CauseAllowed(tr.Verdict.Outcome, tr.Verdict.Cause) || !tr.State.Finished() || tr.Release != trial.ReleaseVerified {
			t.Errorf("%s: %s, %s / %s, release %s", c.Key(), tr.State, tr.Verdict.Outcome, tr.Verdict.Cause, tr.Release)
		}
		return tr
	}
	ok := launch(sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 24.0})
	if ok.Memory.Tokens != 159277 || ok.Memory.HostPoolGB != 24 || ok.Startup <= 0 || ok.LowWater <= 0 || ok.OwnRAM != 16e9 || !ok.Cache.Full {
		t.Errorf("row %+v, cache %+v", ok.Memory, ok.Cache)
	}
	if len(ok.Levels) != 2 || ok.Levels[0].Concurrency != 80 || ok.Value == nil || ok.Best == 0 {
		t.Fatalf("%d levels, value %v at %d", len(ok.Levels), ok.Value, ok.Best)
	}
	if r := ok.Levels[0].Report; r.OutputLow <= 0 || r.OutputHigh <= r.OutputTokS || !r.Valid || r.TTFTms == nil || r.TPOTms == nil {
		t.Errorf("report of the busiest level %+v", r)
	}
	for cause, c := range map[string]sglang.Config{
		"prefill_activation":      {"mem-fraction-static": 0.93},
		"graph_capture_oom":       {"mem-fraction-static": 0.94},
		"kv_pool_nonpositive":     {"mem-fraction-static": 0.7},
		"hicache_check_refused":   {"hicache-size": 56.0},
		"unsupported_combination": {"hicache-size": 24.0, "disable-radix-cache": true},
	} {
		if tr := launch(c); tr.State != trial.Failed || tr.Verdict.Cause != cause || tr.Verdict.Blames != trial.BlameYes || tr.Value != nil {
			t.Errorf("%s: %s / %s, want %s", c.Key(), tr.Verdict.Outcome, tr.Verdict.Cause, cause)
		}
	}
}

// Chance can be taken out, and put in.
func TestNoise(t *testing.T) {
	slow(t)
	s, _ := study(t, "llama8b")
	s.Workload.Concurrency = []int{16}
	j := judge(t, s)
	value := func(seed int64, n Noise) float64 {
		o, err := j.Value(t.Context(), s.Baseline, seed, n)
		if err != nil {
			t.Fatal(err)
		}
		return o.Value
	}
	if a, b := value(1, Noise{Free: true}), value(2, Noise{Free: true}); a != b {
		t.Errorf("without chance two seeds give %.2f and %.2f", a, b)
	}
	spread := func(n Noise) float64 {
		low, high := value(1, n), value(1, n)
		for seed := int64(2); seed <= 8; seed++ {
			v := value(seed, n)
			low, high = min(low, v), max(high, v)
		}
		return high/low - 1
	}
	if own, wide := spread(Noise{}), spread(Noise{Launch: 0.05}); own > 0.08 || wide < 0.08 {
		t.Errorf("eight launches differ by %.3f, with 5%% noise by %.3f", own, wide)
	}
}
