package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a file system that grants every lock, the holder named in the file still counts.
func TestLeaseWithoutLocks(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{StateDir: t.TempDir()})
	path, err := l.leasePath()
	if err != nil {
		t.Fatal(err)
	}
	other := sleeper(t)
	living := holder{PID: other.pid, BootID: l.boot, StartTicks: other.startTicks, Who: "the other study"}
	for _, c := range []struct {
		name   string
		holder holder
		taken  bool
	}{
		{"living", living, true},
		{"pid reused", holder{PID: living.PID, BootID: l.boot, StartTicks: living.StartTicks - 1}, false},
		{"before a reboot", holder{PID: living.PID, BootID: "before", StartTicks: living.StartTicks}, false},
		{"ourselves", holder{PID: os.Getpid(), BootID: l.boot}, false},
		{"nobody", holder{}, false},
	} {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(writeHolder(f, c.holder), f.Close()); err != nil {
			t.Fatal(err)
		}
		release, err := l.Lease(t.Context(), "us")
		if errors.Is(err, ErrLeased) != c.taken || err != nil && !strings.Contains(err.Error(), "the other study") {
			t.Errorf("%s: %v", c.name, err)
		}
		if release != nil {
			if err := release(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestLeaseFileIsPrivateAndNamed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "state")
	release, err := NewLocal(LocalOptions{StateDir: dir, LeaseName: "../odd/name"}).Lease(t.Context(), "us")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || !strings.HasPrefix(files[0].Name(), "lease-name-") {
		t.Fatalf("%v, %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestDefaultStateDir(t *testing.T) {
	for _, c := range []struct{ xdg, home, want string }{
		{"/state", "/home/u", "/state/sgtune"},
		{"", "/home/u", "/home/u/.local/state/sgtune"},
		{"relative", "/home/u", "/home/u/.local/state/sgtune"},
	} {
		t.Setenv("XDG_STATE_HOME", c.xdg)
		t.Setenv("HOME", c.home)
		if got, err := defaultStateDir(); got != c.want || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := defaultStateDir(); err == nil || !strings.Contains(err.Error(), "set XDG_STATE_HOME") {
		t.Errorf("%q, %v", got, err)
	}
}
