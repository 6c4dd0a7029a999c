package launch_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"sgtune/internal/launch"
)

func TestListener(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	port := l.Addr().(*net.TCPAddr).Port
	proc := launch.Processes{Root: "/proc"}
	if got := proc.Listener(port); got != os.Getpid() {
		t.Errorf("port %d belongs to process %d, want this test, %d", port, got, os.Getpid())
	}
	if got := proc.Listener(1); got != 0 {
		t.Errorf("port 1 belongs to process %d", got)
	}
}

func TestInstalledVersion(t *testing.T) {
	t.Parallel()
	venv := t.TempDir()
	python := filepath.Join(venv, "bin", "python3")
	for _, dir := range []string{"bin", "lib/python3.12/site-packages/sglang-0.5.9.dist-info", "lib/python3.12/site-packages/sglang_router-0.3.2.dist-info"} {
		if err := os.MkdirAll(filepath.Join(venv, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	command := []string{"numactl", "-N", "0", python, "-m", "sglang.launch_server"}
	if got := (launch.Launch{Command: command}).InstalledVersion(); got != "0.5.9" {
		t.Errorf("version %q, want 0.5.9", got)
	}
	if got := (launch.Launch{Command: command, Container: &launch.Container{}}).InstalledVersion(); got != "" {
		t.Errorf("version %q of a container, which has its own", got)
	}
}
