package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	signals "os/signal"
	"runtime"
	"syscall"
	"time"
)

// Pauses of a keeper before it starts its server again: they grow while the server keeps dying, and begin anew once it
// has lived for steadyTime.
const (
	firstRestart = time.Second
	lastRestart  = 5 * time.Minute
	steadyTime   = 10 * time.Minute
)

// KeeperSays stands in each line that a keeper itself adds to the log of its server.
const KeeperSays = "sgtune keeper"

// logEnd is how long a dead server's output may still be on its way.
const logEnd = 5 * time.Second

// StayMain is the body of a keeper: it runs the server that lies in the folder, and again whenever that ends, until it is
// told to end (SIGTERM); then it ends the server first. Each time nothing of the server before is left. mask is put
// before the log. A second keeper of one folder does nothing.
//
// The server cannot outlive its keeper: it would lose its log and whoever starts it again.
func StayMain(ctx context.Context, l *Local, folder string, mask func(w io.Writer, secrets ...string) MaskedLog) error {
	f := runFolder(folder)
	lock, err := f.lock()
	if err != nil {
		return fmt.Errorf("stay %s: %w", folder, err)
	}
	if lock == nil {
		return nil
	}
	defer func() { _ = lock.Close() }()
	ctx, stop := signals.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	deaf := make(chan os.Signal, 1)
	signals.Notify(deaf, syscall.SIGHUP, syscall.SIGPIPE)
	defer signals.Stop(deaf)
	runtime.LockOSThread() // the server dies with the thread that started it, see once
	defer runtime.UnlockOSThread()

	k := &stay{folder: f, host: l, file: &boundedLog{path: f.path(residentLogName), limit: residentLogSize}}
	defer k.file.close()
	if err := f.read("order", &k.order); err != nil {
		return fmt.Errorf("stay %s: %w", folder, err)
	}
	k.log = mask(k.file, k.order.Secrets...)
	_ = f.read("state", &k.state) // of a keeper before this one
	self, err := readStat(os.Getpid())
	if err != nil {
		return fmt.Errorf("stay %s: %w", folder, err)
	}
	k.state.Keeper, k.state.Server, k.state.Stopped = ID{BootID: l.boot, PID: self.pid, PGID: self.pgrp, StartTicks: self.startTicks}, ID{}, false
	return k.run(ctx)
}

// stay is one keeper.
type stay struct {
	folder runFolder
	host   *Local
	order  residentOrder
	state  residentState
	file   *boundedLog
	log    MaskedLog
}

func (k *stay) run(ctx context.Context) error {
	wait := firstRestart
	for {
		sweep, cancel := context.WithTimeout(context.WithoutCancel(ctx), dismissTime)
		err := sweepServer(sweep, string(k.folder))
		cancel()
		if err == nil {
			begun := time.Now()
			err = k.once(ctx)
			if time.Since(begun) > steadyTime {
				wait = firstRestart
			}
		}
		if ctx.Err() != nil {
			k.state.Stopped = true
			err := errors.Join(k.save(), sweepServer(context.WithoutCancel(ctx), string(k.folder)))
			for _, name := range []string{"order", "keeper"} { // the order holds secrets
				err = errors.Join(err, os.Remove(k.folder.path(name)))
			}
			return err
		}
		k.say("%v; it is started again in %s", err, wait)
		if pause(ctx, wait) {
			wait = min(2*wait, lastRestart)
		}
	}
}

// once runs the server to its end, which the error tells.
func (k *stay) once(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	from, to, err := os.Pipe()
	if err != nil {
		return k.ended(fmt.Errorf("could not be started: %w", err))
	}
	cmd := &exec.Cmd{
		Path: k.order.Path, Args: texts(k.order.Argv), Env: texts(k.order.Env), Dir: string(k.order.Dir), Stdout: to, Stderr: to,
		// Pdeathsig comes when this thread ends, not the process: the caller has locked it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM},
	}
	k.state.Starts, k.state.Since = k.state.Starts+1, time.Now().UTC()
	err = cmd.Start()
	_ = to.Close() // the server has its own
	if err != nil {
		_ = from.Close()
		return k.ended(fmt.Errorf("could not be started: %w", err))
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(k.log, from) // ends with the server's last process, or with from
	}()
	k.state.Server = ID{BootID: k.host.boot, PID: cmd.Process.Pid, PGID: cmd.Process.Pid}
	if s, err := readStat(cmd.Process.Pid); err == nil { // cannot be collected yet: we are the parent
		k.state.Server.StartTicks = s.startTicks
	}
	if err := k.save(); err != nil {
		k.say("%v", err)
	}
	err = k.await(ctx, cmd)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails when nobody is left of the group
	swept, cancel := context.WithTimeout(context.WithoutCancel(ctx), dismissTime)
	defer cancel()
	left := sweepServer(swept, string(k.folder))
	t := time.AfterFunc(logEnd, func() { _ = from.Close() })
	<-copied
	t.Stop()
	_ = from.Close()  // twice does no harm
	_ = k.log.Flush() // a bounded log takes everything
	return errors.Join(k.ended(err), left)
}

// await waits for the server's end, or brings it about when ctx ends.
func (k *stay) await(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails when it has just ended
		t := time.AfterFunc(residentGrace, func() { _ = cmd.Process.Kill() })
		err = <-done
		t.Stop()
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	return err
}

// ended notes how the server ended.
func (k *stay) ended(err error) error {
	k.state.Server, k.state.Ended = ID{}, err.Error()
	return errors.Join(fmt.Errorf("the server ended: %w", err), k.save())
}

func (k *stay) save() error { return k.folder.write("state", k.state) }

// say adds a line of the keeper's own to the server's log.
func (k *stay) say(format string, args ...any) {
	_, _ = fmt.Fprintf(k.log, "[%s %s] %s\n", time.Now().UTC().Format("2006-01-02 15:04:05"), KeeperSays, fmt.Sprintf(format, args...))
}
