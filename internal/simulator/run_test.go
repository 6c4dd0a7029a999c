package simulator

import (
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/sglang"
)

func mustRun(t *testing.T, cfg sglang.Config, w Workload, seed int64, o Options) Result {
	t.Helper()
	r, err := Run(sglang.Merge(sglang.Config{"mem-fraction-static": 0.85}, cfg), w, seed, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func within(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

var fp8 = sglang.Config{"mem-fraction-static": 0.90, "kv-cache-dtype": "fp8_e4m3"}

// The founding workload lies inside the observed bands, and what runs at once is
// tokens / mean resident length (input + output/2).
func TestFoundingBands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		cfg       sglang.Config
		low, high float64
	}{{"0.85 bf16", nil, 600, 850}, {"0.90 fp8", fp8, 1300, 1450}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(3) {
				r := mustRun(t, c.cfg, Founding(1500), seed, Options{SettleS: 300, MeasureS: 600})
				if r.Failure != nil || r.OutputTokS < c.low || r.OutputTokS > c.high {
					t.Errorf("seed %d: %.0f tok/s, want %.0f to %.0f (failure %v)", seed, r.OutputTokS, c.low, c.high, r.Failure)
				}
				if want := float64(r.Memory.Tokens) / (1096 + 1500); !within(r.MeanRunning, want, 0.05) {
					t.Errorf("seed %d: %.1f running, want %.1f within 5%%", seed, r.MeanRunning, want)
				}
			}
		})
	}
}

func TestRunningIsClientsWhenTheyFit(t *testing.T) {
	t.Parallel()
	r := mustRun(t, nil, Unique(20, 400, 1096, 600, 0.3, 1), 1, Options{})
	if !within(r.MeanRunning, 20, 0.05) || r.Retracted != 0 {
		t.Errorf("%.1f running, %d retracted; want 20 and 0", r.MeanRunning, r.Retracted)
	}
	r = mustRun(t, nil, Unique(200, 3000, 1000, 800, 0.25, 1), 1, Options{SettleS: 200, MeasureS: 600})
	if want := float64(r.Memory.Tokens) / r.MeanResident; !within(r.MeanRunning, want, 0.05) {
		t.Errorf("%.1f running, tokens / mean resident length is %.1f", r.MeanRunning, want)
	}
}

func TestHicache(t *testing.T) {
	t.Parallel()
	on := sglang.Config{"hicache-size": 48.0}
	o := Options{SettleS: 300, MeasureS: 300}
	gain := func(w Workload) (float64, Result) {
		a, b := 0.0, 0.0
		var last Result
		for seed := range int64(3) {
			a += mustRun(t, nil, w, seed, o).OutputTokS
			last = mustRun(t, on, w, seed, o)
			b += last.OutputTokS
		}
		return b/a - 1, last
	}
	if g, _ := gain(Unique(100, 2000, 2000, 300, 0.3, 1)); math.Abs(g) > 0.015 {
		t.Errorf("unique prompts: gain %.3f, want none", g)
	}
	if g, r := gain(Shared(40, 4000, 100, 4096, 256, 128, 1)); g < 0.10 || r.HostHitTokens == 0 {
		t.Errorf("working set between device and host pool: gain %.3f (host tokens %d), want above 0.10", g, r.HostHitTokens)
	}
	if g, _ := gain(Shared(40, 4000, 12, 4096, 256, 128, 1)); math.Abs(g) > 0.015 {
		t.Errorf("working set fits the device: gain %.3f, want none", g)
	}
}

