package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/freeport"
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
		study:  &tuner.Study{Name: "night", Port: other.Listener.Addr().(*net.TCPAddr).Port, ReadyTimeout: time.Second},
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

// TestLaunchGivesUp: a server that never gets ready is not started for ever, and neither its log nor what is said of it
// shows a secret.
func TestLaunchGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local := host.NewLocal(host.LocalOptions{StateDir: dir})
	h := &loopHost{
		place: &place{host: local, clock: host.NewClock(time.Now(), 1), files: dir, secrets: []string{"opensesame"}},
		study: &tuner.Study{Name: "night", Port: freeport.For(t), ReadyTimeout: time.Minute},
		server: sglang.Server{
			Command: []string{"sh", "-c", `echo "server_args=ServerArgs(api_key='$2')"; echo "word: $WORD"; exit 3`, "sh"},
			Flags:   sglang.Config{"api-key": "opensesame"}, Env: map[string]string{"WORD": "opensesame"},
		},
	}
	_, err := h.Launch(t.Context(), sglang.Config{})
	if err == nil || strings.Contains(err.Error(), "opensesame") || !strings.Contains(err.Error(), "died 3 times, last with exit status 3") || !strings.Contains(err.Error(), "its last words: word: ***") {
		t.Errorf("got %v", err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "servers", "*", "night", "server.log"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	log, err := os.ReadFile(logs[0])
	if err != nil || strings.Contains(string(log), "opensesame") || strings.Count(string(log), "word: ***") != 3 || !strings.Contains(string(log), "api_key=") {
		t.Errorf("%v\n%s", err, log)
	}
	if left, err := local.Residents(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left %+v, %v", left, err)
	}
}

// TestLaunchStays: the server is done when it gave a token; it is started again when it dies, a second launch of the same
// finds it, and what sgtune says of it is how it is stopped.
func TestLaunchStays(t *testing.T) {
	t.Parallel()
	s := &tuner.Study{Port: freeport.For(t), ReadyTimeout: 20 * time.Minute}
	p := simulatedPlace(t, s)
	s.Host.Startup = 10 * time.Second
	h := &loopHost{place: p, study: s, server: sglang.Server{
		Command: simCommand(s, os.Args[0]), Model: "m", Flags: sglang.Config{"tp-size": 8.0}, Env: map[string]string{"SGTUNE_SIM_RAM_AVAILABLE": "440000000000"},
	}}
	local := p.host.(settler)
	t.Cleanup(func() { _ = local.Dismiss(context.WithoutCancel(t.Context()), "night") }) // where the test did not
	text, err := h.Launch(t.Context(), sglang.Config{"mem-fraction-static": 0.85})
	if err != nil {
		t.Fatal(err)
	}
	r := onlyResident(t, local)
	for _, want := range []string{
		fmt.Sprintf("pid %d on port %d, ready: one token came", r.Server.PID, s.Port), "--mem-fraction-static 0.85",
		fmt.Sprintf("to stop it: kill %d", r.Keeper.PID), "log: " + r.Log,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if found, err := p.host.Find(t.Context(), ""); err != nil || len(found) > 0 {
		t.Errorf("it carries the mark of a trial: %v, %v", found, err)
	}
	facts, err := p.facts(t.Context(), s)
	if want := fmt.Sprintf("port %d: pid %d", s.Port, r.Server.PID); err != nil || len(facts.Residents) != 1 || len(facts.PortHolders) != 1 ||
		!strings.HasPrefix(facts.PortHolders[0], want) || !strings.HasSuffix(facts.PortHolders[0], "launched by sgtune when study night ended") {
		t.Errorf("facts %+v, %v", facts, err)
	}

	if err := syscall.Kill(r.Server.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := r
	for begin := time.Now(); again.Server.PID == 0 || again.Server.PID == r.Server.PID; again = onlyResident(t, local) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("it was not started again: %+v", again)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if again.Starts != 2 || again.Ended != "signal: killed" {
		t.Errorf("started again as %+v", again)
	}
	if text, err = h.Launch(t.Context(), sglang.Config{"mem-fraction-static": 0.85}); err != nil || !strings.Contains(text, fmt.Sprintf("pid %d on port", again.Server.PID)) {
		t.Errorf("a second launch: %q, %v", text, err)
	}
	if _, err = h.Launch(t.Context(), sglang.Config{"mem-fraction-static": 0.9}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("stop it: kill %d", r.Keeper.PID)) {
		t.Errorf("a launch of another one: %v", err)
	}
	if err := syscall.Kill(r.Keeper.PID, syscall.SIGTERM); err != nil { // as it was said
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left, err := local.Residents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("it was not stopped: %+v", left)
		}
	}
	if end, err := p.host.Reach(t.Context(), s.Port); err != nil || end.Listening {
		t.Errorf("port %d: %+v, %v", s.Port, end, err)
	}
}

func onlyResident(t *testing.T, s settler) host.Resident {
	t.Helper()
	list, err := s.Residents(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}
