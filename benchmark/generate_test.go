package benchmark_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
)

func generate(t *testing.T, o benchmark.GenerateOptions) *benchmark.Workload {
	t.Helper()
	w, err := benchmark.Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The rule of sglang/benchmark/datasets/common.py, compute_random_lens: whole numbers from max(int(L*ratio), 1) to L, both
// included, each as likely.
func TestGenerateDrawsLengthsLikeSGLang(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		full      int
		ratio     float64
		low, high int
	}{
		{12, 0, 1, 12},
		{12, 0.5, 6, 12},
		{12, 0.66, 7, 12}, // 7.92
		{12, 0.05, 1, 12}, // 0.6
		{12, 1, 12, 12},
		{1, 0, 1, 1},
		{1, 1, 1, 1},
	} {
		t.Run(fmt.Sprint(c.full, c.ratio), func(t *testing.T) {
			t.Parallel()
			o := benchmark.DefaultGenerateOptions("random")
			o.Requests, o.RandomInputLen, o.RandomOutputLen, o.RandomRangeRatio = 6000, c.full, 2*c.full, c.ratio
			input, different := map[int]int{}, 0
			for _, r := range generate(t, o).All() {
				input[r.InputTokens]++
				if r.OutputTokens != 2*r.InputTokens {
					different++
				}
				if r.OutputTokens < max(1, int(2*float64(c.full)*c.ratio)) || r.OutputTokens > 2*c.full {
					t.Fatalf("output %d", r.OutputTokens)
				}
			}
			each := 6000 / float64(c.high-c.low+1)
			for n := range 2 * c.full {
				want := 0.0
				if n >= c.low && n <= c.high {
					want = each
				}
				if got := float64(input[n]); math.Abs(got-want) > 5*math.Sqrt(want) {
					t.Errorf("%d tokens: %g times, want %.0f", n, got, want)
				}
			}
			if c.low < c.high && different == 0 {
				t.Error("input and output go together")
			}
		})
	}
}

func TestGenerateRandomSharesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"random", "random-ids"} {
		o := benchmark.DefaultGenerateOptions(name)
		o.Requests = 0
		w := generate(t, o)
		if w.Len() != 1000 || w.Format != name || w.BlockTokens != 0 || w.Reuse != 0 {
			t.Errorf("%s: %+v", name, w)
		}
		feed := benchmark.NewFeed(w, 0, w.Len(), "s", testPalette())
		first := map[int]int{}
		for range w.Len() {
			p := feed.Next()
			if len(p.IDs) != p.Row.InputTokens || p.Row.InputTokens < 1 || p.Row.InputTokens > 1024 || p.Follow != nil {
				t.Fatalf("%+v", p.Row)
			}
			first[p.IDs[0]]++
		}
		if len(first) < 550 { // of 1000 tokens 632 are expected
			t.Errorf("%s: prompts begin with only %d tokens", name, len(first))
		}
	}
}

func TestGenerateIsTheSameForASeed(t *testing.T) {
	t.Parallel()
	for _, name := range benchmark.GeneratedNames() {
		o := benchmark.DefaultGenerateOptions(name)
		o.GSPNumGroups, o.GSPPromptsPerGroup, o.GSPSystemPromptLen = 5, 10, 60
		o.GSPRangeRatio, o.GSPGroupDistribution, o.GSPZipfAlpha = 0.5, "zipf", 1.1
		var sets [3][]benchmark.Row
		for i := range sets {
			o.Seed = uint64(i / 2)
			for _, r := range generate(t, o).Part(0, 50).All() {
				sets[i] = append(sets[i], r)
			}
		}
		if diff := cmp.Diff(sets[0], sets[1]); diff != "" {
			t.Errorf("%s: two sets of one seed differ:\n%s", name, diff)
		}
		if cmp.Equal(sets[0], sets[2]) {
			t.Errorf("%s: another seed gives the same set", name)
		}
	}
}

func TestGenerateSharedPrefix(t *testing.T) {
	t.Parallel()
	o := benchmark.DefaultGenerateOptions("generated-shared-prefix")
	w := generate(t, o)
	perGroup, ordered := map[int64]int{}, true
	last := int64(-1)
	for i, r := range w.All() {
		if r.InputTokens != 2048+128 || r.OutputTokens != 256 || len(r.HashIDs) != 1 || r.Number != i || r.Session != "" {
			t.Fatalf("row %d: %+v", i, r)
		}
		perGroup[r.HashIDs[0]]++
		ordered = ordered && r.HashIDs[0] >= last
		last = r.HashIDs[0]
	}
	if len(perGroup) != 64 || w.Len() != 64*16 || w.BlockTokens != 2048 {
		t.Errorf("%d groups, %d rows, block %d", len(perGroup), w.Len(), w.BlockTokens)
	}
	for g, n := range perGroup {
		if n != 16 {
			t.Errorf("group %d has %d prompts", g, n)
		}
	}
	if want := float64((1024-64)*2048) / (1024 * 2176); math.Abs(w.Reuse-want) > 1e-9 {
		t.Errorf("reuse %g, want %g", w.Reuse, want)
	}
	if ordered {
		t.Error("rows are in order, though nobody asked for it")
	}
	o.GSPOrdered = true
	for i, r := range generate(t, o).All() {
		if r.HashIDs[0] != int64(i/16) {
			t.Fatalf("ordered: row %d is of group %d", i, r.HashIDs[0])
		}
	}
}

