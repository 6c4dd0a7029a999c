package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/sglang"
	"sgtune/tuner"
)

// TestLaunchOnATakenPort: somebody else's healthy server is not mistaken for the one to be launched.
func TestLaunchOnATakenPort(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer other.Close()
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	h := &loopHost{
		place:  &place{host: host.NewLocal(host.LocalOptions{StateDir: dir}), clock: host.NewClock(time.Now(), 1), files: dir},
		study:  &tuner.Study{Port: other.Listener.Addr().(*net.TCPAddr).Port, ReadyTimeout: time.Second},
		server: sglang.Server{Command: []string{"touch", started}, Model: "m"},
	}
	text, err := h.Launch(t.Context(), sglang.Config{})
	if err == nil || !strings.Contains(err.Error(), "is held by") {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the server was started beside the other one")
	}
}
