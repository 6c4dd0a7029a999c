package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"sgtune/sglang"
)

// answer is one answer of a health endpoint. Its body is not part of it: it is never looked at.
type answer struct {
	path     string
	status   int  // HTTP status, 0 = none
	timedOut bool // none because nothing came in time; else the connection was refused or broke
}

// words say an answer as a person would.
func (n answer) words() string {
	switch {
	case n.timedOut:
		return "did not answer in time"
	case n.status == 0:
		return "refused the connection"
	}
	return fmt.Sprintf("answered %d", n.status)
}

// probes is what the readiness and liveness probes of one trial saw. It is used by the step that runs
// and by the watch at once.
type probes struct {
	mu       sync.Mutex
	seen     map[answer]int
	failures int       // in a row, of a server whose port answers or has answered
	firstBad time.Time // host time of the first and the last of those
	lastBad  time.Time
	bad      answer // the last of them
	batches  int    // batch lines the log had before the first of them

	asked    time.Time // when a token was first owed: ready by log or health, zero before
	answered time.Time // when HTTP first answered anything, zero before
	plain    bool      // the server has no /health_generate
}

// note books one answer at a moment of host time; batches is how many batch lines the log has.
func (p *probes) note(n answer, at time.Time, batches int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[answer]int{}
	}
	p.seen[n]++
	up := n.status != 0 || n.timedOut
	if p.answered.IsZero() && up {
		p.answered = at
	}
	switch {
	case n.status == http.StatusOK:
		p.failures = 0
	case up || !p.answered.IsZero():
		if p.failures++; p.failures == 1 {
			p.firstBad, p.batches = at, batches
		}
		p.bad, p.lastBad = n, at
	}
}

// owes says that a token is owed from now on, unless it was before.
func (p *probes) owes(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked.IsZero() {
		p.asked = at
	}
}

// since returns when a token was first owed and when HTTP first answered.
func (p *probes) since() (asked, answered time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.answered
}

// failing returns how many answers in a row were bad, and how many batch lines the log had before them.
func (p *probes) failing() (failures, batches int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures, p.batches
}

// failed says the last bad answers in a row, "" when there are none: "/health answered 503 5 times between
// 02:10:01 and 02:11:05".
func (p *probes) failed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures == 0 {
		return ""
	}
	when := "at " + clock(p.firstBad)
	if p.failures > 1 {
		when = fmt.Sprintf("between %s and %s", clock(p.firstBad), clock(p.lastBad))
	}
	return fmt.Sprintf("%s %s %s %s", p.bad.path, p.bad.words(), times(p.failures), when)
}

// list is every kind of answer with its count, as the verdict wants it.
func (p *probes) list() []Probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Probe
	for n, count := range p.seen {
		seen := Probe{Path: n.path, Status: n.status, Count: count}
		switch {
		case n.timedOut:
			seen.Word = "timeout"
		case n.status == 0:
			seen.Word = "refused"
		}
		out = append(out, seen)
	}
	slices.SortFunc(out, func(a, b Probe) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Word, b.Word))
	})
	return out
}

// health asks the health endpoint once that means something in this version.
func (a *attempt) health(ctx context.Context) answer {
	n := a.healthAt(ctx, a.healthPath())
	if n.path == sglang.HealthGenerate && (n.status == http.StatusNotFound || n.status == http.StatusMethodNotAllowed) {
		a.probes.mu.Lock()
		a.probes.plain = true // older than all we know, or something in front of it
		a.probes.mu.Unlock()
		n = a.healthAt(ctx, sglang.HealthPlain)
	}
	return n
}

// healthPath is the endpoint to ask: by the version where it is known, else by the log's wording.
func (a *attempt) healthPath() string {
	a.probes.mu.Lock()
	plain := a.probes.plain
	a.probes.mu.Unlock()
	if plain || a.watch == nil {
		return sglang.HealthPlain
	}
	_, first := a.watch.facts()
	return sglang.HealthPath(a.Version, first, a.Server.Environ(a.t.Config))
}

func (a *attempt) healthAt(ctx context.Context, path string) answer {
	ctx, cancel := a.within(ctx, healthTimeout, healthTimeoutReal)
	defer cancel()
	status, err := a.target.HealthAt(ctx, path)
	if err != nil {
		return answer{path: path, timedOut: errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil}
	}
	return answer{path: path, status: status}
}

// logSide quotes the log's side of a disagreement: the ready line, else the last batch line, else how far it is.
func logSide(log sglang.LogFacts, first map[string]sglang.Event) string {
	e := first[kindFiredUp]
	if log.LastBatch.Line > e.Line {
		e = log.LastBatch
	}
	return quoteLine(e, fmt.Sprintf("the log is in %s after %d lines", log.Phase, log.Lines))
}

// quoteLine is a log line as evidence in a text: log line 212 "..." at 02:11:07.
func quoteLine(e sglang.Event, without string) string {
	if e.Line == 0 {
		return without
	}
	text := fmt.Sprintf("log line %d %q", e.Line, e.Text)
	if !e.At.IsZero() {
		text += " at " + clock(e.At)
	}
	return text
}

func clock(t time.Time) string { return t.Format("15:04:05") }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