// All lengths vary: those of the system prompts by group, the others by prompt. What a group shares is exactly its system prompt.
func TestGenerateSharedPrefixOfManyLengths(t *testing.T) {
	t.Parallel()
	o := benchmark.DefaultGenerateOptions("generated-shared-prefix")
	o.GSPNumGroups, o.GSPPromptsPerGroup, o.GSPRangeRatio = 8, 12, 0.25
	o.GSPSystemPromptLen, o.GSPQuestionLen, o.GSPOutputLen = 200, 40, 20
	w := generate(t, o)
	feed := benchmark.NewFeed(w, 0, w.Len(), "s", testPalette())
	var prompts []benchmark.Prompt
	system := map[int64]int{}
	for range w.Len() {
		p := feed.Next()
		prompts = append(prompts, p)
		s := len(p.Row.HashIDs)
		if before, ok := system[p.Row.HashIDs[0]]; ok && before != s || s < 50 || s > 200 {
			t.Errorf("a system prompt of %d tokens, before %d", s, before)
		}
		system[p.Row.HashIDs[0]] = s
		if q := p.Row.InputTokens - s; q < 10 || q > 40 || p.OutputTokens < 5 || p.OutputTokens > 20 || len(p.IDs) != p.Row.InputTokens {
			t.Errorf("question %d, output %d, %d ids of %d", q, p.OutputTokens, len(p.IDs), p.Row.InputTokens)
		}
	}
	sizes := map[int]bool{}
	for _, s := range system {
		sizes[s] = true
	}
	if len(system) != 8 || len(sizes) < 5 {
		t.Errorf("%d groups of %d lengths", len(system), len(sizes))
	}
	for i, p := range prompts {
		for _, q := range prompts[:i] {
			want := 0
			if p.Row.HashIDs[0] == q.Row.HashIDs[0] {
				want = len(p.Row.HashIDs)
			}
			if got := commonPrefix(p.IDs, q.IDs); got < want || got > want+3 {
				t.Fatalf("rows %d and %d share %d tokens, want %d", q.Row.Number, p.Row.Number, got, want)
			}
		}
	}
}

func TestGenerateZipfGroups(t *testing.T) {
	t.Parallel()
	for _, alpha := range []float64{0.7, 1, 2} {
		o := benchmark.DefaultGenerateOptions("generated-shared-prefix")
		o.GSPNumGroups, o.GSPPromptsPerGroup, o.GSPGroupDistribution, o.GSPZipfAlpha = 10, 2000, "zipf", alpha
		got := make([]int, 10)
		w := generate(t, o)
		for _, r := range w.All() {
			got[r.HashIDs[0]]++
		}
		sum := 0.0
		for rank := 1; rank <= 10; rank++ {
			sum += 1 / math.Pow(float64(rank), alpha)
		}
		n := float64(w.Len())
		for g, have := range got {
			p := 1 / math.Pow(float64(g+1), alpha) / sum
			if off := math.Abs(float64(have) - n*p); off > 4.5*math.Sqrt(n*p*(1-p)) {
				t.Errorf("alpha %g: group %d has %d prompts, want %.0f", alpha, g, have, n*p)
			}
		}
	}
}

func TestGenerateSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		asked, turns int
	}{{"generated-shared-prefix", 3, 3}, {"sessions", 1, 4}, {"sessions", 2, 2}} {
		t.Run(fmt.Sprint(c.name, c.asked), func(t *testing.T) {
			t.Parallel()
			o := benchmark.DefaultGenerateOptions(c.name)
			o.GSPNumGroups, o.GSPPromptsPerGroup, o.GSPNumTurns = 3, 4, c.asked
			o.GSPSystemPromptLen, o.GSPQuestionLen, o.GSPOutputLen, o.GSPRangeRatio = 30, 8, 5, 0.5
			w := generate(t, o)
			if w.Len() != 3*4*c.turns || w.Format != c.name {
				t.Fatalf("%d rows", w.Len())
			}
			feed := benchmark.NewFeed(w, 0, w.Len(), "s", testPalette())
			requests := 0
			for range 3 * 4 {
				p := feed.Next()
				if p.Turn != 0 || p.Pass != 0 || len(p.Row.HashIDs) == 0 {
					t.Fatalf("%+v", p.Row)
				}
				for requests++; p.Follow != nil; requests++ {
					before := slices.Concat(p.IDs, []int{1, 2, 3})
					next, pause, ok := p.Follow(benchmark.Answer{IDs: []int{1, 2, 3}})
					fresh := len(next.IDs) - len(before)
					if !ok || pause != 0 || fresh < 4 || fresh > 8 || !slices.Equal(next.IDs[:len(before)], before) || next.OutputTokens != p.OutputTokens {
						t.Fatalf("turn %d: %v, pause %s, %d new ids", next.Turn, ok, pause, fresh)
					}
					p = next
				}
				if p.Turn != c.turns-1 {
					t.Errorf("a session of %d turns, want %d", p.Turn+1, c.turns)
				}
			}
			if requests != w.Len() || feed.Passes() != 1 {
				t.Errorf("%d requests of %d rows in %d passes", requests, w.Len(), feed.Passes())
			}
		})
	}
}

