package benchmark

import (
	"iter"
	"slices"
	"time"
)

// samples is what is kept of a level's finished requests: a record of each, for ever, and the gaps of the
// complete ones. It is not safe for concurrent use.
type samples struct {
	start  time.Time
	width  time.Duration // of a window
	chunks [][]record
	n      int

	gaps    gapStore
	folded  int         // records before this one have had their gaps folded
	windows []histogram // folded gaps, by the window the requests ended in

	kinds  []string // of failures; records hold positions
	errors []errorText
}

// record is a finished request in as few bytes as a night of them allows. Times are offsets from the level's
// start, durations from there.
type record struct {
	intended, lag, ttft, e2e    time.Duration
	gapsFrom                    int64
	gaps                        int32
	prompt, cached, inputWanted int32
	output, wanted              int32
	attempts                    uint16
	kind                        uint8 // of failure: position in samples.kinds + 1, 0 = none
}

func (r *record) finished() time.Duration { return r.intended + r.e2e }

// errorText is one text of a failure and when it was last seen.
type errorText struct {
	text string
	last time.Duration
}

const (
	recordChunk = 1 << 10
	keptErrors  = 100 // different texts kept while the level runs
)

// add keeps a finished request.
func (s *samples) add(a answer) {
	rec := record{
		intended: a.Intended.Sub(s.start), lag: a.Sent.Sub(a.Intended), ttft: a.TTFT, e2e: a.E2E,
		prompt: int32(a.Prompt), cached: int32(a.Cached), inputWanted: int32(a.InputWanted),
		output: int32(a.Output), wanted: int32(a.Wanted), attempts: uint16(min(a.Attempts, 1<<16-1)),
	}
	if a.Failed == "" {
		rec.gapsFrom, rec.gaps = s.gaps.end, int32(len(a.gaps))
		s.gaps.add(a.gaps)
	} else {
		rec.kind = s.kindOf(a.Failed)
		s.note(a.Failed+": "+a.Error, rec.finished())
	}
	if s.n == len(s.chunks)*recordChunk {
		s.chunks = append(s.chunks, nil)
	}
	last := &s.chunks[len(s.chunks)-1]
	*last = append(*last, rec)
	s.n++
	for s.gaps.held() > mostGaps {
		s.fold()
	}
}

func (s *samples) kindOf(failed string) uint8 {
	i := slices.Index(s.kinds, failed)
	if i < 0 {
		i = len(s.kinds)
		s.kinds = append(s.kinds, failed)
	}
	return uint8(i + 1)
}

// note keeps an error text; of too many the one not seen for longest goes.
func (s *samples) note(text string, at time.Duration) {
	for i := range s.errors {
		if s.errors[i].text == text {
			s.errors[i].last = at
			return
		}
	}
	if len(s.errors) == keptErrors {
		oldest := 0
		for i, e := range s.errors {
			if e.last < s.errors[oldest].last {
				oldest = i
			}
		}
		s.errors = slices.Delete(s.errors, oldest, oldest+1)
	}
	s.errors = append(s.errors, errorText{text, at})
}

func (s *samples) record(i int) *record { return &s.chunks[i/recordChunk][i%recordChunk] }

// all are the records in the order in which the requests ended.
func (s *samples) all() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for _, chunk := range s.chunks {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}
