package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sgtune/host"
)

// errUnguarded ends a trial whose server nobody watches: it could take the host with it.
var errUnguarded = errors.New("the server could not be left without its guard")

const (
	guardPoll     = time.Second // host time between two looks after the guard
	guardPollReal = time.Second // real time, at least
	mostLosses    = 2           // of the guard in one trial: then it is ended
)

// keptGuarded is a process whose guard is replaced when it dies.
type keptGuarded interface {
	// KeepGuarded sees to it that the process is guarded; lost says what was wrong, the error wraps host.ErrUnguarded when
	// nobody guards it now.
	KeepGuarded(ctx context.Context) (lost string, err error)
}

// keepGuarded looks after the guard of the server as long as that lives. What happened to it is an event and a finding; a
// server that has lost its guard twice, or for good, is ended.
func (w *watch) keepGuarded(ctx context.Context) {
	p, ok := w.process.(keptGuarded)
	if !ok || w.a.Guard == nil {
		return
	}
	for losses := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-w.process.Done():
			return
		case <-w.a.Clock.After(w.a.floor(guardPoll, guardPollReal)):
		}
		lost, err := p.KeepGuarded(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, host.ErrUnguarded):
			w.unguard(err.Error())
			return
		case err != nil || lost == "": // a host that cannot be read is the watch's matter
			continue
		}
		w.remark("guard_lost", lost)
		if losses++; losses == mostLosses {
			how, _, _ := strings.Cut(lost, ";") // what was done about it stands behind
			w.unguard(fmt.Sprintf("it was lost %d times, the last time %s", losses, how))
			return
		}
	}
}

// unguard ends work, and has the server killed without being asked first.
func (w *watch) unguard(why string) {
	w.remark("guard_lost", "the trial is ended: "+why)
	w.a.unguarded.Store(true)
	w.a.abort(fmt.Errorf("%w: %s", errUnguarded, why))
}

// remark notes a finding and tells it at once.
func (w *watch) remark(name, text string) {
	w.mu.Lock()
	w.findings = append(w.findings, Finding{Name: name, Text: text})
	w.mu.Unlock()
	w.a.notice("guard", fmt.Sprintf("trial %d: %s", w.a.t.Number, text))
}

// withoutGuard: the trial was ended because its server had no guard any more. Somebody killed it, or the machine is not
// able to run one.
func withoutGuard(f *Facts) (Verdict, bool) {
	if f.Ending != EndUnguarded {
		return Verdict{}, false
	}
	v := Verdict{Outcome: EnvFault, Phase: furthest(f), Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerun}}
	v.Text = f.Reason + "; find out what ends processes named \"guard\" or \"keep\" on this machine; the configuration is innocent"
	return v, true
}
