package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	startTime = 30 * time.Second   // for a keeper to start a command
	keepRuns  = 7 * 24 * time.Hour // runs that ended longer ago are removed
)

// start gives the command to a keeper and waits until it runs. Asked again, for lack of an answer, it finds
// what the first request started.
func (a *agent) start(ctx context.Context, args startArgs) (processRef, error) {
	f, err := folderOf(a.Work, args.Run)
	if err != nil {
		return processRef{}, err
	}
	if args.Lease != "" {
		t, err := a.tenant(args.Lease)
		if err != nil {
			return processRef{}, err
		}
		args.Command.Beat = []byte(t.Beat)
	}
	if !f.has("command") {
		a.prune()
		if err := os.MkdirAll(string(f), 0o700); err != nil {
			return processRef{}, fmt.Errorf("start: %w", err)
		}
		if err := f.write("command", args.Command); err != nil {
			return processRef{}, fmt.Errorf("start: %w", err)
		}
	}
	if !f.has("id") && !f.has("failed") {
		if err := a.keep(ctx, f, func() bool { return f.has("id") || f.has("failed") }); err != nil {
			return processRef{}, err
		}
	}
	if why, err := os.ReadFile(f.path("failed")); err == nil {
		return processRef{}, errors.New(string(why))
	}
	k, err := openRun(a.Host, f)
	if err != nil {
		return processRef{}, err
	}
	return processRef{Run: f.key(), ID: k.id}, nil
}

// undo takes a start back whose caller does not want it any more, whether it has been done, is under way or
// arrives later.
func (a *agent) undo(ctx context.Context, ref processRef) (struct{}, error) {
	f, err := folderOf(a.Work, ref.Run)
	if err != nil {
		return struct{}{}, err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return struct{}{}, fmt.Errorf("take back a start: %w", err)
	}
	if !f.has("id") {
		if err := writeWhole(f.path("failed"), []byte("start: taken back by the caller")); err != nil {
			return struct{}{}, fmt.Errorf("take back a start: %w", err)
		}
	}
	// A keeper that came before us is about to write the identity; one that comes later finds the refusal.
	for wait := firstPoll; !f.has("id") && f.kept(); wait = min(2*wait, lastPoll) {
		if !pause(ctx, wait) {
			return struct{}{}, fmt.Errorf("take back a start: %w", context.Cause(ctx))
		}
	}
	k, err := openRun(a.Host, f)
	if errors.Is(err, ErrNoProcess) {
		return struct{}{}, nil
	}
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, k.stop(ctx, 0)
}

// spawn starts this program in a session of its own, so that nothing that happens to us reaches it, and waits
// until it has done what ready looks for. It may well outlive us.
func (a *agent) spawn(ctx context.Context, word, folder string, ready func() bool) error {
	cmd := &exec.Cmd{
		Path: a.Self[0], Args: slices.Concat(a.Self, []string{word, folder}), Env: probeEnv(),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	trouble, err := os.OpenFile(filepath.Join(folder, "trouble"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", word, err)
	}
	defer func() { _ = trouble.Close() }()
	cmd.Stderr = trouble
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: run the agent once more: %w", word, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // collects it; ends with it, or with us
	limit, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("no answer after %s", startTime))
	defer cancel()
	for wait := firstPoll; !ready(); wait = min(2*wait, lastPoll) {
		select {
		case err := <-ended:
			if ready() {
				return nil
			}
			b, _ := os.ReadFile(trouble.Name())
			if err == nil { // another one is at it
				ended = nil
				continue
			}
			return fmt.Errorf("%s: %w: %s (is the disk of %s full?)", word, err, bytes.TrimSpace(b[max(0, len(b)-500):]), a.Work)
		default:
		}
		if !pause(limit, wait) {
			return fmt.Errorf("%s: %w", word, context.Cause(limit))
		}
	}
	return nil
}

// forget removes the folder of a run that has ended, and with it the log and the status.
func (a *agent) forget(ctx context.Context, ref processRef) (struct{}, error) {
	f, err := folderOf(a.Work, ref.Run)
	if err != nil {
		return struct{}{}, err
	}
	if k, err := openRun(a.Host, f); err == nil {
		if _, over := k.ended(); !over {
			return struct{}{}, fmt.Errorf("forget run %s: pid %d still lives", f.key(), k.id.PID)
		}
	}
	waitKeeper(ctx, f)
	return struct{}{}, os.RemoveAll(string(f))
}

// prune removes runs that ended long ago. It is a tidying on the way: what it cannot remove stays.
func (a *agent) prune() { _, _ = a.removeEnded(keepRuns) }

func (a *agent) removeEnded(age time.Duration) (int, error) {
	all, err := runFolders(a.Work)
	if err != nil {
		return 0, err
	}
	removed := 0
	var failed error
	for _, f := range all {
		if !a.over(f, age) {
			continue
		}
		if err := os.RemoveAll(string(f)); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removed++
	}
	return removed, failed
}

// over reports whether a run has ended, and longer ago than age.
func (a *agent) over(f runFolder, age time.Duration) bool {
	info, err := os.Stat(string(f))
	if err != nil || time.Since(info.ModTime()) < age || f.kept() {
		return false
	}
	if k, err := openRun(a.Host, f); err == nil {
		_, over := k.ended()
		return over
	}
	return age > 0 || time.Since(info.ModTime()) >= startTime // else it may be about to start
}
