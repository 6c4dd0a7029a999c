package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"sgtune/benchmark"
	"sgtune/web"
)

// replayScreen tells a person what a replay does: lines of text and, while a level runs, its progress: on a
// terminal one line that is redrawn, otherwise a plain line now and then. Safe for concurrent use.
type replayScreen struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool
	width func() int
	mask  func(string) string
	now   func() time.Time

	level *progress // running, nil between levels
	drawn bool      // the progress line is on the screen
	said  time.Time // when progress was last told without a terminal

	done, ended chan struct{}
}

const (
	plainFirst = 5 * time.Second // the first plain line of progress; each later one waits longer,
	plainMost  = time.Minute     // at most so long
)

func newReplayScreen(out io.Writer, mask func(string) string) *replayScreen {
	s := &replayScreen{out: out, mask: mask, now: time.Now, width: func() int { return 100 }}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.live = true
		s.width = func() int {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
			return 100
		}
	}
	return s
}

// Say prints lines above the progress.
func (s *replayScreen) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	for line := range strings.Lines(text) {
		_, _ = fmt.Fprintln(s.out, printable(s.mask(strings.TrimRight(line, "\n")))) // a reader that went away ends no measurement
	}
	s.draw()
}

// Start shows a level's progress until Stop.
func (s *replayScreen) Start(p *progress) {
	s.mu.Lock()
	s.level, s.said = p, s.now()
	s.mu.Unlock()
	s.done, s.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(s.ended)
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		wait := plainFirst
		for {
			select {
			case <-s.done:
				return
			case <-tick.C:
				wait = s.tick(wait)
			}
		}
	}()
}

// tick redraws, or says a plain line when the last one is long enough ago; it returns how long to wait for
// the next one.
func (s *replayScreen) tick(wait time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		s.draw()
		return wait
	}
	now := s.now()
	if now.Sub(s.said) < wait {
		return wait
	}
	s.said = now
	_, _ = fmt.Fprintln(s.out, s.level.line(now))
	return min(2*wait, plainMost)
}

// Stop ends the progress of a level.
func (s *replayScreen) Stop() {
	if s.done == nil {
		return
	}
	close(s.done)
	<-s.ended
	s.done = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.level = nil
}

func (s *replayScreen) draw() {
	if !s.live || s.level == nil {
		return
	}
	_, _ = io.WriteString(s.out, "\r\x1b[J"+cut(printable(s.level.line(s.now())), s.width()-1))
	s.drawn = true
}

func (s *replayScreen) erase() {
	if s.drawn {
		_, _ = io.WriteString(s.out, "\r\x1b[J")
		s.drawn = false
	}
}

// progress is how far a level is. Safe for concurrent use.
type progress struct {
	title    string
	started  time.Time
	requests int           // to send, 0 when that does not end the level
	length   time.Duration // until it ends at the latest, 0 when that does not

	mu     sync.Mutex
	ok     int
	failed int
	window *benchmark.Window
	recent []mark // one a second at most, for the present rate
	output int64
}

// mark is what had finished at a time.
type mark struct {
	at       time.Time
	finished int
	output   int64
}

// rateOver is the time over which the present rate is taken.
const rateOver = 10 * time.Second

// Finished counts a request.
func (p *progress) Finished(q benchmark.Request, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.Failed == "" {
		p.ok++
		p.output += int64(q.Output)
	} else {
		p.failed++
	}
	if n := len(p.recent); n > 0 && now.Sub(p.recent[n-1].at) < time.Second {
		return
	}
	p.recent = append(p.recent, mark{now, p.ok + p.failed, p.output})
	for len(p.recent) > 2 && now.Sub(p.recent[1].at) > rateOver {
		p.recent = p.recent[1:]
	}
}

// Window takes note of a whole window: its throughput counts tokens as they come, not as requests end.
func (p *progress) Window(w benchmark.Window) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.window = &w
}

// line says where the level is.
func (p *progress) line(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := now.Sub(p.started)
	finished := p.ok + p.failed
	parts := []string{p.title + ": " + short(passed)}
	switch {
	case p.requests > 0:
		parts = append(parts, fmt.Sprintf("%s of %s requests", grouped(finished), grouped(p.requests)))
	default:
		parts = append(parts, grouped(finished)+" requests")
	}
	if p.failed > 0 {
		parts = append(parts, grouped(p.failed)+" failed")
	}
	rate, tokens := p.rates(now)
	if p.window != nil {
		tokens = p.window.Output
		parts = append(parts, fmt.Sprintf("%.0f in flight", p.window.InFlight))
	}
	if finished > 0 {
		parts = append(parts, web.Number(rate)+" requests/s", web.Number(tokens)+" tok/s")
	}
	if left, ok := p.left(passed, finished, rate); ok {
		parts = append(parts, "done in about "+short(left))
	}
	return strings.Join(parts, ", ")
}

// rates are requests/s and tokens/s of what finished lately.
func (p *progress) rates(now time.Time) (requests, tokens float64) {
	from := mark{at: p.started}
	if len(p.recent) > 1 {
		from = p.recent[0]
	}
	seconds := now.Sub(from.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(p.ok+p.failed-from.finished) / seconds, float64(p.output-from.output) / seconds
}

// left is the time to the end that comes first.
func (p *progress) left(passed time.Duration, finished int, rate float64) (time.Duration, bool) {
	left, known := p.length-passed, p.length > 0
	if p.requests > 0 && rate > 0 {
		byCount := time.Duration(float64(p.requests-finished) / rate * float64(time.Second))
		if !known || byCount < left {
			left, known = byCount, true
		}
	}
	return left, known && left > 0
}
