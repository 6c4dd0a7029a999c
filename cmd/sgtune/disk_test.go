package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/store"
	"sgtune/tuner"
)

// smallDisk is where a test finds the full disk it was given; set only in the process that has one.
const smallDisk = "SGTUNE_TEST_SMALL_DISK"

// TestFullDisk gives a study a file system of 2 MB of its own, in a mount namespace that nobody else sees, and
// fills it at different moments of a night. It needs the right to make such a namespace: root, or user namespaces.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("mounts a file system and runs studies on it: slow tier")
	}
	oneStudy.Lock()
	defer oneStudy.Unlock()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestOnFullDisk$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), smallDisk+"="+dir, "XDG_STATE_HOME="+filepath.Join(t.TempDir(), "state"), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Fatalf("no mount namespace could be made (%v): this test needs root, or user namespaces", err)
	case err != nil:
		t.Fatalf("%v:\n%s", err, out)
	case !bytes.Contains(out, []byte("--- PASS: TestOnFullDisk/")):
		t.Fatalf("nothing was tested:\n%s", out)
	}
	t.Logf("%s", out)
}

// TestOnFullDisk is the part of TestFullDisk that runs where the small file system is.
func TestOnFullDisk(t *testing.T) {
	dir := os.Getenv(smallDisk)
	if dir == "" {
		t.Skip("TestFullDisk runs it in a mount namespace of its own")
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make the mounts private: %v: this test needs root, or user namespaces", err)
	}
	for _, moment := range []string{"before it", "in trial 0", "in trial 1", "in trial 2"} {
		t.Run(moment, func(t *testing.T) {
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
				t.Fatalf("mount a file system of 2 MB: %v: this test needs root, or user namespaces", err)
			}
			defer func() {
				if err := syscall.Unmount(dir, 0); err != nil {
					t.Error(err) // something of the study still lives there
				}
			}()
			fullDisk(t, dir, moment)
		})
	}
}

// fullDisk is one night on a disk that is full at a moment of it, and the next one with room again.
func fullDisk(t *testing.T, dir, moment string) {
	if err := os.CopyFS(dir, os.DirFS("testdata/study")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tiny.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	after := filepath.Join(t.TempDir(), "after")
	text = fmt.Appendf(text, "after: [sh, -c, 'echo done; echo x >> %s']\n", after)
	if err := os.WriteFile(filepath.Join(dir, "tiny.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if moment == "before it" { // there is a database already
		other := bytes.Replace(text, []byte("study: tiny"), []byte("study: other"), 1)
		if err := os.WriteFile(filepath.Join(dir, "other.yaml"), bytes.Replace(other, []byte("trials: 2"), []byte("trials: 1"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := tuneThere(t, dir, "other.yaml", nil); code != exitFailed || errs != "" {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		fillUp(t, dir)
	}
	code, out, errs := tuneThere(t, dir, "tiny.yaml", func(shown string) bool {
		if !strings.Contains(shown, "trial "+strings.TrimPrefix(moment, "in trial ")+", ") {
			return false
		}
		fillUp(t, dir)
		return true
	})
	if code != exitFailed || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "the disk is full; free some space") || len(errs) > 400 {
		t.Errorf("exit %d, %q, want one line that says so; before it:\n%s", code, errs, out)
	}
	nothingLives(t, dir)
	before := finishedRows(t, dir)
	if want := map[string]int{"before it": 1, "in trial 0": 0, "in trial 1": 1, "in trial 2": 2}[moment]; moment != "before it" && len(before) < want {
		t.Errorf("%d finished trials are stored, want %d", len(before), want)
	}
	if ran, err := os.ReadFile(after); moment != "before it" && (err != nil || string(ran) != "x\n") {
		t.Errorf("after: ran %q, %v", ran, err)
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	code, out, errs = tuneThere(t, dir, "tiny.yaml", nil)
	if code != exitFailed || errs != "" || !strings.Contains(out, "NO VERDICT") || stateOf(t.Context(), dir, "tiny") != tuner.StudyComplete { // one launch each
		t.Errorf("with room again: exit %d: %s\n%s", code, errs, out)
	}
	nothingLives(t, dir)
	for name, sum := range finishedRows(t, dir) {
		if was, stored := before[name]; stored && was != sum {
			t.Errorf("%s is not what it was", name)
		}
		delete(before, name)
	}
	if len(before) > 0 {
		t.Errorf("lost: %v", before)
	}
}

// tuneThere runs a study; during is called every now and then with what it printed, until it returns true.
func tuneThere(t *testing.T, dir, file string, during func(shown string) bool) (code int, out, errs string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shown := filepath.Join(t.TempDir(), "stdout")
	stdout, err := os.Create(shown)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdout.Close() }()
	var stderr bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: []string{"sgtune", "tune", file, "--web", "off"}, Dir: dir, Stdout: stdout, Stderr: &stderr}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case err := <-ended:
			tick.Stop()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			text, _ := os.ReadFile(shown) // empty shows in what the caller looks for
			return code, string(text), stderr.String()
		case <-tick.C:
			if text, _ := os.ReadFile(shown); during != nil && during(string(text)) {
				during = nil
			}
		}
	}
}

// fillUp takes all room there is.
func fillUp(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// nothingLives checks that no process of a trial of this folder's studies is left.
func nothingLives(t *testing.T, dir string) {
	t.Helper()
	left, err := host.NewLocal(host.LocalOptions{StateDir: t.TempDir()}).Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.ID().PID)) // gone since: not left
		if bytes.Contains(env, []byte(dir)) {
			t.Errorf("pid %d of %s is left", p.ID().PID, p.ID().Marker)
		}
	}
}

// finishedRows are checksums of all finished trials of a database, which must be whole.
func finishedRows(t *testing.T, dir string) map[string]string {
	t.Helper()
	path := filepath.Join(dir, "sgtune.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return checksums(t.Context(), t, db)
}

func checksums(ctx context.Context, t *testing.T, db *store.DB) map[string]string {
	t.Helper()
	all, err := db.Studies(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, s := range all {
		trials, err := db.Trials(ctx, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range trials {
			if !row.State.Finished() {
				continue
			}
			text, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			sums[fmt.Sprintf("trial %d of %s", row.Number, s.Name)] = fmt.Sprintf("%x", sha256.Sum256(text))
		}
	}
	return sums
}
