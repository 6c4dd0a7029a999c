package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// holder is what the lease file says about who has it.
type holder struct {
	PID        int       `json:"pid"`
	BootID     string    `json:"boot_id"`
	StartTicks uint64    `json:"start_ticks"`
	Who        string    `json:"who"`              // what the caller said, usually the study
	Since      time.Time `json:"since"`            // real time
	Tenant     *tenant   `json:"tenant,omitempty"` // the sgtune elsewhere for which this process holds the lease
}

// Lease takes the lease of this host; see Host. The kernel holds it for us as a file lock, which a
// crash, also kill -9, gives back; children do not inherit it.
func (l *Local) Lease(ctx context.Context, who string) (func() error, error) {
	return l.leaseFor(ctx, who, nil)
}

func (l *Local) leaseFor(ctx context.Context, who string, t *tenant) (func() error, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	path, err := l.leasePath()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lease of host %s: %w", l.leaseName, err)
	}
	if err := l.take(ctx, f, who, t); err != nil {
		return nil, errors.Join(fmt.Errorf("take lease of host %s: %w", l.leaseName, err), f.Close())
	}
	return sync.OnceValue(func() error { return giveBack(f) }), nil
}

func (l *Local) take(ctx context.Context, f *os.File, who string, t *tenant) error {
	before, locked, err := l.lock(ctx, f)
	if err != nil {
		return err
	}
	// Some network file systems grant the lock to everybody: a living holder counts in any case.
	if !locked || before.PID != os.Getpid() && l.holds(before) {
		return leasedBy(before)
	}
	self, err := readStat(os.Getpid())
	if err != nil {
		return err
	}
	return writeHolder(f, holder{
		PID: self.pid, BootID: l.boot, StartTicks: self.startTicks, Who: who, Since: time.Now().UTC(), Tenant: t,
	})
}

// lock tries to lock the file and tells who held the lease before. A lock of a dead holder is tried
// again for a second: a child that it was just starting still shares the lock until its exec, and a
// new holder needs a moment to write its name.
func (l *Local) lock(ctx context.Context, f *os.File) (before holder, locked bool, err error) {
	for range 20 {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return before, false, err
		}
		before = readHolder(f)
		if err == nil || l.holds(before) || !pause(ctx, 50*time.Millisecond) {
			break
		}
	}
	return before, err == nil, nil
}

// holds reports whether the holder named in the file lives.
func (l *Local) holds(h holder) bool {
	_, ok := alive(ID{BootID: h.BootID, PID: h.PID, StartTicks: h.StartTicks}, l.boot)
	return ok
}

func leasedBy(h holder) error {
	if h.PID == 0 {
		return fmt.Errorf("%w by a sgtune that has only just started: try again", ErrLeased)
	}
	if h.Tenant != nil {
		return h.Tenant.refusal(h)
	}
	return fmt.Errorf("%w by %q (pid %d) since %s: wait for it to finish, or stop it cleanly with \"kill -INT %d\"",
		ErrLeased, h.Who, h.PID, h.Since.Local().Format("2006-01-02 15:04:05"), h.PID)
}

// readHolder returns the zero holder when the file names none.
func readHolder(f *os.File) holder {
	b := make([]byte, 64<<10)
	n, _ := f.ReadAt(b, 0) // a short read is the rule, and what is not JSON names nobody
	h, err := parseHolder(b[:n])
	if err != nil {
		return holder{}
	}
	return h
}

func parseHolder(b []byte) (holder, error) {
	var h holder
	if err := json.Unmarshal(b, &h); err != nil {
		return holder{}, err
	}
	if h.PID <= 0 {
		return holder{}, fmt.Errorf("lease holder has pid %d", h.PID)
	}
	return h, nil
}

func writeHolder(f *os.File, h holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt(append(b, '\n'), 0); err != nil {
		return err
	}
	return f.Sync()
}

// giveBack empties the file and lets the lock go, by name and not only by closing: a child that is
// being started in this moment shares it. The file stays: removing it would let two processes lock
// two files of the same name.
func giveBack(f *os.File) error {
	if err := errors.Join(f.Truncate(0), unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close()); err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}

// leasePath names the file after the machine too: home folders are often shared between machines.
func (l *Local) leasePath() (string, error) {
	dir := l.stateDir
	if dir == "" {
		var err error
		if dir, err = defaultStateDir(); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create state folder: %w", err)
	}
	machine, err := os.Hostname()
	if err != nil || machine == "" {
		machine = "unnamed"
	}
	return filepath.Join(dir, "lease-"+filepath.Base(l.leaseName)+"-"+filepath.Base(machine)+".json"), nil
}

func defaultStateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sgtune"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state folder: %w; set XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "sgtune"), nil
}
