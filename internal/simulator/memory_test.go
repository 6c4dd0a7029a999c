package simulator

import (
	"math"
	"strings"
	"testing"

	"sgtune/sglang"
)

func sized(t *testing.T, flags ...string) *launch {
	t.Helper()
	a, err := ParseArgs(append([]string{"--model-path", "m", "--tp-size", "8"}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.launch()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The founding facts, as literals.
func TestFoundingMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		flags  string
		tokens int
		free   float64 // after graph capture, as observed; 0 = not observed
		host   int
	}{
		{"0.85 bf16", "--mem-fraction-static 0.85", 116171, 0, 0},
		{"0.88 bf16 hicache 48", "--mem-fraction-static 0.88 --enable-hierarchical-cache --hicache-size 48", 159277, 5.47, 683061},
		{"0.90 fp8", "--mem-fraction-static 0.90 --kv-cache-dtype fp8_e4m3", 376029, 3.52, 0},
		{"0.93 bf16", "--mem-fraction-static 0.93", 231120, 0.82, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sized(t, strings.Fields(c.flags)...).b
			if b.Tokens != c.tokens || b.HostTokens != c.host {
				t.Errorf("tokens %d, host %d; want %d, %d", b.Tokens, b.HostTokens, c.tokens, c.host)
			}
			if c.free > 0 && math.Abs(b.AfterGraphGiB-c.free) > 0.15 {
				t.Errorf("free after graphs %.3f, want %.2f within 0.15", b.AfterGraphGiB, c.free)
			}
			if b.startFailure != nil {
				t.Errorf("does not start: %v", b.startFailure)
			}
		})
	}
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, flags, cause, text string
		phase                    sglang.Phase
	}{
		{"fraction below the weights", "--mem-fraction-static 0.75", "kv_pool_nonpositive", "Raise --mem-fraction-static above 0.770 (minimum viable", sglang.PhaseKVPool},
		{"no room for graphs", "--mem-fraction-static 0.945", "graph_capture_oom", "Capture cuda graph failed: CUDA out of memory", sglang.PhaseGraphCapture},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := sized(t, strings.Fields(c.flags)...).b.startFailure
			if f == nil || f.Cause != c.cause || f.Phase != c.phase || !strings.Contains(f.Text, c.text) {
				t.Errorf("failure %+v; want %s in %s: %s", f, c.cause, c.phase, c.text)
			}
		})
	}
	if f := sized(t, "--mem-fraction-static", "0.945", "--cuda-graph-max-bs-decode", "64").b.startFailure; f != nil {
		t.Errorf("smaller graphs leave room, but: %v", f)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := sized(t, "--mem-fraction-static", "0.85").b
	if b.MaxRunning != 2048 || b.GraphMax != 512 || b.Chunk != 8192 || b.contextLen != 262144 {
		t.Errorf("defaults: running %d graphs %d chunk %d context %d", b.MaxRunning, b.GraphMax, b.Chunk, b.contextLen)
	}
	small := sized(t, "--mem-fraction-static", "0.85", "--max-running-requests", "64").b
	if small.GraphMax != 64 || small.AfterGraphGiB-b.AfterGraphGiB < 4 {
		t.Errorf("64 requests: graphs up to %d, %.2f GiB more free; want 64 and more than 4", small.GraphMax, small.AfterGraphGiB-b.AfterGraphGiB)
	}
	clamped := sized(t, "--mem-fraction-static", "0.85", "--max-total-tokens", "150k", "--max-running-requests", "100000").b
	if clamped.Tokens != 116171 || len(clamped.Clamped) != 2 {
		t.Errorf("clamps: tokens %d, lines %q", clamped.Tokens, clamped.Clamped)
	}
}

// hicache 48 GB a rank passes with 440 GB available, 56 and 300 do not.
func TestHostRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gb   string
		want string
	}{{"48", ""}, {"56", "Requesting 56.00 GB but only have 51.66 GB free"}, {"300", "Requesting 300.00 GB but only have 51.66 GB free"}} {
		l := sized(t, "--mem-fraction-static", "0.88", "--enable-hierarchical-cache", "--hicache-size", c.gb)
		f := l.d.hostRefusal(&l.s, &l.b, 440e9-16e9)
		if (f == nil) != (c.want == "") || f != nil && !strings.Contains(f.Text, c.want) {
			t.Errorf("%s GB: %v, want %q", c.gb, f, c.want)
		}
	}
}

func TestGraphSizes(t *testing.T) {
	t.Parallel()
	got := graphSizes(512)
	if n := len(got); n != 52 || got[n-1] != 512 {
		t.Errorf("%d sizes up to %d", n, got[n-1])
	}
	if got := graphSizes(10); got[len(got)-1] != 10 {
		t.Errorf("sizes %v do not end at the limit", got)
	}
}
