package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// keep sees to it that a run gets a keeper, and waits until that has done what ready looks for. In a step of a Slurm job it must not be our child, because the step ends
// with the link and everything in it: there the batch script is asked for one (ServeOptions.Ask).
func (a *agent) keep(ctx context.Context, f runFolder, ready func() bool) error {
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

// askBeat lets the batch script know that a sgtune is connected. Before it has begun, which the folder in which it is asked
// tells, there is nobody who could start anything: the step of a young job may be there first.
func (a *agent) askBeat() error {
	if a.Ask == "" {
		return nil
	}
	if _, err := os.Stat(a.Ask); err != nil {
		return fmt.Errorf("the batch script has not begun: %w", err)
	}
	now := time.Now()
	return writeWhole(filepath.Join(filepath.Dir(a.Ask), "beat"), fmt.Append(nil, now.Unix(), "\n"))
}
