package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Polls of a process that is somebody else's child: the files of its folder, and /proc.
const (
	firstWatch = 5 * time.Millisecond
	lastWatch  = 100 * time.Millisecond
)

// keeperTime is how long a keeper may take to write the status of its dead process.
const keeperTime = 10 * time.Second

// kept is a process with a keeper, seen by any other process of its host.
type kept struct {
	host   *Local
	folder runFolder
	id     ID
}

// openRun returns the process of a run; ErrNoProcess when it was never started.
func openRun(l *Local, f runFolder) (*kept, error) {
	k := &kept{host: l, folder: f}
	err := f.read("id", &k.id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: run %s", ErrNoProcess, f.key())
	}
	return k, err
}

// ended tells how it ended, if it has. A process that is gone without a status (its keeper was killed, or the
// host was started again) has Exit.Known false.
func (k *kept) ended() (keptExit, bool) {
	var e keptExit
	if k.folder.read("rc", &e) == nil {
		return e, true
	}
	if _, ok := alive(k.id, k.host.boot); ok || k.folder.kept() {
		return keptExit{}, false
	}
	if k.folder.read("rc", &e) == nil { // written since we looked
		return e, true
	}
	return keptExit{Exit: Exit{Code: -1, At: k.host.clock.Now()}}, true
}

// wait waits for the end and tells how it was.
func (k *kept) wait(ctx context.Context) (Exit, error) {
	for wait := firstWatch; ; wait = min(2*wait, lastWatch) {
		if e, ok := k.ended(); ok {
			return e.Exit, nil
		}
		if !pause(ctx, wait) {
			return Exit{}, context.Cause(ctx)
		}
	}
}

// readLog reads at most limit bytes of the log.
func (k *kept) readLog(offset int64, limit int) ([]byte, error) {
	p := process{id: k.id, logPath: k.folder.path("log")}
	return p.Log(context.Background(), offset, limit)
}

// stop ends the process and everything it started, as process.Stop does for a child of our own.
func (k *kept) stop(ctx context.Context, grace time.Duration) error {
	k.host.noteMarked(context.WithoutCancel(ctx), k.id.Marker)
	if _, over := k.ended(); !over && grace > 0 && ctx.Err() == nil {
		if err := signal(k.id.PID, k.id.StartTicks, syscall.SIGTERM); err != nil {
			return err
		}
		soft, cancel := context.WithTimeout(ctx, k.host.grace(grace))
		_, err := k.wait(soft) // its error is that the time was up
		cancel()
		_ = err
	}
	if _, ok := alive(k.id, k.host.boot); ok {
		// Not fatal: on a full disk a death by our hand may look like one for lack of memory, no more.
		_ = os.WriteFile(k.folder.path("stopped"), nil, 0o600)
		// Our look and the signal are microseconds apart, and the number is not given away as long as one
		// member lives.
		_ = syscall.Kill(-k.id.PGID, syscall.SIGKILL)
	}
	group := &process{host: k.host, id: k.id}
	if err := end(ctx, group.name(), func(ctx context.Context) ([]procStat, error) {
		if e, over := k.ended(); over && e.GroupGone || k.id.BootID != k.host.boot {
			group.groupGone.Store(true)
		}
		return group.members(ctx)
	}); err != nil {
		return err
	}
	if err := k.host.clearContainers(ctx, k.id.Marker); err != nil {
		return err
	}
	collect, cancel := context.WithTimeout(ctx, keeperTime)
	defer cancel()
	if _, err := k.wait(collect); err != nil {
		return fmt.Errorf("stop %s: exit status not collected: %w", group.name(), err)
	}
	return nil
}

// waitFound waits for the end of a process that has no keeper; its status stays unknown.
func waitFound(ctx context.Context, l *Local, id ID) (Exit, error) {
	for wait := firstWatch; ; wait = min(2*wait, lastWatch) {
		if _, ok := alive(id, l.boot); !ok {
			return Exit{Code: -1, At: l.clock.Now()}, nil
		}
		if !pause(ctx, wait) {
			return Exit{}, context.Cause(ctx)
		}
	}
}
