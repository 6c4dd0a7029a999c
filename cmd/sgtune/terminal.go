package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// terminal tells a person what a running study does. On a terminal it keeps one live status line
// under the log; elsewhere it prints plain lines; with --json one object an event.
// It is fed by watchedStore, so it shows nothing that is not stored.
type terminal struct {
	mu        sync.Mutex
	out       io.Writer
	live      bool // keep a status line
	json      bool
	width     func() int
	now       func() time.Time // host time
	total     int              // budget.trials, 0 = no limit
	study     string
	simulated bool

	baseline *trial.Trial
	current  *trial.Trial
	progress trial.Progress
	status   tuner.Status
	shown    map[int]trial.State
	drawn    time.Time
}

// Status takes note of where the study stands.
func (t *terminal) Status(s tuner.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = s
	t.draw(true)
}

// Event prints one stored event.
func (t *terminal) Event(e tuner.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		t.emit(map[string]any{"at": e.At, "kind": e.Kind, "text": e.Text, "config": e.Config, "trial": e.Trial})
		return
	}
	text := e.Text
	if e.Kind == "reject" && len(e.Config) > 0 {
		text = "not tried: " + describe(e.Config) + ": " + text
	}
	if e.Kind == "plan" && e.Trial != nil { // the trial's own line came with its row
		if _, plan, found := strings.Cut(text, ". "); found {
			text = plan
		}
	}
	if e.Kind == "verdict" {
		return // printed whole at the end
	}
	t.line(fmt.Sprintf("%s  %s", t.clock(e.At), text))
}

// Saved follows a trial's row.
func (t *terminal) Saved(tr *trial.Trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.shown[tr.Number] == ""
	was := t.shown[tr.Number]
	t.shown[tr.Number] = tr.State
	if t.json {
		if was != tr.State || first {
			t.emit(map[string]any{
				"at": t.now(), "kind": "trial", "trial": tr.Number, "role": tr.Role, "state": tr.State, "step": tr.Step,
				"config": tr.Config, "value": tr.Value, "outcome": tr.Verdict.Outcome, "text": t.result(tr),
			})
		}
		return
	}
	row := *tr // the runner goes on changing its own
	t.current = &row
	if first {
		t.line(fmt.Sprintf("%s  #%d %s  %s", t.clock(t.now()), tr.Number, tr.Role, describe(tr.Config)))
		if tr.Why != "" {
			t.line("          " + tr.Why)
		}
	}
	if tr.State.Finished() && !was.Finished() {
		t.learn(&row)
		t.line(fmt.Sprintf("%s  #%d %s", t.clock(t.now()), tr.Number, t.result(tr)))
		t.current = nil
	}
	t.draw(true)
}

// Progress redraws the status line, at most five times a second.
func (t *terminal) Progress(p trial.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress = p
	t.draw(false)
}

// Say prints a line of the program itself.
func (t *terminal) Say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if t.json {
		t.emit(map[string]any{"at": t.now(), "kind": "note", "text": text})
		return
	}
	t.line(text)
}

// Close removes the status line.
func (t *terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live {
		_, _ = io.WriteString(t.out, "\r\x1b[K")
	}
	t.live = false
}

func (t *terminal) learn(tr *trial.Trial) {
	if tr.Value != nil && tr.Void == "" && tr.Role == trial.RoleBaseline {
		t.baseline = tr
	}
}

