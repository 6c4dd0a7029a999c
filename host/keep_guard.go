package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// GuardLimits have a guard (Guard) watch a started process and end it in time. Memory is always watched: MinFree 0 is
// DefaultGuardLine. The tuner's sign of life is that of its lease on a Remote, and a file that this program touches
// on a Local.
type GuardLimits struct {
	MinFree   int64         `json:"min_free,omitempty"`   // bytes, as GuardOptions.MinFree
	TimeLimit time.Duration `json:"time_limit,omitempty"` // ns; 0 = none
	Absence   time.Duration `json:"absence,omitempty"`    // ns without a sign of life of the tuner; 0 = no limit
	Grace     time.Duration `json:"grace,omitempty"`      // ns from SIGTERM to SIGKILL, but for memory

	Evidence string `json:"-"` // file for the samples of a Local's guard, "" = none; those of a Remote lie there, see its Evidence
}

// The guard's files in a run folder, beside those of runFolder.
const (
	guardVerdict  = "guard"       // GuardVerdict
	guardEvidence = "guard.jsonl" // GuardSample, one a line
)

// keepGuard makes the guard that the command asks for, nil for none. A process that has ended already needs none.
func keepGuard(ctx context.Context, l *Local, f runFolder, c wireCommand, id ID) (*Guard, error) {
	if c.Guard == nil {
		return nil, nil
	}
	opts := GuardOptions{
		ID: id, MinFree: c.Guard.MinFree, TimeLimit: c.Guard.TimeLimit, Absence: c.Guard.Absence, Grace: c.Guard.Grace,
		Heartbeat: string(c.Beat), Verdict: f.path(guardVerdict), First: string(f), Evidence: f.path(guardEvidence), GPUs: l.gpus, Clock: l.clock,
	}
	if opts.Heartbeat == "" {
		opts.Absence = 0
	}
	g, err := NewGuard(l, opts)
	if errors.Is(err, ErrNoProcess) && f.has(guardVerdict) { // of the guard before
		return nil, nil
	}
	if errors.Is(err, ErrNoProcess) {
		_ = writeVerdict(opts.Verdict, overBefore(id, l.clock.Now())) // without it the guard has nothing to say
		return nil, nil
	}
	if err == nil {
		err = g.begin(ctx)
	}
	return g, err
}

// keepGuarding guards the process of a run whose keeper has died. Its status will not be known, but that its group is gone.
func keepGuarding(ctx context.Context, l *Local, f runFolder) error {
	var c wireCommand
	k, err := openRun(l, f)
	if err == nil {
		err = f.read("command", &c)
	}
	if err != nil {
		return fmt.Errorf("guard again: %w", err)
	}
	if _, lives := alive(k.id, l.boot); !lives || f.has("rc") {
		return nil
	}
	g, err := keepGuard(ctx, l, f, c, k.id)
	if err != nil || g == nil {
		return err
	}
	if err := f.watching(l); err != nil {
		return err
	}
	steady()
	v, err := g.run(ctx)
	if v.Reason == "" || v.Reason == GuardCancelled || v.KillProblem != "" {
		return err
	}
	return errors.Join(err, keepExit(ctx, f, keptExit{Exit: Exit{Code: -1, At: l.clock.Now()}, GroupGone: true}))
}

// guardInBackground has a guard that has begun watch; the returned function waits for its end.
func guardInBackground(ctx context.Context, g *Guard) (wait func() error) {
	if g == nil {
		return func() error { return nil }
	}
	steady()
	done := make(chan error, 1)
	go func() { // waited for by the returned function
		_, err := g.run(ctx)
		done <- err
	}()
	return func() error { return <-done }
}

// guardAnswer is what a host knows of a run's guard.
type guardAnswer struct {
	Verdict *GuardVerdict `json:"verdict,omitempty"` // nil without a guard, or as long as it has decided nothing
}

// guard tells what the guard of a run decided. Once the process has ended it waits for the guard to be done.
func (a *agent) guard(ctx context.Context, ref processRef) (guardAnswer, error) {
	f, err := folderOf(a.Work, ref.Run)
	if err != nil {
		return guardAnswer{}, err
	}
	waitKeeper(ctx, f)
	v, err := ReadGuardVerdict(f.path(guardVerdict))
	if errors.Is(err, fs.ErrNotExist) {
		return guardAnswer{}, nil
	}
	return guardAnswer{Verdict: &v}, err
}

// waitKeeper gives the keeper of an ended process a moment to put its things in order.
func waitKeeper(ctx context.Context, f runFolder) {
	ctx, cancel := context.WithTimeout(ctx, keeperTime)
	defer cancel()
	for f.has("rc") && f.kept() && pause(ctx, lastWatch) {
	}
}

// evidence reads a piece of what the guard of a run has sampled.
func (a *agent) evidence(_ context.Context, args logArgs) ([]byte, error) {
	f, err := folderOf(a.Work, args.Run)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(f.path(guardEvidence))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	b := make([]byte, max(0, min(args.Limit, longestLog)))
	n, err := file.ReadAt(b, args.Offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// Guarded is what the guard of this process decided; nil when it has none, or when it had nothing to decide yet.
func (p *remoteProcess) Guarded(ctx context.Context) (*GuardVerdict, error) {
	if p.ref.Run == "" {
		return nil, nil
	}
	var told guardAnswer
	if err := p.remote.call(ctx, "guard", p.ref, &told); err != nil {
		return nil, p.remote.told("ask the guard", err)
	}
	return told.Verdict, nil
}

// Evidence writes what the guard of this process has sampled.
func (p *remoteProcess) Evidence(ctx context.Context, w io.Writer) error {
	if p.ref.Run == "" {
		return nil
	}
	for offset := int64(0); ; {
		var b []byte
		if err := p.remote.call(ctx, "evidence", logArgs{Run: p.ref.Run, Offset: offset, Limit: longestLog}, &b); err != nil {
			return p.remote.told("read the guard's evidence", err)
		}
		if len(b) == 0 {
			return nil
		}
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("write the guard's evidence: %w", err)
		}
		offset += int64(len(b))
	}
}
