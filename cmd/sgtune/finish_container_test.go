package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/internal/freeport"
	"sgtune/sglang"
	"sgtune/tuner"
)

// oneContainer is a runtime that has one container at most. It runs what follows the image here, and notes what it was
// told. While the file "broken" is there nothing that it runs lives.
const oneContainer = `#!/bin/sh
D=$(dirname "$0")
echo "$*" >>"$D/told"
up() { [ -e "$D/pid" ] && kill -0 "$(cat "$D/pid")" 2>/dev/null; }
case $1 in
ps) [ ! -e "$D/name" ] || cat "$D/name" ;;
top) cat "$D/pid"; echo 4242 ;;
run)
  [ ! -e "$D/name" ] || { echo "Error: the name is in use" >&2; exit 125; }
  while [ "$1" != image:1 ]; do
    case $1 in --name) echo "$2" >"$D/name" ;; --label) echo "$2" >>"$D/labels" ;; esac
    shift
  done
  shift
  echo "$@" | sed 's/.*--port //; s/ .*//' >"$D/port"
  [ ! -e "$D/broken" ] || { echo "Error: no such device" >&2; rm "$D/name"; exit 125; }
  setsid "$@" >/dev/null 2>&1 & echo $! >"$D/pid" ;;
inspect)
  up && state='"Running":true,"Status":"running"' || state='"Running":false,"Status":"exited","ExitCode":137'
  words=$(sed -n 's/^sgtune.words=//p' "$D/labels")
  echo '[{"State":{'"$state"',"Pid":'"$(cat "$D/pid")"',"StartedAt":"2026-01-01T22:00:00.5Z"},"RestartCount":0,"Config":{"Labels":{"sgtune.words":"'"$words"'","sgtune.served":"night"},"Cmd":["sim-server","--port","'"$(cat "$D/port")"'"]}}]' ;;
stop) kill "$(cat "$D/pid")"; while up; do sleep 0.05; done ;;
rm) [ -e "$D/name" ] || exit 1; ! up || exit 1; rm "$D/name" "$D/pid" "$D/labels" ;;
esac
`

// TestLaunchInAContainer: a study whose servers run in containers leaves one to the runtime and its restart policy.
func TestLaunchInAContainer(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH")) // for a study that knows of no container
	runtime := filepath.Join(dir, "docker")
	if err := os.WriteFile(runtime, []byte(oneContainer), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &tuner.Study{Port: freeport.For(t), ReadyTimeout: 20 * time.Minute}
	p := simulatedPlace(t, s)
	s.Host.Startup = 10 * time.Second
	s.Server.Container = &sglang.Container{Runtime: runtime, Image: "image:1"}
	h := &loopHost{place: p, study: s, server: sglang.Server{Command: simCommand(s, os.Args[0]), Model: "m", Flags: sglang.Config{"tp-size": 8.0}}}
	stop := func() {
		if out, err := exec.Command(runtime, "stop", "sgtune-served-night").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}

	text, err := h.Launch(t.Context(), sglang.Config{"mem-fraction-static": 0.85})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("on port %d, ready: one token came", s.Port), "docker's container sgtune-served-night is started again when it dies",
		"to stop it: " + runtime + " stop sgtune-served-night", "log: " + runtime + " logs sgtune-served-night",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	told, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil || !strings.Contains(string(told), "run -d --label sgtune.words=") || !strings.Contains(string(told), "--restart unless-stopped") || strings.Contains(string(told), "SGTUNE_TRIAL") {
		t.Errorf("%v, it was told %s", err, told)
	}
	facts, err := p.facts(t.Context(), s)
	if err != nil || len(facts.Residents) != 1 || !strings.Contains(facts.Residents[0], "to stop it: "+runtime+" stop sgtune-served-night") {
		t.Errorf("%q, %v", facts.Residents, err)
	}
	namedElsewhere(t, p, dir, s.Port)
	if again, err := h.Launch(t.Context(), sglang.Config{"mem-fraction-static": 0.85}); err != nil || again[:8] != text[:8] {
		t.Errorf("a second launch: %q, %v", again, err)
	}
	if _, err := h.Launch(t.Context(), sglang.Config{"mem-fraction-static": 0.9}); err == nil || !strings.Contains(err.Error(), "still runs, with other flags") {
		t.Errorf("another one: %v", err)
	}
	stop()
	if facts, err := p.facts(t.Context(), s); err != nil || len(facts.Residents) != 0 {
		t.Errorf("one that was stopped is there: %q, %v", facts.Residents, err)
	}
	before := toldLines(t, dir)
	if _, err := p.facts(t.Context(), &tuner.Study{Name: "other", Port: freeport.For(t)}); err != nil {
		t.Error(err)
	}
	if now := toldLines(t, dir); now != before {
		t.Errorf("a runtime was asked on a free machine: %d words, %d before", now, before)
	}
	if _, err := h.Launch(t.Context(), sglang.Config{"mem-fraction-static": 0.9}); err != nil { // in the place of the stopped one
		t.Error(err)
	}
	stop()
	if err := os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Launch(t.Context(), sglang.Config{}); err == nil || !strings.Contains(err.Error(), "no such device") {
		t.Errorf("one that cannot be made: %v", err)
	}
}

// namedElsewhere: studies of another name, with and without containers, name the container in dir as sgtune's own.
func namedElsewhere(t *testing.T, p *place, dir string, port int) {
	t.Helper()
	boxed := &tuner.Study{Name: "other", Port: freeport.For(t)}
	boxed.Server.Container = &sglang.Container{Runtime: filepath.Join(dir, "docker"), Image: "image:1"}
	for _, c := range []struct {
		name  string
		study *tuner.Study
	}{
		{"in containers", boxed}, {"on the held port", &tuner.Study{Name: "other", Port: port}}, {"beside held GPUs", &tuner.Study{Name: "other", Port: freeport.For(t)}},
	} {
		facts, err := p.facts(t.Context(), c.study)
		if err != nil || len(facts.Residents) != 1 {
			t.Fatalf("%s: %q, %v", c.name, facts.Residents, err)
		}
		if want := fmt.Sprintf("the server on port %d that sgtune launched when study night ended", port); !strings.HasPrefix(facts.Residents[0], want) {
			t.Errorf("%s: %q, want %q", c.name, facts.Residents[0], want)
		}
		if holders := facts.PortHolders; c.study.Port == port && (len(holders) != 1 || !strings.Contains(holders[0], "launched by sgtune when study night ended")) {
			t.Errorf("%s: %q", c.name, holders)
		}
	}
}

func toldLines(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}
