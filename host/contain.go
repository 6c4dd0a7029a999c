package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	signals "os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// stopLimit is how long a container that is asked to stop has before the runtime kills it. sgtune's own grace is
	// shorter and ends with its own kill; this is for somebody else's SIGTERM.
	stopLimit = 2 * time.Minute
	drainTime = 5 * time.Second // for the log of a container that has ended
	// containedStart is how long Start waits for the container to run. One that takes longer is watched as one that
	// starts slowly; one that fails earlier was never started.
	containedStart = 20 * time.Second
)

// startContained starts c in a container. The process is this program once more, as the container's holder
// (ContainMain): what it prints, and how it ends, is what the container does.
func (l *Local) startContained(ctx context.Context, c Command) (Process, error) {
	what := filepath.Base(c.Container.Runtime) + " run " + c.Container.Image
	box, err := l.newContained(c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	self := l.self
	if self == nil {
		self = []string{"/proc/self/exe"}
	}
	holder := Command{Argv: append(self[:len(self):len(self)], "contain", string(box.folder)), LogPath: c.LogPath, Marker: c.Marker, Guard: c.Guard}
	p, err := l.Start(ctx, holder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(string(box.folder)))
	}
	if err := box.running(ctx, p); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), runStopTime)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("start %s: %w", what, err), p.Stop(stop, 0))
	}
	return p, nil
}

// running waits until the container runs, for containedStart at most.
func (c *contained) running(ctx context.Context, p Process) error {
	soon, cancel := context.WithTimeout(ctx, containedStart)
	defer cancel()
	for wait := firstWatch; ; wait = min(2*wait, lastWatch) {
		why, err := os.ReadFile(c.folder.path("failed"))
		switch {
		case err == nil:
			return errors.New(string(why))
		case c.folder.has("started"):
			return nil
		}
		select {
		case <-p.Done():
			if why, err := os.ReadFile(c.folder.path("failed")); err == nil {
				return errors.New(string(why))
			}
			return nil // it has run already, and how it ended is known
		default:
		}
		if !pause(soon, wait) {
			return ctx.Err()
		}
	}
}

// containedExit gives the holder of a container the exit of the container, where that is known, and forgets a container
// that is gone. Other processes end as they ended.
func (l *Local) containedExit(marker string, e Exit) Exit {
	if marker == "" {
		return e
	}
	list, err := l.containers(marker)
	if err != nil || len(list) == 0 {
		return e
	}
	end, known := list[0].exit()
	if !known {
		return e
	}
	end.At = e.At // on the host's clock
	end.OOMKilled = end.OOMKilled || e.OOMKilled
	if list[0].folder.has("removed") && !list[0].folder.has("failed") { // who waits for a failure reads why
		_ = os.RemoveAll(string(list[0].folder)) // else the next look removes it
	}
	return end
}

// ContainMain is the body of "sgtune contain FOLDER" and "sgtune-agent contain FOLDER": it makes the container that the
// folder describes, copies its log to out and ends as the container does. SIGTERM stops the container. How the
// container ended is written into the folder before the container is removed. If this process is killed, the container
// lives: the folder tells whoever looks for it (Local.Find).
func ContainMain(ctx context.Context, l *Local, folder string, out io.Writer) (status int, err error) {
	c, err := l.openContained(folder)
	if err != nil {
		return 1, err
	}
	c.apart = false // what kills us ends our words to the runtime, too
	asked := make(chan os.Signal, 8)
	signals.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signals.Stop(asked)
	if status, err = c.make(ctx, out); err != nil {
		_, _ = fmt.Fprintf(out, "sgtune: the container was not started: %v\n", err)
		err = writeWhole(c.folder.path("failed"), []byte(err.Error()))
		return status, errors.Join(err, c.end(ctx, Exit{Code: status, At: time.Now(), Known: true}))
	}
	e := c.watch(ctx, out, asked)
	if err := c.end(ctx, e); err != nil {
		return status, err
	}
	if e.Signal != 0 {
		return 128 + e.Signal, nil
	}
	return e.Code, nil
}

