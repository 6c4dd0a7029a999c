package sglang_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

// allLogs are the logs of this package and of the classifier; of those the classifier calls unseen
// every eighth.
func allLogs(t testing.TB) []string {
	t.Helper()
	var logs []string
	for _, pattern := range []string{"testdata/log/*.log", "../trial/testdata/verdict/*.log", "../trial/testdata/unseen/*.log"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		const step = 8
		for i, path := range found {
			if !strings.Contains(pattern, "unseen") || i%step == 0 {
				logs = append(logs, path)
			}
		}
	}
	if len(logs) < 18 {
		t.Fatalf("found %d logs only", len(logs))
	}
	return logs
}

// ends reads a log without the middle of a long one: thousands of batch lines say nothing new.
func ends(t testing.TB, path string) []byte {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const half = 16 << 10
	if len(log) > 2*half {
		log = slices.Concat(log[:half], log[len(log)-half:])
	}
	return log
}

// Whatever the chunks, and whether somebody wants the events or not, the same bytes say the same.
func TestChunksDoNotMatter(t *testing.T) {
	t.Parallel()
	for i, path := range allLogs(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			log := ends(t, path)
			whole := digest(log, len(log)).Facts
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			for _, most := range []int{3, 5000} {
				r := sglang.NewReader()
				for rest := log; len(rest) > 0; {
					n := min(1+rng.IntN(most), len(rest))
					if _, err := r.Write(rest[:n]); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				r.Close()
				if d := cmp.Diff(whole, r.Facts(), allFields); d != "" {
					t.Errorf("chunks of up to %d bytes -whole +chunks:\n%s", most, d)
				}
			}
		})
	}
}

// The first and the last event of each kind are those that Feed returns.
func TestFirstAndLast(t *testing.T) {
	t.Parallel()
	for _, path := range allLogs(t) {
		log := ends(t, path)
		first, last := map[string]sglang.Event{}, map[string]sglang.Event{}
		r := sglang.NewReader()
		for _, ev := range append(r.Feed(log), r.Close()...) {
			if _, seen := first[ev.Kind]; !seen {
				first[ev.Kind] = ev
			}
			last[ev.Kind] = ev
		}
		f := r.Facts()
		if !reflect.DeepEqual(first, f.First) { // much faster than cmp, which tells what differs
			t.Errorf("%s: first -events +facts:\n%s", path, cmp.Diff(first, f.First))
		}
		if !reflect.DeepEqual(last, f.Last) {
			t.Errorf("%s: last -events +facts:\n%s", path, cmp.Diff(last, f.Last))
		}
	}
}
