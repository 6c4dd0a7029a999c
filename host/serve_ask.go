package host

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// keep sees to it that a run gets its keeper. In a step of a Slurm job it must not be our child, because the step ends
// with the link and everything in it: there the batch script is asked for one (ServeOptions.Ask).
func (a *agent) keep(ctx context.Context, f runFolder) error {
	ready := func() bool { return f.has("id") || f.has("failed") }
	if a.Ask == "" {
		return a.spawn(ctx, "keep", string(f), ready)
	}
	if err := writeWhole(filepath.Join(a.Ask, f.key()), nil); err != nil {
		return fmt.Errorf("keep: ask the batch script: %w", err)
	}
	limit, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the batch script did not answer within %s", startTime))
	defer cancel()
	for wait := firstPoll; !ready(); wait = min(2*wait, lastPoll) {
		if !pause(limit, wait) {
			return fmt.Errorf("keep: %w", context.Cause(limit))
		}
	}
	return nil
}

// askBeat lets the batch script know that a sgtune is connected.
func (a *agent) askBeat() error {
	if a.Ask == "" {
		return nil
	}
	now := time.Now()
	return writeWhole(filepath.Join(filepath.Dir(a.Ask), "beat"), fmt.Append(nil, now.Unix(), "\n"))
}
