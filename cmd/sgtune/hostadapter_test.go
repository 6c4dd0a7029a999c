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

// TestLaunchHidesSecrets: the log of a server that outlives us is masked where it lies.
func TestLaunchHidesSecrets(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	h := &loopHost{
		place: &place{host: host.NewLocal(host.LocalOptions{StateDir: dir}), clock: host.NewClock(time.Now(), 1), files: dir, secrets: []string{"opensesame"}},
		study: &tuner.Study{Port: port, ReadyTimeout: time.Minute},
		server: sglang.Server{
			Command: []string{"sh", "-c", `echo "server_args=ServerArgs(api_key='$2')"; echo "word: $WORD"; exit 3`, "sh"},
			Flags:   sglang.Config{"api-key": "opensesame"}, Env: map[string]string{"WORD": "opensesame"},
		},
	}
	_, err = h.Launch(t.Context(), sglang.Config{})
	if err == nil || strings.Contains(err.Error(), "opensesame") || !strings.Contains(err.Error(), "ended with status 3") {
		t.Errorf("got %v", err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "finish.log"))
	if err != nil || strings.Contains(string(log), "opensesame") || !strings.Contains(string(log), "word: ***") {
		t.Errorf("%v\n%s", err, log)
	}
}
