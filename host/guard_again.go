package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// ErrUnguarded is wrapped by KeepGuarded's error: the guard of a living process is gone, and there is no other one.
var ErrUnguarded = errors.New("the server has no guard")

const (
	guardWatcher = "watcher"        // identity (ID) of the process that guards
	guardFirst   = "first"          // guardBeginning
	guardResumes = 10 * time.Second // for another guard to be at work, real time
	guardWakes   = time.Second      // for a stopped one to go on, real time
)

// guardBeginning is how the trial was at the first look of its first guard. A guard that takes over from a dead one
// counts from there: the time limit, the swap, and the clock of the samples.
type guardBeginning struct {
	ID      ID           `json:"id"` // of the guarded process
	Verdict GuardVerdict `json:"verdict"`
}

// resume takes over what the guard before has noted, or notes it for the one after. A verdict of the one before is
// removed: it decided something and died before it was done, so this one decides anew.
func (g *Guard) resume() error {
	if g.opts.First == "" {
		return nil
	}
	var b guardBeginning
	dir, name := runFolder(g.opts.First), guardFirst
	err := dir.read(name, &b)
	if err == nil && b.ID.PID == g.opts.ID.PID && b.ID.StartTicks == g.opts.ID.StartTicks && b.ID.BootID == g.opts.ID.BootID {
		first := b.Verdict
		g.start, g.swapStart = first.Started, first.Before.Swap
		g.verdict.Started, g.verdict.Before, g.verdict.OOMKillsBefore = first.Started, first.Before, first.OOMKillsBefore
		if g.opts.Verdict != "" {
			return removeIfThere(g.opts.Verdict)
		}
		return nil
	}
	return dir.write(name, guardBeginning{ID: g.opts.ID, Verdict: g.verdict})
}

// watching notes that this process is the guard of the folder.
func (f runFolder) watching(l *Local) error {
	s, err := readStat(os.Getpid())
	if err != nil {
		return err
	}
	return f.write(guardWatcher, ID{BootID: l.boot, PID: s.pid, StartTicks: s.startTicks})
}

// watcher is the guard of the folder, and what is wrong with it, "" for nothing. Where none has begun nothing is wrong.
func (f runFolder) watcher(boot string) (id ID, wrong string, err error) {
	if err := f.read(guardWatcher, &id); errors.Is(err, fs.ErrNotExist) {
		return id, "", nil
	} else if err != nil {
		return id, "", err
	}
	s, ok := alive(id, boot)
	switch {
	case !ok:
		return id, fmt.Sprintf("the guard of the server (pid %d) has died", id.PID), nil
	case s.state == 'T':
		return id, fmt.Sprintf("the guard of the server (pid %d) was stopped by a signal", id.PID), nil
	}
	return id, "", nil
}

// keepGuarded looks after the guard of a process, whose files lie in f. One that was stopped is told to go on; for one
// that has died, or does not go on, another one is started by again. lost says what was wrong, "" for nothing.
func (l *Local) keepGuarded(ctx context.Context, f runFolder, id ID, again func(context.Context) error) (lost string, err error) {
	guard, wrong, err := f.watcher(l.boot)
	if err != nil || wrong == "" {
		return "", err
	}
	if _, ok := alive(id, l.boot); !ok { // its guard has ended with it
		return "", nil
	}
	if l.wake(ctx, f, guard) {
		return wrong + " and goes on", nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, guardResumes, fmt.Errorf("no answer within %s", guardResumes))
	defer cancel()
	if err := again(ctx); err != nil {
		if _, ok := alive(id, l.boot); !ok {
			return "", nil
		}
		return "", fmt.Errorf("%w: %s, and another one cannot be had: %w", ErrUnguarded, wrong, err)
	}
	return wrong + "; another one watches it now", nil
}

