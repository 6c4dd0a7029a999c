package benchmark_test

import (
	"fmt"
	"hash/fnv"
	"testing"

	"sgtune/benchmark"
)

// Prompts of a salt, and the rows of a seed, are part of what makes two reports comparable: they stay the same in every
// version of this program. (TestFeedIsTheSameForEver is about ids.)
func TestPromptsAreTheSameForEver(t *testing.T) {
	t.Parallel()
	texts := benchmark.NewWorkload([]benchmark.Row{{Text: "Name a colour.", OutputTokens: 3}}, 0)
	trace := read(t, "testdata/mooncake.jsonl")
	for _, c := range []struct {
		name string
		feed benchmark.Feed
		want string
	}{
		{"words", benchmark.NewFeed(trace, 0, trace.Len(), "salt", benchmark.WordPalette("")), "3af7062193efdc4c"},
		{"texts", benchmark.NewFeed(texts, 0, 1, "salt", testPalette()), "ba098bebb1aef467"},
		{"chat", benchmark.NewFeedWith(trace, benchmark.FeedOptions{Salt: "salt", Endpoint: benchmark.EndpointChat, Palette: benchmark.WordPalette("")}), "dc8403b92407ccd6"},
		{"conversation", benchmark.NewFeed(conversation(), 0, 1, "salt", testPalette()), "99263e000cb62053"},
	} {
		h := fnv.New64a()
		for range 10 {
			p := c.feed.Next()
			fmt.Fprintf(h, "%s%s", p.Text, p.Messages)
		}
		if got := fmt.Sprintf("%x", h.Sum64()); got != c.want {
			t.Errorf("%s changed: hash %s", c.name, got)
		}
	}
}

func TestGenerateIsTheSameForEver(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"random": "6e7b01dbe8326d3a", "random-ids": "6e7b01dbe8326d3a", "generated-shared-prefix": "8a8042b1085bf48c", "sessions": "44ef2b01767d61e6",
	} {
		o := benchmark.DefaultGenerateOptions(name)
		o.Seed, o.GSPNumGroups, o.GSPPromptsPerGroup, o.GSPSystemPromptLen, o.GSPRangeRatio = 42, 6, 7, 60, 0.3
		o.GSPGroupDistribution = "zipf"
		h := fnv.New64a()
		for i, r := range generate(t, o).All() {
			fmt.Fprint(h, i, r.InputTokens, r.OutputTokens, r.HashIDs, r.Session, r.Follows)
		}
		if got := fmt.Sprintf("%x", h.Sum64()); got != want {
			t.Errorf("%s changed: hash %s", name, got)
		}
	}
}
