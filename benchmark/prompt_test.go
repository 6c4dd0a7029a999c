package benchmark_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"

	"sgtune/benchmark"
)

// commonPrefix is how many leading tokens two prompts share.
func commonPrefix(a, b []int) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func TestFeedSharesExactlyWhatTheFileShares(t *testing.T) {
	t.Parallel()
	w := read(t, "../examples/quickstart.jsonl")
	w = w.Part(0, 300)
	feed := benchmark.NewFeed(w, 0, w.Len(), "s", testPalette())
	prompts := make([]benchmark.Prompt, w.Len())
	for i := range prompts {
		prompts[i] = feed.Next()
	}
	chance := 0
	for i, p := range prompts {
		if len(p.IDs) != p.Row.InputTokens || p.OutputTokens != p.Row.OutputTokens || p.Text != "" {
			t.Fatalf("row %d: %d ids, want %d", i, len(p.IDs), p.Row.InputTokens)
		}
		for _, q := range prompts[:i] {
			blocks := 0
			for blocks < min(len(p.Row.HashIDs), len(q.Row.HashIDs)) && p.Row.HashIDs[blocks] == q.Row.HashIDs[blocks] {
				blocks++
			}
			want := min(64*blocks, len(p.IDs), len(q.IDs))
			got := commonPrefix(p.IDs, q.IDs)
			if got < want || got > want+3 {
				t.Fatalf("rows %d and %d share %d tokens, their ids say %d", q.Row.Number, i, got, want)
			}
			chance += got - want
		}
	}
	// Two different blocks begin alike with chance 1/1000.
	if pairs := 300 * 299 / 2; chance > pairs/500 {
		t.Errorf("%d tokens shared by chance in %d pairs", chance, pairs)
	}
}

func TestFeedNeverRepeatsAText(t *testing.T) {
	t.Parallel()
	rows := lengths(40, 30, 5)
	texts := benchmark.NewWorkload([]benchmark.Row{{Number: 0, Text: "Name a colour.", OutputTokens: 3}, {Number: 1, Text: "Name a fruit.", OutputTokens: 3}}, 0)
	for _, c := range []struct {
		name    string
		w       *benchmark.Workload
		palette benchmark.Palette
		salts   []string
	}{
		{"ids", rows, testPalette(), []string{"", "a", "b", "canary"}},
		{"words", rows, benchmark.WordPalette("test"), []string{"", "a", "b", "canary"}},
		{"texts", texts, testPalette(), []string{"", "a", "b", "canary"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seen := map[string]string{}
			for _, salt := range c.salts {
				feed := benchmark.NewFeed(c.w, 0, c.w.Len(), salt, c.palette)
				for range 5 * c.w.Len() {
					p := feed.Next()
					key := fmt.Sprint(p.IDs, p.Text)
					where := fmt.Sprintf("salt %q pass %d row %d", salt, p.Pass, p.Row.Number)
					if earlier, ok := seen[key]; ok {
						t.Fatalf("%s repeats %s", where, earlier)
					}
					seen[key] = where
				}
				if feed.Passes() != 5 {
					t.Errorf("passes = %d, want 5", feed.Passes())
				}
			}
		})
	}
}

func TestFeedSendsATextAsItIsOnce(t *testing.T) {
	t.Parallel()
	w := benchmark.NewWorkload([]benchmark.Row{{Text: "Name a colour.", OutputTokens: 3}}, 0)
	feed := benchmark.NewFeed(w, 0, 1, "", testPalette())
	if p := feed.Next(); p.Text != "Name a colour." || p.IDs != nil {
		t.Errorf("first pass: %+v", p)
	}
	if p := feed.Next(); !strings.HasSuffix(p.Text, "\nName a colour.") || len(strings.Fields(p.Text)) != 8+3 {
		t.Errorf("second pass: %+v", p)
	}
}

func TestFeedTakesARangeInFileOrder(t *testing.T) {
	t.Parallel()
	w := lengths(10, 5, 5)
	for _, c := range []struct {
		from, to int
		want     []int
	}{{7, 10, []int{7, 8, 9, 7, 8}}, {-3, 2, []int{0, 1, 0, 1, 0}}, {9, 99, []int{9, 9, 9, 9, 9}}, {4, 4, []int{0, 1, 2, 3, 4}}} {
		feed := benchmark.NewFeed(w, c.from, c.to, "", testPalette())
		var got []int
		for range c.want {
			got = append(got, feed.Next().Row.Number)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("[%d, %d): %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestFeedFillsWhatIdsDoNotCover(t *testing.T) {
	t.Parallel()
	w := benchmark.NewWorkload([]benchmark.Row{
		{Number: 0, InputTokens: 20, OutputTokens: 1, HashIDs: []int64{1}},
		{Number: 1, InputTokens: 20, OutputTokens: 1, HashIDs: []int64{1}},
		{Number: 2, InputTokens: 5, OutputTokens: 1, HashIDs: []int64{1, 2, 3}},
	}, 8)
	feed := benchmark.NewFeed(w, 0, 3, "", testPalette())
	a, b, short := feed.Next().IDs, feed.Next().IDs, feed.Next().IDs
	if len(a) != 20 || len(b) != 20 || len(short) != 5 {
		t.Fatalf("lengths %d, %d, %d", len(a), len(b), len(short))
	}
	if n := commonPrefix(a, b); n < 8 || n > 9 {
		t.Errorf("two rows of one block share %d tokens, want its 8", n)
	}
	if commonPrefix(a, short) != 5 {
		t.Errorf("a cut block is not the start of the whole one")
	}
}

// The prompts of a salt are part of what makes two trials comparable, across versions of this program too.
func TestFeedIsTheSameForEver(t *testing.T) {
	t.Parallel()
	w := read(t, "testdata/mooncake.jsonl")
	h := fnv.New64a()
	feed := benchmark.NewFeed(w, 0, w.Len(), "salt", testPalette())
	for range 2 * w.Len() {
		fmt.Fprint(h, feed.Next().IDs)
	}
	if got := fmt.Sprintf("%x", h.Sum64()); got != "94e6238b15eb42e9" {
		t.Errorf("prompts changed: hash %s", got)
	}
}

func TestFeedIsSafeForManyClients(t *testing.T) {
	t.Parallel()
	feed := benchmark.NewFeed(lengths(7, 20, 5), 0, 7, "", testPalette())
	var mu sync.Mutex
	count := map[string]int{}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 70 {
				p := feed.Next()
				mu.Lock()
				count[fmt.Sprint(p.Pass, p.Row.Number)]++
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if len(count) != 8*70 {
		t.Errorf("%d different prompts of %d", len(count), 8*70)
	}
}