// make makes and starts the container. The status is for the error.
func (c *contained) make(ctx context.Context, out io.Writer) (status int, err error) {
	var packed wireCommand
	if err := c.folder.read("command", &packed); err != nil {
		return 1, err
	}
	self, err := readStat(os.Getpid())
	if err != nil {
		return 1, err
	}
	id := ID{BootID: c.host.boot, PID: self.pid, PGID: self.pgrp, StartTicks: self.startTicks, Marker: c.spec.Marker}
	if err := errors.Join(c.folder.write("holder", id), writeWhole(c.folder.path("begun"), nil)); err != nil {
		return 1, err
	}
	argv, env := runWords(packed.command(""))
	if err := os.Remove(c.folder.path("command")); err != nil { // it may hold secrets
		return 1, err
	}
	cmd := runtimeCommand(ctx, argv, env)
	var words bytes.Buffer
	cmd.Stderr = &words
	if err := cmd.Run(); err != nil {
		status = 125 // as the runtimes themselves say it
		var failed *exec.ExitError
		if errors.As(err, &failed) && failed.ExitCode() > 0 {
			status = failed.ExitCode()
		}
		return status, fmt.Errorf("%s run: %w%s", filepath.Base(c.spec.Runtime), err, lastWords(words.Bytes()))
	}
	if words.Len() > 0 { // warnings
		_, _ = fmt.Fprintf(out, "sgtune: %s run%s\n", filepath.Base(c.spec.Runtime), lastWords(words.Bytes()))
	}
	state, _, _ := c.look(ctx) // it may have ended already; the pid is for the guard
	return 0, c.folder.write("started", containedMain{PID: state.PID})
}

// watch copies the log and forwards the signals until the container has ended, and tells how it did.
func (c *contained) watch(ctx context.Context, out io.Writer, asked <-chan os.Signal) Exit {
	work, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	defer done.Wait()
	defer cancel()
	log := &containerLog{out: out, start: c.logs}
	copied := make(chan struct{})
	following, enough := context.WithCancel(work)
	defer enough()
	done.Go(func() {
		defer close(copied)
		log.follow(following)
	})
	ended := make(chan Exit, 1)
	done.Go(func() { ended <- c.await(work) })
	stopping := false
	for {
		select {
		case s := <-asked:
			if s != syscall.SIGHUP && !stopping {
				stopping = true
				done.Go(func() {
					_, _ = c.tell(work, stopLimit+askLimit, "stop", "-t", strconv.Itoa(int(stopLimit.Seconds())), c.name())
				})
			}
		case e := <-ended:
			enough()
			<-copied
			last, over := context.WithTimeout(work, drainTime)
			defer over()
			if err := log.read(last, false); err != nil {
				_, _ = fmt.Fprintf(out, "sgtune: the end of this log may be missing: %v: %s\n", err, log.trouble)
			}
			return e
		}
	}
}

// logs is one reading of the log.
func (c *contained) logs(ctx context.Context, follow bool, since string) *exec.Cmd {
	argv := []string{c.spec.Runtime, "logs"}
	if follow {
		argv = append(argv, "-f")
	}
	return runtimeCommand(ctx, append(argv, "--timestamps", "--since", since, c.name()), nil)
}

// await waits for the end of the container and tells how it was. A runtime that gives no answer is asked again: its
// daemon may be restarted, and the container lives.
func (c *contained) await(ctx context.Context) Exit {
	for wait := lastWatch; ; wait = min(2*wait, 2*time.Second) {
		_ = runtimeCommand(ctx, []string{c.spec.Runtime, "wait", c.name()}, nil).Run() // inspect tells what it means
		state, there, err := c.look(ctx)
		switch {
		case err != nil:
		case !there: // removed by somebody else
			return Exit{Code: -1, At: time.Now()}
		case state.over():
			return state.exit(time.Now())
		}
		if !pause(ctx, wait) {
			return Exit{Code: -1, At: time.Now()}
		}
	}
}

// end saves how the container ended and then removes it.
func (c *contained) end(ctx context.Context, e Exit) error {
	var err error
	for range 60 {
		if err = c.saveExit(e); err == nil || !pause(ctx, time.Second) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("how container %s ended could not be saved, so it is still there: %w", c.name(), err)
	}
	for range 3 {
		if err = c.remove(ctx); err == nil {
			return writeWhole(c.folder.path("removed"), nil)
		}
		pause(ctx, time.Second)
	}
	return fmt.Errorf("container %s could not be removed: %w", c.name(), err)
}
