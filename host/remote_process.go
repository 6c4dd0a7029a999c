package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// stopAnswer is how long Stop waits for the agent's last word after its own context has ended.
const stopAnswer = 10 * time.Second

// remoteProcess is a process on a machine at the other end of a link.
type remoteProcess struct {
	remote *Remote
	ref    processRef

	logPath  string // our file for what is read of the log, "" = none
	copyBase int64  // size of that file before the start
	copying  sync.Mutex
	copied   int64 // bytes of the log that are in the file

	watch sync.Once
	done  chan struct{}
	exit  Exit // valid once done is closed
}

// ID is the identity that the process has on its machine.
func (p *remoteProcess) ID() ID { return p.ref.ID }

// Log reads the log on the machine; see Process. What is new of it is appended to the file named at the start.
func (p *remoteProcess) Log(ctx context.Context, offset int64, limit int) ([]byte, error) {
	if p.ref.Run == "" || limit <= 0 {
		return nil, ctx.Err()
	}
	var b []byte
	if err := p.remote.call(ctx, "log", logArgs{Run: p.ref.Run, Offset: offset, Limit: limit}, &b); err != nil {
		return nil, p.remote.told("", err)
	}
	if err := p.copy(offset, b); err != nil {
		return nil, fmt.Errorf("copy log of pid %d on %s: %w", p.ref.ID.PID, p.remote, err)
	}
	if len(b) == 0 {
		return nil, nil
	}
	return b, nil
}

// copy adds to our file what it does not have yet.
func (p *remoteProcess) copy(offset int64, b []byte) error {
	p.copying.Lock()
	defer p.copying.Unlock()
	have := p.copied - offset // bytes of b that are in the file
	if p.logPath == "" || have < 0 || have >= int64(len(b)) {
		return nil
	}
	f, err := os.OpenFile(p.logPath, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	n, err := f.WriteAt(b[have:], p.copyBase+p.copied)
	p.copied += int64(n)
	return errors.Join(err, f.Close())
}

// Done is closed when the process has ended. A link that is down delays it. The first call starts the watch,
// which ends with the process or with Remote.Close.
func (p *remoteProcess) Done() <-chan struct{} {
	p.watch.Do(func() { p.remote.background(p.await) })
	return p.done
}

// await asks for the end until it has come. A dropped link is no end, however long it lasts.
func (p *remoteProcess) await(ctx context.Context) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := p.remote.call(ctx, "wait", p.ref, &p.exit)
		if errors.Is(err, ErrNoProcess) { // its folder was removed, so it has ended
			p.exit, err = Exit{Code: -1, At: p.remote.clock.Now()}, nil
		}
		if err == nil {
			close(p.done)
			return
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// Exit is how it ended, the zero Exit while it lives.
func (p *remoteProcess) Exit() Exit {
	select {
	case <-p.done:
		return p.exit
	default:
		return Exit{}
	}
}

// Stop ends the process and everything it started; see Process. When ctx ends before that, the agent kills at
// once and has a moment to say what is left.
func (p *remoteProcess) Stop(ctx context.Context, grace time.Duration) error {
	args := stopArgs{Process: p.ref, Grace: grace, Over: ctx.Err() != nil}
	err := p.stop(ctx, args)
	if ctx.Err() == nil {
		if err != nil {
			return p.remote.told("", err)
		}
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopAnswer)
	defer cancel()
	args.Over = true
	if err = p.stop(last, args); err == nil {
		return nil
	}
	return fmt.Errorf("on %s: %w: %w", p.remote, context.Cause(ctx), err)
}

// stop asks once, and waits for the status.
func (p *remoteProcess) stop(ctx context.Context, args stopArgs) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := p.remote.call(ctx, "stop", args, &struct{}{}); err != nil {
		return err
	}
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop pid %d: exit status not collected: %w", p.ref.ID.PID, context.Cause(ctx))
	}
}

// Forget removes the log and the status that the machine keeps of a process that has ended. Until then, or for a
// week, they can be read by any sgtune that knows its identity.
func (p *remoteProcess) Forget(ctx context.Context) error {
	if p.ref.Run == "" {
		return nil
	}
	if err := p.remote.call(ctx, "forget", p.ref, &struct{}{}); err != nil {
		return p.remote.told("", err)
	}
	return nil
}
