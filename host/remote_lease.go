package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// renewEvery is how often a holder of a lease is heard, if its patience does not ask for more.
const renewEvery = 10 * time.Second

// releaseTime is how long giving the lease back may take, in vain repetitions over a dropped link included.
const releaseTime = 30 * time.Second

// Lease takes the lease of the machine; see Host. It is held there for us, for as long as the link may be down
// (RemoteOptions.Patience). The lease of a sgtune that ran on this machine and is dead is taken over at once; one
// that ran elsewhere must have been silent for its patience. A Start after the lease was lost fails with ErrLeased.
func (r *Remote) Lease(ctx context.Context, holder string) (func() error, error) {
	args := leaseArgs{Token: newToken(), Who: holder, Client: self(), Patience: r.patience}
	err := r.call(ctx, "lease", args, &struct{}{})
	var told *wireError
	if errors.As(err, &told) && told.Holder != nil && told.Holder.Client.dead() {
		args.Evict = told.Holder.Token
		err = r.call(ctx, "lease", args, &struct{}{})
		args.Evict = ""
	}
	if err != nil {
		return nil, r.told("", err)
	}
	r.mu.Lock()
	r.lease = args.Token
	r.mu.Unlock()
	work, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	if !r.background(func(ctx context.Context) {
		defer close(ended)
		defer context.AfterFunc(ctx, end)()
		r.renew(work, args)
	}) {
		close(ended)
	}
	return sync.OnceValue(func() error {
		end()
		<-ended
		r.mu.Lock()
		r.lease = ""
		r.mu.Unlock()
		ctx, cancel := context.WithTimeoutCause(context.Background(), releaseTime, fmt.Errorf("no answer within %s", releaseTime))
		defer cancel()
		if err := r.call(ctx, "release", leaseArgs{Token: args.Token}, &struct{}{}); err != nil {
			return fmt.Errorf("release lease of %s: %w; it is free after %s", r, err, r.patience)
		}
		return nil
	}), nil
}

// renew lets the holder hear of us until ctx ends. A lease that was lost in a long silence is taken again if
// nobody has it; if somebody has, the next Start is told.
func (r *Remote) renew(ctx context.Context, args leaseArgs) {
	t := time.NewTicker(min(renewEvery, r.patience/5))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := r.call(ctx, "renew", args, &struct{}{}); errors.Is(err, ErrLeased) {
			_ = r.call(ctx, "lease", args, &struct{}{})
		}
	}
}

// newToken is a random name that nobody guesses or has had before.
func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

// self says who we are to a machine whose lease we ask for.
func self() client {
	c := client{User: os.Getenv("USER"), PID: os.Getpid()}
	if c.User == "" {
		c.User = fmt.Sprintf("uid %d", os.Getuid())
	}
	c.Machine, _ = os.Hostname()
	c.BootID, _ = bootID("")
	c.PIDs, _ = os.Readlink("/proc/self/ns/pid")
	if s, err := readStat(c.PID); err == nil {
		c.StartTicks = s.startTicks
	}
	return c
}

// dead reports whether the sgtune is for certain no more: it ran in this boot of this machine, and its pid is free
// or another's.
func (c client) dead() bool {
	here := self()
	if c.BootID == "" || c.BootID != here.BootID || c.PIDs == "" || c.PIDs != here.PIDs {
		return false
	}
	_, ok := alive(ID{BootID: c.BootID, PID: c.PID, StartTicks: c.StartTicks}, here.BootID)
	return !ok
}
