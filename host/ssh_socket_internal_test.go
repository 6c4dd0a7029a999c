package host

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// What a killed sgtune has left is removed; what has the number of none here, but was made in another pid namespace, is
// that of a sgtune that may live.
func TestSweepSparesOtherNamespaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, other := filepath.Join(dir, "c4194303-"+pidSpace()+"0000"), filepath.Join(dir, "c4194303-zzzz0000")
	for _, path := range []string{ours, other} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sweepSockets(dir, "no-such-program")
	if _, err := os.Lstat(ours); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of a dead sgtune: %v", err)
	}
	if _, err := os.Lstat(other); err != nil {
		t.Errorf("the socket of another namespace: %v", err)
	}
}

// Two links of one process, and of two processes of one number, never share a connection.
func TestSocketNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		l, err := NewSSH(SSHOptions{Address: "gpu-box"})
		if err != nil {
			t.Fatal(err)
		}
		if seen[l.control()] {
			t.Errorf("%s twice", l.control())
		}
		seen[l.control()] = true
	}
}
