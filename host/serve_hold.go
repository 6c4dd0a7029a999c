package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	signals "os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// holdLook is how often a holder looks for a beat.
const holdLook = time.Second

// HoldMain is the body of "sgtune-agent hold FOLDER": it takes the lease of this host for the sgtune on another
// machine that is named in the folder, says there how that went, and holds it until it is told to end (SIGTERM) or its
// tenant was not heard for as long as it asked to be waited for. The lease is the one a sgtune on this machine would
// take, so the two exclude each other. Silence is measured by this machine's monotonic clock: setting the time
// changes nothing.
func HoldMain(ctx context.Context, l *Local, folder string) error {
	ctx, stop := signals.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	deaf := make(chan os.Signal, 1)
	signals.Notify(deaf, syscall.SIGHUP)
	defer signals.Stop(deaf)

	f := runFolder(folder)
	release, t, err := holdTake(ctx, l, f)
	answer := response{}
	if err != nil && (t == nil || l.currentHolder().token() != t.Token) { // else an earlier one holds it for the same tenant
		answer.Error = toWire(err)
	}
	if told := f.write("verdict", answer); told != nil || err != nil {
		if release != nil {
			told = errors.Join(told, release())
		}
		return told
	}
	untilSilent(ctx, t)
	err = errors.Join(release(), os.RemoveAll(folder))
	removeIfEmpty(filepath.Dir(folder))
	return err
}

func holdTake(ctx context.Context, l *Local, f runFolder) (func() error, *tenant, error) {
	var args leaseArgs
	if err := f.read("asked", &args); err != nil {
		return nil, nil, fmt.Errorf("lease: %w", err)
	}
	if args.Patience <= 0 {
		return nil, nil, fmt.Errorf("lease: a patience of %s", args.Patience)
	}
	t := &tenant{Token: args.Token, Client: args.Client, Patience: args.Patience, Beat: filepath.Join(string(f), "beat")}
	if err := writeWhole(t.Beat, nil); err != nil {
		return nil, nil, fmt.Errorf("lease: %w", err)
	}
	release, err := l.leaseFor(ctx, args.Who, t)
	return release, t, err
}

// untilSilent returns when the beat has not changed for the tenant's patience, or ctx ends.
func untilSilent(ctx context.Context, t *tenant) {
	var last time.Time
	heard := time.Now()
	for pause(ctx, min(holdLook, t.Patience/4)) {
		info, err := os.Stat(t.Beat)
		if err == nil && !info.ModTime().Equal(last) {
			last, heard = info.ModTime(), time.Now()
		}
		if time.Since(heard) > t.Patience {
			return
		}
	}
}
