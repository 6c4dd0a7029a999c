package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// firstBoot names the first start of the folder's machine.
func firstBoot(t *testing.T, dir string) { t.Helper(); put(t, dir, bootIDFile, "first-boot\n") }

// rebooted starts the machine anew: its agents are gone, and the sgtune that had the lease. The process of before
// lives on and so plays the worst stranger, who got its number and even its start time: nobody touches it.
func rebooted(t *testing.T, f Fixture) {
	other := anotherTuner(t, f)
	p, err := f.Start(t.Context(), host.Command{
		Argv: []string{os.Args[0]}, Env: map[string]string{HelperEnv: "sleep"}, LogPath: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	stranger := p.ID()
	defer func() { _ = syscall.Kill(stranger.PID, syscall.SIGKILL) }()
	if stranger.BootID != "first-boot" {
		t.Fatalf("%+v: not of the first boot", stranger)
	}
	FirstLine(t, p)
	kill(other)
	killAgents(t, f.Dir)
	put(t, f.Dir, bootIDFile, "second-boot\n")
	leaseOf(t, f.Dir, stranger)

	begin := time.Now()
	next := f.open(t, f.Dir)
	release, err := next.Lease(t.Context(), "night after")
	if err != nil {
		t.Errorf("the lease of before the restart: %v", err)
	} else {
		defer func() {
			if err := release(); err != nil {
				t.Error(err)
			}
		}()
	}
	u, err := next.Usage(t.Context())
	if err != nil || u.BootID != "second-boot" {
		t.Errorf("boot id %q, %v", u.BootID, err)
	}
	recovered(t, begin)
	storedIsSpared(t, next, stranger)
	if f.Kept { // this sgtune was on another machine, and lives
		if e := Wait(t, p); e.Known || e.Code != -1 {
			t.Errorf("%+v: nobody can know", e)
		}
		Stop(t, p, time.Hour)
	}
	after := Fixture{Host: next, Suite: f.Suite, Dir: f.Dir, Marker: f.Marker}
	if id := after.Helper(t, "sleep").ID(); id.BootID != "second-boot" {
		t.Errorf("started after the restart: %+v", id)
	}
	if len(living(stranger.PID)) != 1 {
		t.Error("the stranger was killed")
	}
}

// storedIsSpared attaches to a stored identity, if the host can, and stops what it gets.
func storedIsSpared(t *testing.T, h host.Host, id host.ID) {
	t.Helper()
	a, ok := h.(attacher)
	if !ok {
		return
	}
	q, err := a.Attach(t.Context(), id)
	if errors.Is(err, host.ErrNoProcess) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if e := Wait(t, q); e.Known || e.Code != -1 {
		t.Errorf("of an earlier boot: %+v", e)
	}
	Stop(t, q, time.Hour)
}

// attacher is a host that finds a process by its stored identity.
type attacher interface {
	Attach(ctx context.Context, id host.ID) (host.Process, error)
}

// leaseOf has the lease file of a folder's host name a living process, as of the boot that it was written in.
func leaseOf(t *testing.T, dir string, id host.ID) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(e.Name(), "lease-") {
			return err
		}
		var file map[string]any
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &file)
		}
		if err != nil {
			return err
		}
		if file["boot_id"] != "first-boot" {
			t.Errorf("the lease is of boot %v", file["boot_id"])
		}
		file["pid"], file["start_ticks"] = id.PID, id.StartTicks
		if b, err = json.Marshal(file); err != nil {
			return err
		}
		n++
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil || n != 1 {
		t.Fatalf("%d leases, %v", n, err)
	}
}
