package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sgtune/host"
)

func TestGuardCommandRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"", "--pid"},
		{"--pid 1", "--pid"},
		{"--pid 77 --absence 1m", "--heartbeat FILE"},
		{"--pid 77 --grace -1s", "negative"},
		{"--pid 77 --min-free NaN", "negative"},
		{"--pid 77 more", "usage"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"guard"}, strings.Fields(c.args)...), &out, &errs)
			if code != exitUsage || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out.String(), errs.String())
			}
		})
	}
}

// TestGuardJob: what is asked for on standard input is answered on standard output, in lines of JSON.
func TestGuardJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ job, want string }{
		{"", `{"problem":"guard: read the job: EOF"}`},
		{`{"folder": "/nowhere/at/all", "scale": 1}`, `{"problem":"guard: open /nowhere/at/all/lock: no such file or directory"}`},
		{`{"folder": "` + t.TempDir() + `"}`, `{"problem":"guard: a clock that runs 0 times as fast as ours"}`},
		{`{"folder": "` + t.TempDir() + `", "scale": 1}`, "{}\n" + `{"problem":"guard: read which process to watch: EOF"}`}, // and no marker by which to look for it
	} {
		guard := exec.CommandContext(t.Context(), os.Args[0], "guard", "--job")
		guard.Stdin = strings.NewReader(c.job)
		out, err := guard.Output()
		if err == nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%s: %s, %v", c.job, out, err)
		}
	}
}

// TestGuardCommand ends a server whose time is up.
func TestGuardCommand(t *testing.T) {
	t.Parallel()
	server := exec.CommandContext(t.Context(), "sleep", "60")
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	file := filepath.Join(t.TempDir(), "guard.json")
	// In a process of its own: a guard lowers its own score with the kernel's OOM killer.
	guard := exec.CommandContext(t.Context(), os.Args[0], "guard", "--pid", strconv.Itoa(server.Process.Pid), "--min-free", "-1", "--time-limit", "10ms", "--grace", "1s", "--verdict", file)
	guard.Stderr = os.Stderr
	out, err := guard.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("the server ended with %v", err)
	}
	var told host.GuardVerdict
	if err := json.Unmarshal(out, &told); err != nil || told.Reason != host.GuardTimeLimit {
		t.Errorf("printed %s, %v", out, err)
	}
	if stored, err := host.ReadGuardVerdict(file); err != nil || stored.Reason != host.GuardTimeLimit || stored.PID != server.Process.Pid {
		t.Errorf("stored %+v, %v", stored, err)
	}
}
