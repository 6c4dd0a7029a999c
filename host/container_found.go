package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// foundContainer is a container of a trial that an earlier sgtune, or this one, has made and that is still there:
// running, stopped, or made and never started.
type foundContainer struct {
	*contained
	id    ID
	watch sync.Once
	done  chan struct{}
	end   Exit // valid once done is closed
}

// foundContainers lists the containers with a marker that are there. Folders of those that are gone are removed.
func (l *Local) foundContainers(ctx context.Context, marker string) ([]Process, error) {
	list, err := l.containers(marker)
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, c := range list {
		state, there, err := c.look(ctx)
		if err != nil {
			return nil, fmt.Errorf("look for container %s: %w", c.name(), err)
		}
		if there {
			found = append(found, l.foundContainer(c, state.PID))
		} else if !c.held() && c.settled() {
			if err := os.RemoveAll(string(c.folder)); err != nil {
				return nil, fmt.Errorf("forget container %s: %w", c.name(), err)
			}
		}
	}
	return found, nil
}

func (l *Local) foundContainer(c *contained, pid int) *foundContainer {
	id := ID{BootID: l.boot, PID: pid, Marker: c.spec.Marker, Container: c.name(), Argv: []string{c.spec.Runtime, "container", c.name()}}
	if s, err := readStat(pid); pid > 0 && err == nil {
		id.PGID, id.StartTicks = s.pgrp, s.startTicks
	}
	return &foundContainer{contained: c, id: id, done: make(chan struct{})}
}

// openFound returns the container that an identity names; one that is forgotten has ended.
func (l *Local) openFound(id ID) (*foundContainer, error) {
	list, err := l.containers(id.Marker)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: container %s", ErrNoProcess, id.Container)
	}
	return &foundContainer{contained: list[0], id: id, done: make(chan struct{})}, nil
}

// ID names the container; its pid is that of the main process, 0 when none runs.
func (f *foundContainer) ID() ID { return f.id }

// Log is empty: the container's log went to whoever started it.
func (f *foundContainer) Log(ctx context.Context, _ int64, _ int) ([]byte, error) {
	return nil, ctx.Err()
}

// Done is closed once the container is gone. The first call starts the watch, which ends with the container.
func (f *foundContainer) Done() <-chan struct{} {
	f.watch.Do(func() {
		go func() {
			defer close(f.done)
			f.end = f.wait(context.Background())
		}()
	})
	return f.done
}

// wait waits until the container is gone; how it ended is known where somebody saved it.
func (f *foundContainer) wait(ctx context.Context) Exit {
	for {
		e, known := f.exit()
		if _, there, err := f.look(ctx); err == nil && !there || !f.folder.has("container") {
			if !known {
				e = Exit{Code: -1, At: f.host.clock.Now()}
			}
			return e
		}
		if !pause(ctx, time.Second) {
			return Exit{Code: -1, At: f.host.clock.Now()}
		}
	}
}

// Exit is how it ended, the zero Exit while it is there.
func (f *foundContainer) Exit() Exit {
	select {
	case <-f.done:
		return f.end
	default:
		return Exit{}
	}
}

// Stop stops the container, kills it when the grace is over, and removes it once it is known how it ended.
func (f *foundContainer) Stop(ctx context.Context, grace time.Duration) error {
	if seconds := int(f.host.grace(grace).Seconds()); seconds > 0 && ctx.Err() == nil {
		// Not fatal: what did not stop is killed.
		_, _ = f.tell(ctx, grace+askLimit, "stop", "-t", strconv.Itoa(seconds), f.name())
	}
	return f.clear(ctx)
}

// stopContainer is stop for a container.
func (a *agent) stopContainer(ctx context.Context, args stopArgs) error {
	f, err := a.Host.openFound(args.Process.ID)
	if errors.Is(err, ErrNoProcess) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Stop(ctx, args.Grace)
}

// waitContainer is wait for a container.
func (a *agent) waitContainer(ctx context.Context, id ID) (Exit, error) {
	f, err := a.Host.openFound(id)
	if err != nil {
		return Exit{}, err
	}
	return f.wait(ctx), context.Cause(ctx)
}