func TestConservativeness(t *testing.T) {
	t.Parallel()
	o := Options{SettleS: 300, MeasureS: 600}
	low := mustRun(t, sglang.Config{"schedule-conservativeness": 0.3}, Founding(1500), 1, o)
	one := mustRun(t, nil, Founding(1500), 1, o)
	high := mustRun(t, sglang.Config{"schedule-conservativeness": 1.3}, Founding(1500), 1, o)
	if low.Retracted < 30 || one.Retracted > low.Retracted/5 || high.Retracted > one.Retracted {
		t.Errorf("retracted %d at 0.3, %d at 1.0, %d at 1.3", low.Retracted, one.Retracted, high.Retracted)
	}
	if low.OutputTokS >= one.OutputTokS || high.OutputTokS >= one.OutputTokS {
		t.Errorf("tok/s %.0f at 0.3, %.0f at 1.0, %.0f at 1.3: the middle should win", low.OutputTokS, one.OutputTokS, high.OutputTokS)
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	var last Result
	for i, chunk := range []float64{2048, 4096, 8192, 16384} {
		r := mustRun(t, sglang.Config{"chunked-prefill-size": chunk}, Unique(40, 400, 18000, 300, 0.1, 1), 1, Options{})
		if i > 0 && (r.LowWaterGiB >= last.LowWaterGiB-0.1 || r.MeanStall <= 1.2*last.MeanStall || r.OutputTokS < last.OutputTokS) {
			t.Errorf("chunk %.0f: low water %.2f after %.2f GiB, stall %.2f after %.2f s, %.0f after %.0f tok/s",
				chunk, r.LowWaterGiB, last.LowWaterGiB, r.MeanStall, last.MeanStall, r.OutputTokS, last.OutputTokS)
		}
		last = r
	}
}

// 0.93 starts and dies in prefill under load; 0.91 lives; smaller chunks allow more.
func TestPrefillOOM(t *testing.T) {
	t.Parallel()
	long := Unique(160, 800, 8192, 600, 0.2, 1)
	for _, c := range []struct {
		name  string
		cfg   sglang.Config
		lives bool
	}{
		{"0.93", sglang.Config{"mem-fraction-static": 0.93}, false},
		{"0.92", sglang.Config{"mem-fraction-static": 0.92}, false},
		{"0.91", sglang.Config{"mem-fraction-static": 0.91}, true},
		{"0.90 with hicache", sglang.Config{"mem-fraction-static": 0.90, "hicache-size": 48.0}, true},
		{"0.92, chunk 2048", sglang.Config{"mem-fraction-static": 0.92, "chunked-prefill-size": 2048.0}, true},
		{"0.93, fewer requests", sglang.Config{"mem-fraction-static": 0.93, "max-running-requests": 64.0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(5) {
				r := mustRun(t, c.cfg, long, seed, Options{Canary: true, SettleS: 300, MeasureS: 900})
				if (r.Failure == nil) != c.lives {
					t.Errorf("seed %d: failure %v, low water %.2f GiB", seed, r.Failure, r.LowWaterGiB)
				}
				if r.Failure != nil && (r.Failure.Phase != sglang.PhasePrefill || r.Failure.At < r.ReadyS || r.Memory.AfterGraphGiB <= 0) {
					t.Errorf("seed %d: died in %s at %.0f s, ready at %.0f s", seed, r.Failure.Phase, r.Failure.At, r.ReadyS)
				}
			}
		})
	}
	r := mustRun(t, sglang.Config{"mem-fraction-static": 0.93}, Founding(400), 1, Options{SettleS: 300, MeasureS: 3000})
	if r.Failure == nil || r.Failure.Cause != "prefill_activation" {
		t.Errorf("founding workload at 0.93: %v, want an OOM in prefill", r.Failure)
	}
}

func TestRunDeterministic(t *testing.T) {
	t.Parallel()
	w := Unique(50, 500, 1500, 200, 0.5, 1)
	a, b, c := mustRun(t, nil, w, 7, Options{}), mustRun(t, nil, w, 7, Options{}), mustRun(t, nil, w, 8, Options{})
	if a != b {
		t.Errorf("same seed, different results:\n%+v\n%+v", a, b)
	}
	if a.OutputTokS == c.OutputTokS || !within(a.OutputTokS, c.OutputTokS, 0.06) {
		t.Errorf("other seed: %.2f and %.2f tok/s; want a little noise", a.OutputTokS, c.OutputTokS)
	}
}

func TestRunArguments(t *testing.T) {
	t.Parallel()
	w := Unique(1, 1, 10, 10, 0, 1)
	if _, err := Run(sglang.Config{"hicache-size": 48.5}, w, 1, Options{}); err == nil || !strings.Contains(err.Error(), "invalid int value: '48.5'") {
		t.Errorf("hicache-size 48.5: %v", err)
	}
	if _, err := Run(sglang.Config{"hicache-size": 48.0, "disable-radix-cache": true}, w, 1, Options{}); err == nil || !strings.Contains(err.Error(), "mutually exclusive") {
		t.Errorf("conflict: %v", err)
	}
	if _, err := Run(nil, Workload{}, 1, Options{}); err == nil {
		t.Error("an empty workload must be refused")
	}
	r, err := Run(sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 56.0}, w, 1, Options{})
	if err != nil || r.Failure == nil || r.Failure.Cause != "hicache_check_refused" {
		t.Errorf("hicache 56: %v %v", r.Failure, err)
	}
}

func TestMooncake(t *testing.T) {
	t.Parallel()
	w, err := ReadMooncake(strings.NewReader(`{"timestamp":0,"input_length":1100,"output_length":80,"hash_ids":[0,1,2]}
{"timestamp":1,"input_length":1600,"output_length":80,"hash_ids":[0,1,3,4]}`), 2, 512, 8)
	if err != nil {
		t.Fatal(err)
	}
	a, b, again := w.prompt(0, 0, 1), w.prompt(1, 0, 1), w.prompt(0, 1, 1)
	if a.Len != 137 || b.Len != 200 || len(a.Blocks) != 2 {
		t.Fatalf("lengths %d %d, blocks %d", a.Len, b.Len, len(a.Blocks))
	}
	if a.Blocks[1] != b.Blocks[1] || a.Tail == b.Tail || again.Blocks[0] == a.Blocks[0] {
		t.Error("equal leading hash ids must share blocks, and only within a pass")
	}
	if _, err := ReadMooncake(strings.NewReader("{"), 1, 512, 1); err == nil || !strings.Contains(err.Error(), "row 1") {
		t.Errorf("bad row: %v", err)
	}
}

// A level of 120 simulated seconds costs well under 100 ms of CPU; the race detector makes it a few times as much.
func TestRunIsFast(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const rusageThread, n = 1, 5
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(rusageThread, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := cpu()
	for seed := range int64(n) {
		mustRun(t, fp8, Founding(400), seed, Options{SettleS: 0.1, MeasureS: 120})
	}
	if per := (cpu() - start) / n; per > 400*time.Millisecond {
		t.Errorf("%v of CPU a level, want less than 400 ms", per)
	}
}

func BenchmarkLevel120s(b *testing.B) {
	cfg := sglang.Merge(sglang.Config{}, fp8)
	w := Founding(400)
	for b.Loop() {
		if _, err := Run(cfg, w, 1, Options{SettleS: 0.1, MeasureS: 120}); err != nil {
			b.Fatal(err)
		}
	}
}
