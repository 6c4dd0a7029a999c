package tuner

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"sgtune/trial"
)

// notifyLimit bounds all notifications of one message together (real time): a night's end must not wait for
// a web server.
const notifyLimit = 5 * time.Minute

// MessageKind is what a notification is about, for whoever sorts them.
type MessageKind string

// Kinds of a message. All but MessageStuck come once, when the study is over.
const (
	MessageDone    MessageKind = "done"       // it has its verdict, whichever
	MessageStuck   MessageKind = "stuck"      // a server hung; the study goes on. Once in a run of the program
	MessageDirty   MessageKind = "dirty_host" // it stopped: what a trial held was not given back
	MessageHeld    MessageKind = "held"       // it stopped: somebody else holds the host
	MessageBreaker MessageKind = "breaker"    // it stopped: going on makes no sense
	MessageStopped MessageKind = "stopped"    // a person stopped it
	MessageFailed  MessageKind = "failed"     // it stopped for any other reason: a full disk, a before: that failed
)

// Message is what a notification says.
type Message struct {
	Kind      MessageKind `json:"kind"`
	Study     string      `json:"study"`
	State     StudyState  `json:"state"`
	Reason    string      `json:"reason,omitempty"`
	Verdict   *Verdict    `json:"verdict,omitempty"`
	Trial     *int        `json:"trial,omitempty"` // the one it is about, for MessageStuck
	After     string      `json:"after,omitempty"` // result of after: or of the server launched at the end
	Simulated bool        `json:"simulated,omitempty"`
	Text      string      `json:"text"` // all of it in a line
}

// Name is what a notification is called where people read: the program and its words, or the server a URL
// is on. The rest of the address is its secret.
func (n Notify) Name() string {
	if len(n.Run) > 0 {
		return strings.Join(n.Run, " ")
	}
	u, err := url.Parse(n.URL)
	if err != nil || u.Host == "" {
		return "a URL"
	}
	return u.Scheme + "://" + u.Host
}

// kindOfEnd is the kind of the last message of a study that ended so, on a host that was left dirty or not.
func kindOfEnd(ended error, dirty bool) MessageKind {
	switch {
	case ended == nil:
		return MessageDone
	case dirty:
		return MessageDirty
	case errors.Is(ended, ErrHeld):
		return MessageHeld
	case errors.Is(ended, ErrBreaker):
		return MessageBreaker
	case errors.Is(ended, trial.ErrStopped):
		return MessageStopped
	}
	return MessageFailed
}

// tellEnd tells people how the study ended.
func (l *Loop) tellEnd(ctx context.Context, ended error, dirty bool) error {
	r := l.Record
	return l.tell(ctx, Message{
		Kind: kindOfEnd(ended, dirty), State: r.State, Reason: r.Reason, Verdict: r.Verdict, After: r.AfterDone,
	}, fmt.Sprintf("study %s is %s", r.Name, r.State))
}

// tellStuck tells people of the first server in this run of the program that hung: a driver or a machine
// may be ill, and only a person can look. The study goes on meanwhile.
func (l *Loop) tellStuck(ctx context.Context, t *trial.Trial) error {
	if t.Verdict.Outcome != trial.Stuck || t.Void != "" || l.hungTold {
		return nil
	}
	l.hungTold = true
	return l.tell(ctx, Message{Kind: MessageStuck, State: StudyRunning, Trial: &t.Number},
		fmt.Sprintf("study %s: the server of trial %d hung (%s)", l.Record.Name, t.Number, t.Verdict.Text),
		"its host was cleaned and the study goes on; its log is in "+t.Dir)
}

// tell sends one message to everybody who wants one. A failing notification is an event, not an error: the
// night's result stands.
func (l *Loop) tell(ctx context.Context, m Message, words ...string) error {
	if l.Notify == nil || len(l.Study.Finish.Notify) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyLimit)
	defer cancel()
	m.Study, m.Simulated = l.Record.Name, l.Record.Simulated
	m.Text = m.text(words)
	var failed error
	for _, to := range l.Study.Finish.Notify {
		if err := l.Notify(limited, to, m); err != nil {
			failed = errors.Join(failed, l.event(ctx, Event{Kind: "notify", Text: fmt.Sprintf("notification failed: %v", err)}))
		}
	}
	return failed
}

// text is the whole message in a line.
func (m Message) text(words []string) string {
	var parts []string
	if m.Simulated {
		parts = append(parts, "SIMULATED")
	}
	parts = append(parts, words...)
	if m.Verdict != nil {
		parts = append(parts, m.Verdict.Text)
	}
	for _, s := range []string{m.Reason, m.After} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "; ")
}
