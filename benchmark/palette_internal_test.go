package benchmark

import (
	"slices"
	"testing"
)

// Whatever a server answers to /tokenize, prompts can be made: of ids that are different and of ordinary text, or of words.
func FuzzPaletteAnswer(f *testing.F) {
	for _, seed := range []string{`{"tokens":[[1],[2],[3,4]]}`, `{"tokens":[[9,1],[9,2],[9,3,4]]}`, `{"tokens":[[],[1],[-1]]}`, `{"tokens":[1]}`, `{"tokens":[]}`, `{}`, `[`} {
		f.Add([]byte(seed))
	}
	words := []string{"that", "with", "from"}
	f.Fuzz(func(t *testing.T, answer []byte) {
		lists, err := tokenLists(answer, len(words))
		if err != nil {
			return
		}
		p := paletteOf(lists, words)
		if p.Approximate == (len(p.IDs) >= leastPalette) {
			t.Fatalf("%d ids, approximate %v", len(p.IDs), p.Approximate)
		}
		sorted := slices.Sorted(slices.Values(p.IDs))
		if len(slices.Compact(sorted)) != len(p.IDs) || len(p.IDs) > 0 && (sorted[0] < 0 || len(p.Words) > len(p.IDs)) {
			t.Fatalf("ids %v of words %v", p.IDs, p.Words)
		}
	})
}
