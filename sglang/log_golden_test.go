package sglang_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata/log")

// allFields makes cmp look at unexported fields, too.
var allFields = cmp.Exporter(func(reflect.Type) bool { return true })

// golden is what a log file comes to.
type golden struct {
	Kinds map[string]int
	Facts sglang.LogFacts
}

func readLog(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "log", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func digest(log []byte, chunk int) golden {
	r := sglang.NewReader()
	g := golden{Kinds: map[string]int{}}
	count := func(events []sglang.Event) {
		for _, ev := range events {
			g.Kinds[ev.Kind]++
		}
	}
	for len(log) > 0 {
		n := min(chunk, len(log))
		count(r.Feed(log[:n]))
		log = log[n:]
	}
	count(r.Close())
	g.Facts = r.Facts()
	return g
}

func TestLogGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/log/*.log")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %d logs (%v), want at least 4", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			g := digest(readLog(t, filepath.Base(file)), 4096)
			g.Facts.First, g.Facts.Last = nil, nil // an event of each kind: too much to review
			got, err := json.MarshalIndent(g, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := strings.TrimSuffix(file, ".log") + ".golden.json"
			if *update {
				if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)+"\n"); d != "" {
				t.Errorf("%s: golden -want +got (run with -update and review):\n%s", path, d)
			}
		})
	}
}

// Whatever the chunks, the same bytes say the same.
func TestReaderChunking(t *testing.T) {
	t.Parallel()
	log := readLog(t, "01-ok-mla-tp8-hicache.log")
	log = slices.Concat(log[:16<<10], log[len(log)-8<<10:])
	whole := digest(log, len(log))
	for _, chunk := range []int{1, 7, 100, 65536} {
		if d := cmp.Diff(whole, digest(log, chunk), allFields); d != "" {
			t.Errorf("chunks of %d bytes -whole +chunked:\n%s", chunk, d)
		}
	}
}

func TestFactsHealthyStart(t *testing.T) {
	t.Parallel()
	f := digest(readLog(t, "01-ok-mla-tp8-hicache.log"), 1<<20).Facts
	want := sglang.Observation{
		Fraction: 0.88, TP: 8, KVDtype: "torch.bfloat16", PageSize: 1, ChunkedPrefill: 8192, MaxRunning: 2048, ContextLen: 262144,
		BeforeLoadGiB: 94.44, AfterLoadGiB: 21.75, WeightsGiB: 72.69, KVGiB: 10.42, KVParts: 1, AfterPoolGiB: 11.31, GraphGiB: 1.9,
		AfterGraphGiB: 9.41, AvailableGiB: 9.23, Tokens: 159277, HostPoolTokens: 683061, HostPoolGB: 48,
	}
	if d := cmp.Diff(want, f.Memory); d != "" {
		t.Errorf("memory -want +got:\n%s", d)
	}
	if !f.Ready || f.Port != 30000 || f.Phase != sglang.PhaseDecode || len(f.Fatal) != 0 {
		t.Errorf("ready %v, port %d, phase %s, %d fatal; want a serving server", f.Ready, f.Port, f.Phase, len(f.Fatal))
	}
	if f.Lines != 218 || f.Bytes != 58509 || f.PeakGenTokS != 1795.07 || f.MaxRunning != 45 || f.Prefills != 9 || f.Decodes != 70 {
		t.Errorf("lines %d, bytes %d, peak %v, running %v, prefills %d, decodes %d", f.Lines, f.Bytes, f.PeakGenTokS, f.MaxRunning, f.Prefills, f.Decodes)
	}
	c, err := sglang.Calibrate(f.Memory)
	if err != nil {
		t.Fatal(err)
	}
	// The log's own host: 94.44 GiB before the load, 0.93 gives 231323 tokens there.
	if p := c.Predict(sglang.Config{"mem-fraction-static": 0.93}); !p.Tokens.Contains(231323) || p.Tokens.HalfWidth() > 231323*0.0015 {
		t.Errorf("prediction for 0.93: %+v, want 231323 inside", p.Tokens)
	}
}

func TestRealCPUServer(t *testing.T) {
	t.Parallel()
	f := digest(readLog(t, "sglang-cpu-0.5.23.log"), 1<<20).Facts
	if !f.Ready || f.Port != 31077 || f.Phase != sglang.PhaseShutdown || len(f.Fatal) != 0 {
		t.Errorf("ready %v, port %d, phase %s, fatal %v; want a clean life", f.Ready, f.Port, f.Phase, f.Fatal)
	}
	if m := f.Memory; m.Tokens != 81171 || m.MaxRunning != 8 || m.BeforeLoadGiB != 20.94 || m.AfterGraphGiB != 0 || m.Fraction != 0.02 {
		t.Errorf("memory %+v", m)
	}
	if c, err := sglang.Calibrate(f.Memory); err != nil {
		t.Error(err)
	} else if p := c.Predict(sglang.Config{"mem-fraction-static": 0.05}); p.HasFree || p.Tokens.Mid < 81171*2 {
		t.Errorf("prediction from a CPU log: %+v", p)
	}

	f = digest(readLog(t, "sglang-cpu-0.5.23-hicache.log"), 1<<20).Facts
	if len(f.Fatal) == 0 || f.Fatal[0].Kind != "no_accelerator" || f.Fatal[0].Phase != sglang.PhaseHostPool || f.Fatal[0].Words["where"] != "host_pool" {
		t.Errorf("hierarchical cache without a driver: first fatal %+v, want no_accelerator in host_pool", f.Fatal)
	}

	f = digest(readLog(t, "sglang-cpu-0.5.23-kv-nonpositive.log"), 1<<20).Facts
	if len(f.Fatal) == 0 || f.Fatal[0].Kind != "weights_leave_no_kv" || f.Fatal[0].Phase != sglang.PhaseKVPool || f.Fatal[0].Values["lowest_fraction"] != 0.042 {
		t.Errorf("fraction below the weights: first fatal %+v, want weights_leave_no_kv in kv_pool, lowest 0.042", f.Fatal)
	}
}