// Without system prompts nothing is shared, and nothing has a block.
func TestGenerateSharedPrefixOfNothing(t *testing.T) {
	t.Parallel()
	o := benchmark.DefaultGenerateOptions("generated-shared-prefix")
	o.GSPSystemPromptLen = 0
	w := generate(t, o)
	if r := w.Row(5); r.InputTokens != 128 || r.HashIDs != nil || w.Reuse != 0 {
		t.Errorf("%+v, reuse %g", r, w.Reuse)
	}
}

func TestGenerateRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*benchmark.GenerateOptions)
		want   string
	}{
		{"sharegpt", nil, "download; name the ShareGPT JSON file"},
		{"custom", nil, "--workload FILE"},
		{"openai", nil, "--workload FILE"},
		{"mooncake", nil, "download"},
		{"agentic-trace", nil, "--workload FILE"},
		{"longbench_v2", nil, "download"},
		{"speed-bench", nil, "download"},
		{"mmmu", nil, "images"},
		{"image", nil, "images"},
		{"randm", nil, "known are random, random-ids, generated-shared-prefix, sessions"},
		{"", nil, "known are"},
		{"random", func(o *benchmark.GenerateOptions) { o.RandomInputLen = 0 }, "--random-input-len 0"},
		{"random", func(o *benchmark.GenerateOptions) { o.RandomOutputLen = -1 }, "--random-output-len -1"},
		{"random", func(o *benchmark.GenerateOptions) { o.RandomRangeRatio = 1.5 }, "--random-range-ratio 1.5"},
		{"random-ids", func(o *benchmark.GenerateOptions) { o.RandomRangeRatio = math.NaN() }, "--random-range-ratio NaN"},
		{"random-ids", func(o *benchmark.GenerateOptions) { o.Requests = -5 }, "number of requests -5"},
		{"generated-shared-prefix", func(o *benchmark.GenerateOptions) { o.GSPNumGroups = 0 }, "--gsp-num-groups 0"},
		{"generated-shared-prefix", func(o *benchmark.GenerateOptions) { o.GSPPromptsPerGroup = 1 << 40 }, "--gsp-prompts-per-group"},
		{"generated-shared-prefix", func(o *benchmark.GenerateOptions) { o.GSPPromptsPerGroup = 1 << 20 }, "more than 10000000 requests"},
		{"generated-shared-prefix", func(o *benchmark.GenerateOptions) { o.GSPQuestionLen = 0 }, "--gsp-question-len 0"},
		{"generated-shared-prefix", func(o *benchmark.GenerateOptions) { o.GSPNumTurns = 0 }, "--gsp-num-turns 0"},
		{"generated-shared-prefix", func(o *benchmark.GenerateOptions) { o.GSPGroupDistribution = "normal" }, "uniform or zipf"},
		{"generated-shared-prefix", func(o *benchmark.GenerateOptions) { o.GSPGroupDistribution, o.GSPZipfAlpha = "zipf", 0 }, "--gsp-zipf-alpha 0"},
		{"sessions", func(o *benchmark.GenerateOptions) { o.GSPRangeRatio = -0.1 }, "--gsp-range-ratio -0.1"},
	} {
		o := benchmark.DefaultGenerateOptions(c.name)
		if c.change != nil {
			c.change(&o)
		}
		_, err := benchmark.Generate(o)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if known := c.name != "" && c.name != "randm"; benchmark.IsGenerated(c.name) != known {
			t.Errorf("IsGenerated(%q) = %v", c.name, !known)
		}
	}
}

// A million requests are not made before they are sent. Not parallel: it reads what the whole process allocates.
func TestGenerateIsCheap(t *testing.T) {
	o := benchmark.DefaultGenerateOptions("random-ids")
	o.Requests = 1_000_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := generate(t, o)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("a million requests take %d MB", used>>20)
	}
	if w.Len() != 1_000_000 || w.Row(999_999).Number != 999_999 {
		t.Errorf("%d rows, the last %+v", w.Len(), w.Row(999_999))
	}
}
