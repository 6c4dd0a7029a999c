package benchmark

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestTokenCounts compares with sorting: exact where a model's context reaches, within a thousandth above.
func TestTokenCounts(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var c tokenCounts
	var all []int
	for range 5000 {
		n := 1 + random.IntN(1<<random.IntN(27))
		c.add(n)
		all = append(all, n)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1} {
		want, got := all[nearestRank(len(all), q)], c.quantile(q)
		if want < exactTokens && got != want || got < want || float64(got) > float64(want)*1.001 {
			t.Errorf("quantile %g: %d, want %d", q, got, want)
		}
	}
	if c.min != all[0] || c.max != all[len(all)-1] || c.n != 5000 {
		t.Errorf("%d to %d, %d of them", c.min, c.max, c.n)
	}
}

func TestIDSet(t *testing.T) {
	t.Parallel()
	var s idSet
	ids := []int64{0, 1, 63, 64, idPage - 1, idPage, denseIDs - 1, denseIDs, -1, -1 << 63, 1<<63 - 1}
	for i, id := range ids {
		if s.has(id) {
			t.Errorf("%d is there before it was put in", id)
		}
		if !s.add(id) {
			t.Errorf("no room for %d", id)
		}
		for k, other := range ids {
			if s.has(other) != (k <= i) {
				t.Errorf("after %d: %d there: %v", id, other, s.has(other))
			}
		}
	}
}

// TestPipe reads what can be read only once.
func TestPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		defer w.Close()
		fmt.Fprint(w, `{"prompt":"a"}`+"\n"+`{"prompt":"b"}`)
	}()
	got, err := ReadWorkload(fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil || got.Len() != 2 || got.Row(1).Text != "b" {
		t.Errorf("%v", err)
	}
}
