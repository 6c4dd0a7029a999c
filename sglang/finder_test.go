package sglang

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// The finder finds what bytes.Contains finds.
func TestFinder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	word := func(n int) []byte {
		w := make([]byte, n)
		for i := range w {
			w[i] = "abcA:"[rng.IntN(5)]
		}
		return w
	}
	for range 300 {
		var literals []string
		for range 1 + rng.IntN(100) {
			literals = append(literals, string(word(2+rng.IntN(4))))
		}
		f := newFinder(literals...)
		text := word(rng.IntN(60))
		set, any := f.find(text)
		got := map[int]bool{}
		for i := set.next(); i >= 0; i = set.next() {
			got[i] = true
		}
		if any != (len(got) > 0) {
			t.Fatalf("any %v, %d found", any, len(got))
		}
		for i, literal := range literals {
			if want := strings.Contains(string(text), literal); got[i] != want {
				t.Fatalf("%q in %q: %v, want %v", literal, text, got[i], want)
			}
		}
	}
}

// The table fits the finder, and every row can be found.
func TestTableFits(t *testing.T) {
	t.Parallel()
	if len(table.has) > maxNeedles {
		t.Fatalf("%d rows with has; the finder holds %d", len(table.has), maxNeedles)
	}
	if lists := max(len(table.finder.lists), len(echoes.lists), len(secretRules.finder.lists)); lists > 256 {
		t.Fatalf("%d different pairs; the finder's index holds 255", lists-1)
	}
	if n := len(secretRules.hints); n > maxNeedles {
		t.Fatalf("%d hints of secrets; the finder holds %d", n, maxNeedles)
	}
	for i := range patterns {
		if p := &patterns[i]; (p.starts == "") == (p.has == "") || len(p.literal) < 2 {
			t.Errorf("row %d (%s) needs either starts or has, of two bytes at least", i, p.kind)
		}
	}
}
