package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// client says which sgtune is at the other end of a link.
type client struct {
	User       string `json:"user"`
	Machine    string `json:"machine"`
	BootID     string `json:"boot_id"`
	PIDs       string `json:"pids"` // the pid namespace: in another one the pid means another process
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
}

func (c client) String() string { return fmt.Sprintf("pid %d of %s@%s", c.PID, c.User, c.Machine) }

// tenant is the sgtune on another machine for which a process of this one holds the lease.
type tenant struct {
	Token    string        `json:"token"` // proves that a request comes from the tenant
	Client   client        `json:"client"`
	Patience time.Duration `json:"patience"` // ns
	Beat     string        `json:"beat"`     // file whose time changes whenever the tenant is heard
}

// refusal is the error for everybody else.
func (t *tenant) refusal(h holder) error {
	heard := "now"
	if info, err := os.Stat(t.Beat); err == nil {
		if ago := time.Since(info.ModTime()).Round(time.Second); ago > renewEvery {
			heard = ago.String() + " ago"
		}
	}
	told := *t
	text := fmt.Sprintf("%v by %q (%s) since %s, last heard %s: wait for it to finish, or stop it there with Ctrl-C; it loses the host after %s of silence",
		ErrLeased, h.Who, t.Client, h.Since.Local().Format("2006-01-02 15:04:05"), heard, t.Patience)
	return &wireError{Text: text, Kind: kindLeased, Holder: &told}
}

// token is that of the tenant, "" when there is none.
func (h holder) token() string {
	if h.Tenant == nil {
		return ""
	}
	return h.Tenant.Token
}

// currentHolder is who has the lease now, by the lease file; the zero holder when nobody alive is named in it.
func (l *Local) currentHolder() holder {
	path, err := l.leasePath()
	if err != nil {
		return holder{}
	}
	f, err := os.Open(path)
	if err != nil {
		return holder{}
	}
	defer func() { _ = f.Close() }()
	if h := readHolder(f); l.holds(h) {
		return h
	}
	return holder{}
}

// tenant returns the lease's tenant if the token is its own; else the error names who has the lease.
func (a *agent) tenant(token string) (*tenant, error) {
	h := a.Host.currentHolder()
	switch {
	case h.Tenant != nil && h.Tenant.Token == token:
		return h.Tenant, nil
	case h.PID != 0:
		return nil, leasedBy(h)
	}
	return nil, &wireError{Kind: kindLeased, Text: "the lease of this host is lost: this sgtune was not heard for too long"}
}

// lease has a holder take the lease for the caller (HoldMain), so that a dropped link does not lose it. It is
// taken from the holder named in Evict, whose sgtune the caller has seen dead.
func (a *agent) lease(ctx context.Context, args leaseArgs) (struct{}, error) {
	folder, err := a.leaseFolder(args.Token)
	if err != nil {
		return struct{}{}, err
	}
	if h := a.Host.currentHolder(); h.Tenant != nil {
		switch h.Tenant.Token {
		case args.Token:
			return struct{}{}, beat(h.Tenant.Beat)
		case args.Evict:
			if err := a.dismiss(ctx, h); err != nil {
				return struct{}{}, err
			}
		default:
			return struct{}{}, leasedBy(h)
		}
	}
	verdict := filepath.Join(folder, "verdict")
	if err := errors.Join(os.MkdirAll(folder, 0o700), removeIfThere(verdict)); err != nil {
		return struct{}{}, fmt.Errorf("lease: %w", err)
	}
	args.Evict = ""
	f := runFolder(folder)
	if err := f.write("asked", args); err != nil {
		return struct{}{}, fmt.Errorf("lease: %w", err)
	}
	if err := a.spawn(ctx, "hold", folder, func() bool { return f.has("verdict") }); err != nil {
		return struct{}{}, err
	}
	var told response
	if err := f.read("verdict", &told); err != nil {
		return struct{}{}, fmt.Errorf("lease: %w", err)
	}
	if told.Error != nil {
		return struct{}{}, errors.Join(told.Error, os.RemoveAll(folder))
	}
	return struct{}{}, nil
}

// renew keeps the lease for another while.
func (a *agent) renew(_ context.Context, args leaseArgs) (struct{}, error) {
	t, err := a.tenant(args.Token)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, beat(t.Beat)
}

// release gives the lease back. Without a holder there is nothing to give.
func (a *agent) release(ctx context.Context, args leaseArgs) (struct{}, error) {
	h := a.Host.currentHolder()
	if h.token() != args.Token {
		return struct{}{}, nil
	}
	return struct{}{}, a.dismiss(ctx, h)
}

// dismiss asks a holder to give the lease back, and waits for it.
func (a *agent) dismiss(ctx context.Context, h holder) error {
	if err := signal(h.PID, h.StartTicks, syscall.SIGTERM); err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if _, err := waitFound(ctx, a.Host, ID{BootID: h.BootID, PID: h.PID, StartTicks: h.StartTicks}); err != nil {
		return fmt.Errorf("release lease: pid %d does not end: %w", h.PID, err)
	}
	return nil
}

func (a *agent) leaseFolder(token string) (string, error) {
	if token == "" || strings.Trim(token, "0123456789abcdef") != "" || len(token) > 100 {
		return "", fmt.Errorf("lease: %q is no token", token)
	}
	return filepath.Join(a.Work, "lease", token), nil
}

// beat notes that the tenant was heard.
func beat(path string) error {
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
