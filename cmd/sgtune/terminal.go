package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// terminal tells a person what a running study does: a log of what is stored and, on a terminal, a
// few live status lines under it; with --json one object an event. It is fed by watchedStore and by
// the loop, so it shows nothing that is not stored. lines.go words the log, status.go the status.
type terminal struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool // keep status lines; otherwise plain lines only
	json  bool
	size  func() (width, height int)
	now   func() time.Time // host time
	study *tuner.Study
	db    string // of the commands that are shown

	status  tuner.Status
	current map[int]*trial.Trial // those that run, by number
	heard   map[int]heard        // what they last said of themselves
	shown   map[int]trial.State
	said    map[string]bool // reasons told in full
	rejects map[string]int  // refusals by rule
	planned bool            // the plan was told in full
	over    bool            // the search is over

	drawn int           // status lines on the screen
	done  chan struct{} // ends the redrawing, nil when there is none
	ended chan struct{}
}

// heard is a progress report and when it came, host time.
type heard struct {
	trial.Progress
	at time.Time
}

// newTerminal shows a study on out. A live one redraws its status lines until Close.
func newTerminal(out io.Writer, live, asJSON bool, study *tuner.Study, db string, now func() time.Time) *terminal {
	return &terminal{
		out: out, live: live && !asJSON, json: asJSON, now: now, study: study, db: db,
		size:    func() (int, int) { return 100, 40 },
		current: map[int]*trial.Trial{}, heard: map[int]heard{}, shown: map[int]trial.State{}, said: map[string]bool{}, rejects: map[string]int{},
	}
}

// redrawEvery is real time between two redraws of the status lines: elapsed times count on.
const redrawEvery = 500 * time.Millisecond

// Start keeps the status lines up to date until Close.
func (t *terminal) Start() {
	if !t.live {
		return
	}
	t.done, t.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(t.ended)
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for {
			select {
			case <-t.done:
				return
			case <-tick.C:
				t.mu.Lock()
				t.draw()
				t.mu.Unlock()
			}
		}
	}()
}

// Close removes the status lines; later lines are plain ones.
func (t *terminal) Close() {
	if t.done != nil {
		close(t.done)
		<-t.ended
		t.done = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	t.live = false
}

// Status takes note of where the study stands.
func (t *terminal) Status(s tuner.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = s
	t.draw()
}

// Event prints one stored event.
func (t *terminal) Event(e tuner.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		t.emit(map[string]any{"at": e.At, "kind": e.Kind, "text": e.Text, "config": e.Config, "trial": e.Trial})
		return
	}
	if text, more := t.eventText(e); text != "" {
		t.lines(clock(e.At)+"  "+text, more)
	}
}

// Saved follows a trial's row: the log has a line when it begins and one when it has ended.
func (t *terminal) Saved(tr *trial.Trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.shown[tr.Number]
	t.shown[tr.Number] = tr.State
	if t.json {
		if was != tr.State {
			t.emit(map[string]any{
				"at": t.now(), "kind": "trial", "trial": tr.Number, "role": tr.Role, "state": tr.State, "step": tr.Step,
				"config": tr.Config, "value": tr.Value, "outcome": tr.Verdict.Outcome, "text": t.resultText(tr),
			})
		}
		return
	}
	t.over = t.over || tr.Role == trial.RoleConfirm
	switch {
	case tr.State == trial.Running:
		row := *tr // the runner goes on changing its own
		t.current[tr.Number] = &row
		if was != trial.Running {
			t.lines(clock(t.now())+"  "+t.beginText(tr), t.whyText(tr))
		}
	case tr.State.Finished():
		delete(t.current, tr.Number)
		delete(t.heard, tr.Number)
		if was == tr.State {
			break
		}
		t.lines(clock(t.now()) + "  " + t.resultText(tr))
	}
	t.draw()
}

// Progress takes note of what a running trial does.
func (t *terminal) Progress(p trial.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.heard[p.Number]; was.Step == p.Step && p.Window == nil {
		p.Window = was.Window
	}
	t.heard[p.Number] = heard{p, t.now()}
	t.draw()
}

// Say prints a line of the program itself.
func (t *terminal) Say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		t.emit(map[string]any{"at": t.now(), "kind": "note", "text": fmt.Sprintf(format, args...)})
		return
	}
	t.lines(fmt.Sprintf(format, args...))
}

// lines prints to the log above the status lines: a line, and what belongs to it below.
func (t *terminal) lines(first string, more ...string) {
	t.erase()
	_, _ = fmt.Fprintln(t.out, printable(first))
	for _, text := range more {
		if text != "" {
			_, _ = fmt.Fprintln(t.out, indent+printable(text))
		}
	}
	t.draw()
}

func (t *terminal) emit(v map[string]any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{"kind":"note","text":"an event could not be printed"}`)
	}
	_, _ = fmt.Fprintln(t.out, string(b))
}

// printable is a text on one line that cannot steer the terminal: it may quote a server's log.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return -1
		}
		return r
	}, text)
}
