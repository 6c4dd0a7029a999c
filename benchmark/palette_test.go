package benchmark_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sgtune/benchmark"
)

// Beside its ids a palette has the words they are, for endpoints that take no ids.
func TestPaletteKnowsTheWordsOfItsIds(t *testing.T) {
	t.Parallel()
	p, err := benchmark.LoadPalette(t.Context(), tokenizer(t, 1024))
	if err != nil || len(p.Words) != len(p.IDs) {
		t.Fatalf("%d words of %d ids, %v", len(p.Words), len(p.IDs), err)
	}
	all := benchmark.WordPalette("").Words
	for i, id := range p.IDs {
		if want := slices.Index(all, p.Words[i]); id != 77 && id != 5000+want {
			t.Errorf("id %d is said to be %q, the word %d", id, p.Words[i], want)
		}
	}
}

// small answers /tokenize like a vocabulary in which only the first whole words are one token: the others
// are three parts each, of a number of parts.
func small(t *testing.T, whole, parts int, bos bool) benchmark.Target {
	t.Helper()
	lists := make([][]int, 1024)
	for i := range lists {
		lists[i] = []int{100 + i%parts, 100 + i*7%parts, 100 + i*11%parts}
		if i < whole {
			lists[i] = []int{5000 + i}
		}
		if bos {
			lists[i] = append([]int{1}, lists[i]...)
		}
	}
	text, err := json.Marshal(map[string]any{"tokens": lists})
	if err != nil {
		t.Fatal(err)
	}
	target, _ := admin(t, map[string]string{"POST /tokenize": "200 " + string(text)})
	return target
}

// Ids are sent as they are, so a vocabulary without whole words has exact lengths too.
func TestPaletteOfASmallVocabulary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		whole, parts int
		bos          bool
		ids, words   int
	}{
		{"parts of words", 100, 300, false, 400, 100},
		{"hardly a whole word", 10, 300, false, 310, 0},
		{"every text has a start", 100, 300, true, 400, 100},
		{"every text has a start, all words are whole", 1024, 300, true, 1024, 1024},
		{"too little of anything", 100, 99, false, 0, 1024},
	} {
		p, err := benchmark.LoadPalette(t.Context(), small(t, c.whole, c.parts, c.bos))
		if err != nil || len(p.IDs) != c.ids || len(p.Words) != c.words || p.Approximate != (c.ids == 0) || slices.Contains(p.IDs, 1) {
			t.Errorf("%s: %d ids, %d words, approximate %v, %v", c.name, len(p.IDs), len(p.Words), p.Approximate, err)
		}
		if c.ids > 0 {
			p := benchmark.NewFeed(lengths(1, 500, 1), 0, 1, "", p).Next()
			if len(p.IDs) != 500 {
				t.Errorf("%s: a prompt of %d ids", c.name, len(p.IDs))
			}
		}
	}
}

// Other servers have a /tokenize of their own kind; they are served with words.
func TestPaletteOfOtherServers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a list is refused":     "400",
		"a field is missing":    "422",
		"another field is read": `200 {"tokens":[]}`,
	} {
		target, _ := admin(t, map[string]string{"POST /tokenize": answer})
		p, err := benchmark.LoadPalette(t.Context(), target)
		if err != nil || !p.Approximate || len(p.Words) != 1024 || p.IDs != nil || !strings.Contains(p.Note, "approximate") {
			t.Errorf("%s: %q, %v", name, p.Note, err)
		}
	}
	for name, answer := range map[string]string{"a wrong key": "401", "a broken server": "503"} {
		target, _ := admin(t, map[string]string{"POST /tokenize": answer})
		if _, err := benchmark.LoadPalette(t.Context(), target); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPaletteOfNothingIsWords(t *testing.T) {
	t.Parallel()
	p := benchmark.NewFeed(lengths(3, 9, 1), 0, 3, "", benchmark.Palette{}).Next()
	if len(strings.Fields(p.Text)) != 9 {
		t.Errorf("%+v", p)
	}
}
