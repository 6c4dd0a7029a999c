package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	signals "os/signal"
	"syscall"
	"time"
)

// How often a keeper whose process has ended looks whether the rest of the group is gone, too.
const (
	firstLinger = 200 * time.Millisecond
	lastLinger  = 10 * time.Second
)

// KeepMain is the body of "sgtune-agent keep FOLDER": it starts the command that lies in the run folder and stays its
// parent until it ends, so that its exit status is known whatever happens to the link and to sgtune. What it has to say
// lies in the folder; an error means that not even that could be written. A second keeper of one folder does nothing,
// but where the first has died it guards what that one left.
//
// With a marker it stays until the process group is empty: as long as a member lives, the kernel gives the
// number of the group to nobody else, and afterwards nobody must signal it.
func KeepMain(ctx context.Context, l *Local, folder string) error {
	f := runFolder(folder)
	lock, err := f.claim(ctx)
	if err != nil {
		return fmt.Errorf("keep %s: %w", folder, err)
	}
	if lock == nil || f.has("failed") {
		return nil
	}
	defer func() { _ = lock.Close() }()
	// A logout or a careless kill of the group of processes is no reason to lose an exit status. The signals are caught
	// and not ignored: what is ignored would be so in the command, too.
	deaf := make(chan os.Signal, 1)
	signals.Notify(deaf, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signals.Stop(deaf)

	if f.has("id") {
		return keepGuarding(ctx, l, f)
	}
	if err := f.watching(l); err != nil {
		return fmt.Errorf("keep %s: %w", folder, err)
	}
	p, g, err := keepStart(ctx, l, f)
	if err != nil {
		if told := writeWhole(f.path("failed"), []byte(err.Error())); told != nil {
			return fmt.Errorf("keep %s: %w, which could not be told: %w", folder, err, told)
		}
		return nil
	}
	guarded := guardInBackground(ctx, g)
	<-p.Done()
	started, _ := p.(*process) // the only kind that Local starts
	e := keptExit{Exit: p.Exit(), GroupGone: started.groupGone.Load()}
	if f.has("stopped") {
		e.Exit.OOMKilled = false
	}
	if err := keepExit(ctx, f, e); err != nil {
		return fmt.Errorf("keep %s: %w", folder, err)
	}
	if !e.GroupGone && p.ID().Marker != "" {
		err = linger(ctx, f, started, e)
	}
	return errors.Join(err, guarded())
}

// keepStart starts the command of the folder once in the folder's life, with the guard that it asks for. A command that
// cannot be guarded is none that was started.
func keepStart(ctx context.Context, l *Local, f runFolder) (Process, *Guard, error) {
	if f.has("begun") {
		return nil, nil, errors.New("start: the keeper died while it started the command; whether it runs is not known")
	}
	var c wireCommand
	if err := f.read("command", &c); err != nil {
		return nil, nil, fmt.Errorf("start: %w", err)
	}
	if err := errors.Join(f.reserve(), writeWhole(f.path("begun"), nil)); err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	p, err := l.Start(ctx, c.command(f.path("log")))
	if err != nil {
		return nil, nil, err
	}
	g, err := keepGuard(ctx, l, f, c, p.ID())
	if err == nil {
		err = f.write("id", p.ID())
	}
	if err != nil {
		stop, cancel := context.WithTimeout(ctx, runStopTime)
		defer cancel()
		return nil, nil, errors.Join(fmt.Errorf("start %s: %w", c.Argv[0], err), p.Stop(stop, 0))
	}
	return p, g, nil
}

// keepExit writes rc. Where that fails, it is tried again: nobody else knows the status. It gives up when the
// folder was removed, or after a day.
func keepExit(ctx context.Context, f runFolder, e keptExit) error {
	var err error
	for range 24 * 3600 {
		if err = f.writeExit(e); err == nil || !f.has("command") || !pause(ctx, time.Second) {
			break
		}
	}
	return err
}

// linger waits for the process group to be empty and says so in rc.
func linger(ctx context.Context, f runFolder, p *process, e keptExit) error {
	for wait := firstLinger; f.has("rc") && pause(ctx, wait); wait = min(2*wait, lastLinger) {
		all, err := scan()
		if err != nil {
			return err
		}
		if len(p.group(all)) == 0 {
			e.GroupGone = true
			return keepExit(ctx, f, e)
		}
	}
	return context.Cause(ctx)
}