func (t *terminal) result(tr *trial.Trial) string {
	var b strings.Builder
	switch {
	case !tr.State.Finished():
		return ""
	case tr.Value != nil && tr.State == trial.Complete:
		fmt.Fprintf(&b, "ok: %s tok/s at %d clients", thousands(*tr.Value), tr.Best)
		if tr.MaxRunning > 0 {
			fmt.Fprintf(&b, ", %.0f ran at once", tr.MaxRunning)
		}
		if gain, ok := t.gain(tr); ok {
			fmt.Fprintf(&b, ", %+.1f%% against the baseline", 100*gain)
		}
	case tr.State == trial.Pruned:
		b.WriteString("stopped early: hopeless against the best so far")
	default:
		fmt.Fprintf(&b, "%s: %s", tr.State, tr.Verdict.Text)
	}
	if tr.Void != "" {
		fmt.Fprintf(&b, " (void: %s)", tr.Void)
	}
	if tr.Release == trial.ReleaseUnverified {
		b.WriteString("; release not verified (no GPU facts)")
	}
	if !tr.StartedAt.IsZero() {
		fmt.Fprintf(&b, "  [%s]", short(tr.EndedAt.Sub(tr.StartedAt)))
	}
	return b.String()
}

func (t *terminal) gain(tr *trial.Trial) (float64, bool) {
	if t.baseline == nil || tr.Number == t.baseline.Number || tr.Value == nil || *t.baseline.Value <= 0 {
		return 0, false
	}
	return *tr.Value / *t.baseline.Value - 1, true
}

// draw writes the status line: step, elapsed and expected time, best so far, last failure, end.
func (t *terminal) draw(force bool) {
	if !t.live || t.json || (!force && time.Since(t.drawn) < 200*time.Millisecond) {
		return
	}
	t.drawn = time.Now()
	text := t.statusText()
	if w := t.width() - 1; len([]rune(text)) > w && w > 1 {
		text = string([]rune(text)[:w-1]) + "…"
	}
	_, _ = fmt.Fprintf(t.out, "\r\x1b[K%s", text)
}

// statusText is the status line's text: step, elapsed and expected time, best so far, last failure, end.
func (t *terminal) statusText() string {
	var parts []string
	if tr := t.current; tr != nil {
		of := ""
		if t.total > 0 && tr.Role != trial.RoleConfirm {
			of = fmt.Sprintf(" (%d trials)", t.total)
		}
		parts = append(parts, fmt.Sprintf("%s #%d%s", tr.Role, tr.Number, of), t.stepText(tr))
	}
	if b := t.status.Best; b != nil && b.Value != nil {
		s := fmt.Sprintf("best #%d %s tok/s", b.Number, thousands(*b.Value))
		if gain, ok := t.gain(b); ok {
			s += fmt.Sprintf(" (%+.1f%%)", 100*gain)
		}
		parts = append(parts, s)
	}
	if end := t.status.Plan.End(); !end.IsZero() {
		parts = append(parts, "done about "+end.Local().Format("15:04"))
	}
	if f := t.status.Failed; f != nil {
		parts = append(parts, fmt.Sprintf("last failure #%d %s", f.Number, f.Verdict.Text))
	}
	return strings.Join(parts, " · ")
}

func (t *terminal) stepText(tr *trial.Trial) string {
	p := t.progress
	if p.Number != tr.Number || p.Step != tr.Step {
		return string(tr.Step)
	}
	text := p.Text
	if text == "" {
		text = string(tr.Step)
	}
	text += " " + short(p.Elapsed)
	if p.Expected > 0 {
		text += " of ~" + short(p.Expected)
	}
	if p.Window != nil {
		text += fmt.Sprintf(", now %s tok/s", thousands(p.Window.Output))
	}
	return text
}

func (t *terminal) line(text string) {
	if t.live {
		_, _ = io.WriteString(t.out, "\r\x1b[K")
	}
	_, _ = fmt.Fprintln(t.out, text)
	if t.live {
		t.draw(true)
	}
}

func (t *terminal) emit(v map[string]any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{"kind":"note","text":"an event could not be printed"}`)
	}
	_, _ = fmt.Fprintln(t.out, string(b))
}

func (t *terminal) clock(at time.Time) string { return at.Local().Format("15:04:05") }

// describe lists a configuration as flag value pairs.
func describe(c sglang.Config) string {
	words := make([]string, 0, len(c))
	for _, name := range c.Names() {
		words = append(words, name+" "+c.Text(name))
	}
	return strings.Join(words, ", ")
}
