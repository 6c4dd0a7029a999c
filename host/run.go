package host

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Limits of Run.
const (
	runTail     = 2 << 10          // bytes of output returned
	runStopTime = 10 * time.Second // to end a command that took too long
)

// Run starts c, waits for it and returns how it ended with the last 2 KiB of its output (none
// without c.LogPath). It is meant for a study's before, after and notify commands. A timeout above
// 0 is real time. A command that takes longer, or whose ctx ends, is killed with its group; that
// and a failed start are errors, an exit status other than 0 is not. What a command that ended by
// itself left running is left alone: starting a service is what after commands are for.
func Run(ctx context.Context, h Host, c Command, timeout time.Duration) (Exit, string, error) {
	p, err := h.Start(ctx, c)
	if err != nil {
		return Exit{}, "", err
	}
	work := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		work, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done after %s", timeout))
		defer cancel()
	}
	last := context.WithoutCancel(ctx) // what follows must work after a cancel too
	select {
	case <-p.Done():
	case <-work.Done():
		stop, cancel := context.WithTimeout(last, runStopTime)
		defer cancel()
		if err := p.Stop(stop, 0); err != nil {
			return Exit{}, "", fmt.Errorf("run %s: %w, then: %w", c.Argv[0], context.Cause(work), err)
		}
		err = fmt.Errorf("run %s: %w; it was killed", c.Argv[0], context.Cause(work))
	}
	output, logErr := tail(last, p)
	if err == nil {
		err = logErr
	}
	if left := Forget(last, p); err == nil {
		err = left
	}
	return p.Exit(), output, err
}

// Forget removes what the host keeps of a process that has ended, where it keeps something: log, exit status and the
// guard's files on a machine at the other end of a link.
func Forget(ctx context.Context, p Process) error {
	if kept, ok := p.(interface{ Forget(context.Context) error }); ok {
		return kept.Forget(ctx)
	}
	return nil
}

// tail returns the last runTail bytes of a log as text.
func tail(ctx context.Context, p Process) (string, error) {
	var end []byte
	for offset := int64(0); ; {
		b, err := p.Log(ctx, offset, 64<<10)
		if err != nil {
			return "", err
		}
		if len(b) == 0 {
			return strings.ToValidUTF8(string(end), "\uFFFD"), nil
		}
		offset += int64(len(b))
		end = append(end, b...)
		end = end[max(0, len(end)-runTail):]
	}
}
