package hosts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/internal/hosttest"
)

// TestLeaveAndReclaim: the way to the host is cut without a word while a study runs. Ctrl-C says at once what is waited for, a
// second one leaves, and says what may still run. sgtune reclaim, which knows only the host's name, is refused as long as
// the study lives, shows what is there without touching it when asked to, and then frees all of it, to the last file.
func TestLeaveAndReclaim(t *testing.T) {
	need(t)
	if !hosttest.OwnPIDs(t) { // it frees what carries any marker
		return
	}
	n := newNight(t, "reclaim", "gpu-reclaim", func(text string) string {
		text = regexp.MustCompile(`measure: {.*}`).ReplaceAllString(text, "measure: {window: 10s, max: 2m, canary: 400ms, fill: off}")
		return regexp.MustCompile(`(?m)^\s*work_dir:.*\n`).ReplaceAllString(text, "")
	})
	stranger := exec.Command("sleep", "300")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	run := n.Start()
	n.waitFor(t, time.Minute, "the server is up", func() bool { return len(n.servers()) > 0 && n.measures() })

	if code, out := n.reclaim(t, "--host", "gpu-reclaim"); code != 3 || !strings.Contains(out, "study reclaim") || !strings.Contains(out, "nothing was freed") {
		t.Fatalf("while the study lives: exit %d\n%s", code, out)
	}
	servers := n.servers()
	if len(servers) == 0 {
		t.Fatal("the living study's server was ended")
	}

	frozen := freeze(t)
	time.Sleep(time.Second)
	n.signal(t, run)
	n.waitFor(t, 5*time.Second, "it answers at once", func() bool { return strings.Contains(run.Text(), "stopping: ") })
	n.waitFor(t, 30*time.Second, "it says what it waits for", func() bool {
		return strings.Contains(run.Text(), "gpu-reclaim was not heard for ") && strings.Contains(run.Text(), "press Ctrl-C again to leave without")
	})
	n.signal(t, run)
	n.Await(run, 25*time.Second)
	if text := run.Text(); run.Code != 130 || !strings.Contains(text, "may still run") || !strings.Contains(text, "sgtune reclaim ") || strings.Contains(text, "dirty") {
		t.Errorf("left with %d:\n%s", run.Code, text)
	}
	for _, pid := range frozen {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	if now := n.servers(); !slices.Equal(now, servers) {
		t.Errorf("servers %v, then %v", servers, now)
	}

	code, out := n.reclaim(t, "--host", "gpu-reclaim", "--list")
	if code != 0 || !strings.Contains(out, "of trial reclaim.0.") || !strings.Contains(out, bed("cache")+"/sgtune of sgtune-agent") {
		t.Errorf("--list: exit %d\n%s", code, out)
	}
	if len(n.servers()) != len(servers) {
		t.Error("--list ended something")
	}
	if code, out := n.reclaim(t, "--host", "gpu-reclaim"); code != 0 || !strings.Contains(out, "ended: ") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if left := n.servers(); len(left) != 0 {
		t.Errorf("servers left: %v", left)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a stranger was ended: %v", err)
	}
	n.waitFor(t, 10*time.Second, "the agent's folder is gone", func() bool {
		_, err := os.Stat(filepath.Join(bed("cache"), "sgtune"))
		return os.IsNotExist(err)
	})
	if code, out := n.reclaim(t, n.Path("study.yaml")); code != 0 || !strings.Contains(out, "no process of a trial is left") {
		t.Errorf("by the study file, once more: exit %d\n%s", code, out)
	}
}

// reclaim runs sgtune reclaim as a person whose ssh knows the hosts by their own names.
func (n *night) reclaim(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\nexec "+ssh+" -F "+bed("config")+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), n.Program, append([]string{"reclaim"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+n.Path("run"))
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// servers are the processes that carry a marker, in order.
func (n *night) servers() []int {
	var pids []int
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		env, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil && bytes.Contains(env, []byte("SGTUNE_TRIAL=")) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// measures reports whether a trial is past its start.
func (n *night) measures() bool {
	files, _ := filepath.Glob(n.Path("sgtune.files/" + n.Name + "/0/level-*"))
	return len(files) > 0
}

func (n *night) signal(t *testing.T, r *hosttest.Tuning) {
	t.Helper()
	if err := r.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

func (n *night) waitFor(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Since(begin) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// freeze stops every process of the ssh servers: nothing comes over the link any more, not even that it is closed.
func freeze(t *testing.T) []int {
	t.Helper()
	var pids []int
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(name), "sshd") {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, syscall.SIGSTOP) == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) < 2 {
		t.Fatalf("%d processes of sshd", len(pids))
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	return pids
}
