package benchmark_test

import (
	"math"
	"testing"

	"sgtune/benchmark"
)

// prefixCache is a cache without end that holds every prompt token by token, like a server's radix tree
// with pages of one token: it knows the hash of each prefix it has seen.
type prefixCache map[uint64]struct{}

// hits is how many leading tokens are held.
func (c prefixCache) hits(ids []int) int {
	h := fnvStart
	for i, id := range ids {
		h = (h ^ uint64(id)) * fnvPrime
		if _, ok := c[h]; !ok {
			return i
		}
	}
	return len(ids)
}

func (c prefixCache) add(ids []int) {
	h := fnvStart
	for _, id := range ids {
		h = (h ^ uint64(id)) * fnvPrime
		c[h] = struct{}{}
	}
}

// FNV-1a over whole ids.
const (
	fnvStart = uint64(14695981039346656037)
	fnvPrime = 1099511628211
)

// What a cache without end finds in the prompts is what the hash ids say: nothing is missing, and nothing but chance
// (the first token of two blocks agrees once in 1,000) is added. The rows are an excerpt of a real Mooncake trace.
func TestPromptsHitTheCacheAsTheTraceSays(t *testing.T) {
	t.Parallel()
	all := read(t, "../examples/quickstart.jsonl")
	w := all.Part(0, 350)
	for _, salt := range []string{"one", "two"} {
		cache := prefixCache{}
		feed := benchmark.NewFeed(w, 0, w.Len(), salt, testPalette())
		seen := map[int64]bool{}
		hits, tokens := 0, 0
		for range w.Len() {
			p := feed.Next()
			leading := 0
			for leading < len(p.Row.HashIDs) && seen[p.Row.HashIDs[leading]] {
				leading++
			}
			for _, id := range p.Row.HashIDs {
				seen[id] = true
			}
			want := min(leading*w.BlockTokens, p.Row.InputTokens)
			got := cache.hits(p.IDs)
			cache.add(p.IDs)
			if got < want || got > want+4 {
				t.Fatalf("row %d: %d tokens are held, its ids say %d", p.Row.Number, got, want)
			}
			hits += got
			tokens += len(p.IDs)
		}
		if ratio := float64(hits) / float64(tokens); math.Abs(ratio-w.Reuse) > 0.001 {
			t.Errorf("salt %q: hit ratio %.4f, the trace says %.4f", salt, ratio, w.Reuse)
		}
		other := benchmark.NewFeed(w, 0, w.Len(), salt+"'", testPalette())
		for range 10 {
			if pass := cache.hits(feed.Next().IDs); pass > 4 {
				t.Errorf("salt %q: %d tokens of the next pass are held", salt, pass)
			}
			if salted := cache.hits(other.Next().IDs); salted > 4 {
				t.Errorf("salt %q: %d tokens of another salt are held", salt, salted)
			}
		}
	}
}

// Wherever a block stands, its text is the same, in ids and in words; the same row gives the same prompt from any range.
func TestPromptsDoNotDependOnTheRange(t *testing.T) {
	t.Parallel()
	w := read(t, "../examples/quickstart.jsonl")
	for _, p := range []benchmark.Palette{testPalette(), benchmark.WordPalette("test")} {
		whole := benchmark.NewFeed(w, 0, 40, "s", p)
		for range 25 {
			whole.Next()
		}
		part := benchmark.NewFeed(w, 25, 40, "s", p)
		for range 15 {
			a, b := whole.Next(), part.Next()
			if a.Text != b.Text || commonPrefix(a.IDs, b.IDs) != len(a.IDs) || a.Row.Number != b.Row.Number {
				t.Fatalf("row %d differs from row %d", a.Row.Number, b.Row.Number)
			}
		}
	}
}