// wake has a stopped guard go on, and reports whether it does. One that does not is ended.
func (l *Local) wake(ctx context.Context, f runFolder, guard ID) bool {
	if _, ok := alive(guard, l.boot); !ok {
		return false
	}
	if signal(guard.PID, guard.StartTicks, syscall.SIGCONT) != nil {
		return false // somebody else's: another guard is asked for, which tells that the files are in use
	}
	ctx, cancel := context.WithTimeout(ctx, guardWakes)
	defer cancel()
	for pause(ctx, lastWatch) {
		if _, wrong, err := f.watcher(l.boot); err == nil && wrong == "" {
			return true
		}
	}
	_ = signal(guard.PID, guard.StartTicks, syscall.SIGKILL)
	for range int(guardEnds / lastWatch) {
		if _, ok := alive(guard, l.boot); !ok {
			break
		}
		time.Sleep(lastWatch)
	}
	return false
}

// KeepGuarded sees to it that the process is guarded as long as it lives: a guard that has died is replaced, one that was
// stopped goes on. lost says in words what was wrong, "" for nothing. The error wraps ErrUnguarded when nobody guards the
// process now; any other means that this could not be found out. It is to be called each second.
func (p *process) KeepGuarded(ctx context.Context) (lost string, err error) {
	g := p.guardNow()
	if g == nil {
		return "", nil
	}
	return p.host.keepGuarded(ctx, g.folder, p.id, func(ctx context.Context) error {
		next, err := p.host.anotherGuard(ctx, g.folder, p.id)
		if err != nil {
			return err
		}
		p.guarding.Lock()
		defer p.guarding.Unlock()
		p.guard = next
		return nil
	})
}

func (p *process) guardNow() *guardProcess {
	p.guarding.Lock()
	defer p.guarding.Unlock()
	return p.guard
}

// anotherGuard starts a guard for a process whose own has died, by the job that lies in the folder.
func (l *Local) anotherGuard(ctx context.Context, f runFolder, id ID) (*guardProcess, error) {
	var job guardJob
	if err := f.read(guardTask, &job); err != nil {
		return nil, err
	}
	job.Now, job.Scale = l.clock.Now(), l.clock.Scale()
	g, err := l.runGuard(f)
	if err != nil {
		return nil, err
	}
	for _, line := range []any{job, id} {
		if err := g.tell(ctx, line); err != nil {
			return nil, errors.Join(err, g.dismiss())
		}
	}
	return g, errors.Join(g.in.Close(), g.out.Close())
}

// guardCheck is the answer to "reguard".
type guardCheck struct {
	Lost    string `json:"lost,omitempty"`
	Problem string `json:"problem,omitempty"` // an ErrUnguarded
}

// keepGuarded looks after the guard of a run, which is its keeper. Another keeper cannot learn how the process ends.
func (a *agent) keepGuarded(ctx context.Context, ref processRef) (guardCheck, error) {
	f, err := folderOf(a.Work, ref.Run)
	if err != nil {
		return guardCheck{}, err
	}
	var c wireCommand
	if err := f.read("command", &c); errors.Is(err, fs.ErrNotExist) || err == nil && c.Guard == nil {
		return guardCheck{}, nil
	} else if err != nil {
		return guardCheck{}, err
	}
	lost, err := a.Host.keepGuarded(ctx, f, ref.ID, func(ctx context.Context) error {
		return a.keep(ctx, f, func() bool {
			_, wrong, err := f.watcher(a.Host.boot)
			return err == nil && wrong == "" || f.has("rc")
		})
	})
	if errors.Is(err, ErrUnguarded) {
		return guardCheck{Problem: err.Error()}, nil
	}
	return guardCheck{Lost: lost}, err
}

// KeepGuarded is that of a process which this sgtune started on its own machine; see there. The machine must be reached
// for it.
func (p *remoteProcess) KeepGuarded(ctx context.Context) (lost string, err error) {
	if p.ref.Run == "" {
		return "", nil
	}
	var told guardCheck
	if err := p.remote.call(ctx, "reguard", p.ref, &told); err != nil {
		return "", p.remote.told("look after the guard", err)
	}
	if told.Problem != "" {
		return "", unguarded(told.Problem)
	}
	return told.Lost, nil
}

// unguarded is an ErrUnguarded in the words of another machine.
type unguarded string

// Error implements error.
func (u unguarded) Error() string { return string(u) }

// Is makes errors.Is work across the link.
func (u unguarded) Is(target error) bool { return target == ErrUnguarded }
