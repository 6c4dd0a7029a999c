package benchmark

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func newSamples() *samples { return &samples{start: time.Unix(1000, 0), width: time.Second} }

// ended is a complete request that ended after so long with so many gaps of one length.
func (s *samples) ended(after time.Duration, gaps int, each float32) answer {
	a := answer{Request: Request{Intended: s.start, Sent: s.start, E2E: after, TTFT: after / 2, Output: gaps + 1, Wanted: gaps + 1, Attempts: 1}}
	for range gaps {
		a.gaps = append(a.gaps, gap{each, 1})
	}
	return a
}

func TestSamplesKeepEveryRequest(t *testing.T) {
	t.Parallel()
	s := newSamples()
	const n = 3*recordChunk + 7
	for i := range n {
		a := s.ended(time.Duration(i)*time.Millisecond, i%100, float32(i%100))
		a.Prompt, a.Cached, a.InputWanted, a.Attempts = i, i/2, i+1, 1+i%3
		a.Sent = a.Intended.Add(time.Duration(i))
		if i%10 == 9 {
			a.Failed, a.Error = []string{"reset", "timeout"}[i/10%2], "why"
		}
		s.add(a)
	}
	i := 0
	for rec := range s.all() {
		kind := ""
		if rec.kind > 0 {
			kind = s.kinds[rec.kind-1]
		}
		want := ""
		if i%10 == 9 {
			want = []string{"reset", "timeout"}[i/10%2]
		}
		if rec.prompt != int32(i) || rec.cached != int32(i/2) || rec.inputWanted != int32(i+1) || rec.attempts != uint16(1+i%3) ||
			rec.lag != time.Duration(i) || rec.finished() != time.Duration(i)*time.Millisecond || kind != want {
			t.Fatalf("record %d: %+v %q", i, rec, kind)
		}
		if kind == "" {
			got := 0
			for part := range s.gaps.parts(rec.gapsFrom, rec.gapsFrom+int64(rec.gaps)) {
				for _, g := range part {
					if got++; g.Ms != float32(i%100) {
						t.Fatalf("record %d has a gap of %g ms", i, g.Ms)
					}
				}
			}
			if got != i%100 {
				t.Fatalf("record %d has %d gaps", i, got)
			}
		}
		i++
	}
	if i != n {
		t.Errorf("%d records, want %d", i, n)
	}
}

// Beyond the limit the oldest gaps are only counted; the summary must hardly notice, nor must it mix up windows.
func TestFoldedGapsSayTheSame(t *testing.T) {
	t.Parallel()
	kept, folded := newSamples(), newSamples()
	for i := range 400 {
		a := kept.ended(time.Duration(i)*10*time.Millisecond, 300, float32(1+i%37))
		kept.add(a)
		folded.add(a)
		for folded.gaps.held() > 30_000 {
			folded.fold()
		}
	}
	if folded.folded == 0 || folded.gaps.chunks[0] != nil {
		t.Fatalf("nothing was let go of: %d folded", folded.folded)
	}
	for _, from := range []time.Duration{0, 2 * time.Second} {
		if diff := cmp.Diff(kept.itl(from), folded.itl(from), cmpopts.EquateApprox(0.004, 0)); diff != "" {
			t.Errorf("from %v (-kept +folded):\n%s", from, diff)
		}
	}
	if kept.itl(time.Minute) != nil || folded.itl(time.Minute) != nil {
		t.Error("a distribution of nothing")
	}
}

func TestSamplesKeepDifferentErrors(t *testing.T) {
	t.Parallel()
	s := newSamples()
	for i := range 3 * keptErrors {
		a := s.ended(time.Duration(i)*time.Second, 0, 0)
		a.Failed, a.Error = "http_status", fmt.Sprint("request ", i)
		s.add(a)
		a.Error = "status 503"
		s.add(a)
	}
	last := fmt.Sprintf("http_status: request %d", 3*keptErrors-1)
	has := func(text string) bool {
		return slices.ContainsFunc(s.errors, func(e errorText) bool { return e.text == text })
	}
	if len(s.errors) != keptErrors || !has("http_status: status 503") || !has(last) {
		t.Errorf("%d texts kept", len(s.errors))
	}
}

// What a level keeps must stay small: 1,000 streams of 512 tokens within 6 MB, 100,000 requests within 12.
// Not parallel: it reads the size of the heap.
func TestSamplesAreSmall(t *testing.T) {
	for _, c := range []struct {
		name           string
		requests, gaps int
		megabytes      float64
	}{{"streams", 1000, 511, 6}, {"requests", 100_000, 0, 12}} {
		before := heap()
		s := newSamples()
		for range c.requests {
			s.add(s.ended(time.Second, c.gaps, 20))
		}
		held := float64(int64(heap())-int64(before)) / 1e6
		runtime.KeepAlive(s)
		if held > c.megabytes {
			t.Errorf("%s: %.1f MB held, want at most %g", c.name, held, c.megabytes)
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
