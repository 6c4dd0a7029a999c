package sglang_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// replayed is what `sgtune replay --out` wrote, as far as these tests look.
type replayed struct {
	Requests struct {
		Sent, OK int
		Failed   map[string]int
	}
	Tokens struct {
		Wanted, Got, Prompt, Cached int64
		PromptWanted                int64 `json:"prompt_wanted"`
	}
	OutputTokS float64                     `json:"output_tok_s"`
	Hit        float64                     `json:"cache_hit_ratio"`
	TTFT       struct{ P50, Mean float64 } `json:"ttft_ms"`
	TPOT       struct{ P50, Mean float64 } `json:"tpot_ms"`
	E2E        struct{ P50, Mean float64 } `json:"e2e_ms"`
	CacheState string                      `json:"cache_state"`
	Workload   struct {
		Prefix struct {
			Ratio float64 `json:"prefix_hit_token_ratio"`
		} `json:"prefix"`
	} `json:"workload"`
	Valid   bool
	Invalid string
}

// replay runs the program against a live server.
func replay(t *testing.T, bin string, s *live, args ...string) replayed {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	stdout, stderr, code := sgtune(t, bin, append([]string{"replay", "--url", s.url(), "--out", file}, args...)...)
	if code != 0 {
		t.Fatalf("replay: exit %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r replayed
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	t.Logf("%s", stdout)
	return r
}

// TestReplay replays against one real server: counts, cache hits, conversations, and the figures of SGLang's own
// benchmark beside ours.
func TestReplay(t *testing.T) {
	dir, bin := engine(t), program(t)
	s := serve(t, dir, "--mem-fraction-static", "0.14", "--max-running-requests", "8", "--enable-metrics", "--enable-cache-report")
	s.until(t, "ready to roll")
	for _, endpoint := range []string{"generate", "completions", "chat"} {
		t.Run("counts on "+endpoint, func(t *testing.T) {
			before := counters(t, s)
			r := replay(t, bin, s, "--endpoint", endpoint, "--workload", "random-ids", "--random-input-len", "48", "--random-output-len", "16",
				"--random-range-ratio", "0.5", "--concurrency", "4", "--requests", "24", "--warmup", "0", "--seed", "7")
			after := counters(t, s)
			if r.Requests.OK != 24 || r.Tokens.Got != r.Tokens.Wanted {
				t.Errorf("%+v, %d of %d tokens", r.Requests, r.Tokens.Got, r.Tokens.Wanted)
			}
			for name, ours := range map[string]int64{"sglang:generation_tokens_total": r.Tokens.Got, "sglang:prompt_tokens_total": r.Tokens.Prompt} {
				if theirs := int64(after[name] - before[name]); theirs != ours {
					t.Errorf("%s rose by %d, the report says %d", name, theirs, ours)
				}
			}
			if endpoint == "generate" && r.Tokens.Prompt != r.Tokens.PromptWanted {
				t.Errorf("%d prompt tokens, %d were wanted: ids give exact lengths", r.Tokens.Prompt, r.Tokens.PromptWanted)
			}
		})
	}
	t.Run("cache hits of the Mooncake excerpt", func(t *testing.T) {
		r := replay(t, bin, s, "--endpoint", "generate", "--workload", head(t, "../../examples/quickstart.jsonl", 20), "--concurrency", "1", "--flush", "--warmup", "0", "--output-tokens", "4")
		floor := r.Workload.Prefix.Ratio
		if math.Abs(r.Hit-floor) > 0.02 || floor < 0.01 {
			t.Errorf("cache hit ratio %.4f, the trace's own is %.4f", r.Hit, floor)
		}
		if r.Tokens.Prompt != r.Tokens.PromptWanted || r.CacheState != "flushed" {
			t.Errorf("%+v, cache %s", r.Tokens, r.CacheState)
		}
	})
	t.Run("conversations hit their own history", func(t *testing.T) {
		r := replay(t, bin, s, "--endpoint", "chat", "--workload", conversations(t), "--concurrency", "2", "--flush", "--warmup", "0", "--output-tokens", "8")
		if r.Requests.OK != 12 || r.Tokens.Cached == 0 {
			t.Errorf("%+v: 4 conversations of 3 turns; %d tokens came from the cache", r.Requests, r.Tokens.Cached)
		}
	})
	t.Run("beside SGLang's own benchmark", func(t *testing.T) { beside(t, dir, bin, s) })
}

// beside runs SGLang's benchmark and ours three times in turn with the same small load.
func beside(t *testing.T, dir, bin string, s *live) {
	const requests, clients, input, output = 24, 4, 64, 24
	var theirs, ours [][4]float64
	for i := range 3 {
		r := replay(t, bin, s, "--endpoint", "generate", "--workload", "random-ids", "--random-input-len", strconv.Itoa(input), "--random-output-len", strconv.Itoa(output),
			"--random-range-ratio", "1", "--concurrency", strconv.Itoa(clients), "--requests", strconv.Itoa(requests), "--warmup", "0", "--seed", strconv.Itoa(i))
		ours = append(ours, [4]float64{r.OutputTokS, r.TTFT.Mean, r.TPOT.Mean, r.E2E.Mean})
		theirs = append(theirs, benchServing(t, dir, s, i, requests, clients, input, output))
	}
	for k, name := range []string{"output tok/s", "TTFT ms", "TPOT ms", "E2E ms"} {
		a, b, noise := column(theirs, k), column(ours, k), 0.0
		for _, v := range append(slices.Clone(a), b...) {
			noise = math.Max(noise, math.Max(math.Abs(v/median(a)-1)*boolf(slices.Contains(a, v)), math.Abs(v/median(b)-1)*boolf(slices.Contains(b, v))))
		}
		off := median(b)/median(a) - 1
		t.Logf("%-12s SGLang's %7.1f  ours %7.1f  %+5.1f%%  (runs of one tool differ by up to %.1f%%)", name, median(a), median(b), 100*off, 100*noise)
		if math.Abs(off) > math.Max(0.15, 2*noise) {
			t.Errorf("%s: SGLang's %v, ours %v", name, a, b)
		}
	}
}

func boolf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func column(rows [][4]float64, k int) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r[k])
	}
	return out
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// benchServing runs the installed SGLang's own benchmark and reads its last line of results.
func benchServing(t *testing.T, dir string, s *live, seed, requests, clients, input, output int) [4]float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bench.jsonl")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	model := filepath.Join(dir, "model")
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "venv/bin/python"), "-m", "sglang.benchmark.serving", "--backend", "sglang", "--base-url", s.url(), "--model", model, "--tokenizer", model,
		"--dataset-name", "random-ids", "--random-input-len", strconv.Itoa(input), "--random-output-len", strconv.Itoa(output), "--random-range-ratio", "1", "--tokenize-prompt",
		"--num-prompts", strconv.Itoa(requests), "--max-concurrency", strconv.Itoa(clients), "--warmup-requests", "0", "--disable-tqdm", "--seed", strconv.Itoa(seed), "--output-file", file)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "stub"), "SGLANG_USE_CPU_ENGINE=1", "HF_HUB_OFFLINE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sglang.benchmark.serving: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var r struct {
		Throughput float64 `json:"output_throughput"`
		TTFT       float64 `json:"mean_ttft_ms"`
		TPOT       float64 `json:"mean_tpot_ms"`
		E2E        float64 `json:"mean_e2e_latency_ms"`
	}
	last := strings.NewReplacer("-Infinity", "null", "Infinity", "null", "NaN", "null").Replace(lines[len(lines)-1]) // Python's JSON
	if err := json.Unmarshal([]byte(last), &r); err != nil {
		t.Fatal(err)
	}
	return [4]float64{r.Throughput, r.TTFT, r.TPOT, r.E2E}
}

// counters are the server's own counts, summed over labels.
func counters(t *testing.T, s *live) map[string]float64 {
	t.Helper()
	resp, err := http.Get(s.url() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	sums := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, rest, ok := strings.Cut(lines.Text(), "{")
		if _, value, found := strings.Cut(rest, "} "); ok && found {
			v, err := strconv.ParseFloat(value, 64)
			if err == nil {
				sums[name] += v
			}
		}
	}
	return sums
}

// head copies the first rows of a workload.
func head(t *testing.T, path string, rows int) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfterN(string(text), "\n", rows+1)
	file := filepath.Join(t.TempDir(), "head.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(lines[:rows], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// conversations are four of three turns each.
func conversations(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 4 {
		fmt.Fprintf(&b, `{"id": %d, "conversations": [`, i)
		for turn := range 3 {
			fmt.Fprintf(&b, `{"role": "user", "content": "Conversation %d, question %d: %s"}, {"role": "assistant", "content": "thrown away"}`, i, turn, strings.Repeat("tell me about the weather ", 8))
			if turn < 2 {
				b.WriteString(", ")
			}
		}
		b.WriteString("]}\n")
	}
	file := filepath.Join(t.TempDir(), "conversations.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
