package virtual

import (
	"hash/fnv"
	"time"

	"sgtune/benchmark"
	"sgtune/internal/simulator"
)

// rows is a workload as both sides need it: the replay's own, and the simulator's view of the same rows.
type rows struct {
	w   *benchmark.Workload
	sim simulator.Workload
}

// newRows translates a workload of lengths and block ids.
func newRows(w *benchmark.Workload) rows {
	r := rows{w: w, sim: simulator.Workload{Name: w.Path, Rows: make([]simulator.Row, 0, w.Len())}}
	for _, row := range w.All() {
		s := simulator.Row{In: row.Input(), Out: row.OutputTokens, BlockTokens: w.BlockTokens}
		for _, id := range row.HashIDs {
			s.Blocks = append(s.Blocks, uint64(id)+1)
		}
		r.sim.Rows = append(r.sim.Rows, s)
	}
	return r
}

// feed hands out rows in order and again from the start, each pass with text of its own.
type feed struct {
	rows           rows
	from, to, next int
	salt           uint64
}

func (r rows) feed(from, to int, salt string) *feed {
	h := fnv.New64a()
	_, _ = h.Write([]byte(salt)) // a hash never fails
	return &feed{rows: r, from: from, to: to, salt: h.Sum64()}
}

func (f *feed) take() (row benchmark.Row, prompt simulator.Prompt, pass int) {
	k, pass := f.from+f.next%(f.to-f.from), f.next/(f.to-f.from)
	f.next++
	return f.rows.w.Row(k), f.rows.sim.Prompt(k, pass, f.salt), pass
}

// flight is a request under way.
type flight struct {
	r    *simulator.Request
	row  benchmark.Row
	pass int
	told bool // its first token was booked
}

// session is one launched server under load.
type session struct {
	server *simulator.Virtual
	clock  *clock
	zero   time.Time // when the process started

	inFlight []*flight
	output   int // tokens booked so far
}

func (s *session) at(simulated float64) time.Time {
	return s.zero.Add(time.Duration(simulated * float64(time.Second)))
}

// put puts one load on the server, as benchmark.Run does; nil means that the server died under it.
func (s *session) put(f *feed, opts benchmark.Options) (*benchmark.Report, error) {
	opts.Clock = s.clock
	fold, err := benchmark.NewFold(opts)
	if err != nil {
		return nil, err
	}
	s.output = s.server.Counters().OutputTokens
	begin := s.clock.Now()
	for range opts.Concurrency {
		s.send(f, fold)
	}
	for !fold.Over() {
		end := begin.Add(time.Duration(fold.Windows()+1) * opts.Window)
		ended := s.advance(end, fold)
		if s.server.Failure() != nil {
			return nil, nil //nolint:nilerr // a server that fails is a result, which the caller reads off it
		}
		for range ended {
			s.send(f, fold)
		}
		if !s.clock.Now().Before(end) {
			fold.WindowEnded()
		}
	}
	limit := s.clock.Now().Add(drain(opts))
	for len(s.inFlight) > 0 && s.clock.Now().Before(limit) {
		s.advance(limit, fold)
		if s.server.Failure() != nil {
			return nil, nil //nolint:nilerr // a server that fails is a result, which the caller reads off it
		}
	}
	for range s.inFlight {
		fold.Cut()
	}
	s.inFlight = nil
	s.server.Abort()
	return fold.Report(), nil
}

func drain(opts benchmark.Options) time.Duration {
	if opts.Drain > 0 {
		return opts.Drain
	}
	return time.Minute
}

// send submits the next row.
func (s *session) send(f *feed, fold *benchmark.Fold) {
	if !fold.Sent() {
		return
	}
	row, prompt, pass := f.take()
	r := s.server.Submit(prompt, row.OutputTokens, s.clock.Now().Sub(s.zero).Seconds())
	s.inFlight = append(s.inFlight, &flight{r: r, row: row, pass: pass})
}

// advance goes on to the next step's end or the limit, books what came, and tells how many requests ended.
func (s *session) advance(limit time.Time, fold *benchmark.Fold) (ended int) {
	reached := s.server.Advance(limit.Sub(s.zero).Seconds())
	now := s.at(reached)
	if limit.Sub(now) < time.Microsecond { // rounding between float seconds and nanoseconds
		now = limit
	}
	s.clock.set(now)
	made := s.server.Counters().OutputTokens
	if made == s.output {
		return 0
	}
	prompt := 0
	for _, x := range s.inFlight {
		if !x.told && x.r.Out > 0 {
			x.told = true
			prompt += x.r.Prompt.Len
		}
	}
	fold.Tokens(made-s.output, prompt)
	s.output = made
	kept := s.inFlight[:0]
	for _, x := range s.inFlight {
		if !x.r.Done {
			kept = append(kept, x)
			continue
		}
		ended++
		fold.Finished(s.request(x), x.pass)
	}
	s.inFlight = kept
	return ended
}

// request is a finished request as a client sees it.
func (s *session) request(x *flight) benchmark.Request {
	sent := s.at(x.r.Arrival)
	q := benchmark.Request{
		Row: x.row.Number, Attempts: 1, Intended: sent, Sent: sent, TTFT: s.at(x.r.FirstAt).Sub(sent), E2E: s.at(x.r.LastAt).Sub(sent),
		InputWanted: x.row.InputTokens, Prompt: x.r.Prompt.Len, Cached: max(x.r.Cached, 0), Output: x.r.Out, Wanted: x.row.OutputTokens,
	}
	if q.Output != q.Wanted {
		q.Failed, q.Error = "wrong_tokens", "the answer was cut at the end of the pool"
	}
	return q
}
