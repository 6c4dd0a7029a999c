package nights_test

import (
	"bytes"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// oneLine checks that a mistake was answered by one clear line and the right exit code.
func oneLine(t *testing.T, r result, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d", r.code, code)
	}
	text := strings.TrimSpace(r.stderr)
	if text == "" || strings.Contains(text, "\n") || len(text) > 400 {
		t.Errorf("want one line of at most 400 characters, got:\n%s", r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("the line does not name %q: %s", w, text)
		}
	}
}

// TestCtrlC interrupts a running trial once: everything is reclaimed, exit 130, the message says how to resume.
func TestCtrlC(t *testing.T) {
	if testing.Short() {
		t.Skip("slow tier: make test-nights runs it")
	}
	name := "ctrl-c"
	marks := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(marks, 0o700); err != nil {
		t.Fatal(err)
	}
	study, db := copyStudy(t, "quickstart.yaml", shortNight(marks))
	cmd := exec.Command(program, "tune", study, "--db", db, "--web", "off")
	cmd.Env = environ(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitForStep(t, db, "measure")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d, want 130\n%s%s", code, stdout.String(), stderr.String())
	}
	if all := stdout.String() + stderr.String(); !strings.Contains(all, "sgtune tune "+study) {
		t.Errorf("the message does not say how to resume:\n%s", all)
	}
	if left := leftovers(t, name); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if text, err := os.ReadFile(filepath.Join(marks, "after")); err != nil || strings.Count(string(text), "after") != 1 {
		t.Errorf("after: ran %q (%v), want once", text, err)
	}
	s := show(t, db, name)
	if s.State != "stopped" {
		t.Errorf("study is %s, want stopped", s.State)
	}
	if r := sgtune(t, "tune", study, "--db", db, "--web", "off"); r.code != 0 && r.code != 1 {
		t.Errorf("resumed tune: exit %d\n%s", r.code, r.stderr)
	}
	if s := show(t, db, name); s.State != "complete" {
		t.Errorf("resumed study is %s, want complete", s.State)
	}
}

func waitForStep(t *testing.T, db, step string) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		if h, err := sql.Open("sqlite3", "file:"+db+"?mode=ro&_busy_timeout=1000"); err == nil {
			var n int
			err := h.QueryRow(`SELECT count(*) FROM trials WHERE state = 'running' AND step = ?`, step).Scan(&n)
			_ = h.Close()
			if err == nil && n > 0 {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("step %s was not seen", step)
}

// TestDiskFull runs a study whose database and evidence lie on a small tmpfs.
func TestDiskFull(t *testing.T) {
	if testing.Short() {
		t.Skip("slow tier: make test-nights runs it")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mounting a small tmpfs: %v", err)
		}
		t.Skipf("needs to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	study, _ := copyStudy(t, "quickstart.yaml", func(s string) string { return s })
	r := sgtune(t, "tune", study, "--db", filepath.Join(dir, "sgtune.db"), "--web", "off")
	if r.code != 1 {
		t.Errorf("exit %d, want 1\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	if !regexp.MustCompile(`(?i)full|no space`).MatchString(r.stderr) || strings.Count(strings.TrimSpace(r.stderr), "\n") > 0 {
		t.Errorf("want one line that says the disk is full, got:\n%s", r.stderr)
	}
	if left := leftovers(t, "quickstart"); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	// Nothing stored is lost: the database still opens and its finished trials are there.
	s := show(t, filepath.Join(dir, "sgtune.db"), "quickstart")
	t.Logf("%d trials stored before the disk was full", len(s.Trials))
}

func TestOneClearLine(t *testing.T) {
	t.Parallel()
	t.Run("command starts with docker", func(t *testing.T) {
		t.Parallel()
		study, db := copyStudy(t, "quickstart.yaml", func(s string) string {
			return strings.Replace(s, "server:\n", "server:\n  command: [docker, run, image]\n", 1)
		})
		r := sgtune(t, "tune", study, "--db", db, "--web", "off")
		oneLine(t, r, 2, "docker")
		if _, err := os.Stat(db); err == nil {
			t.Error("the database was created")
		}
	})
	t.Run("port taken", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		study, db := copyStudy(t, "quickstart.yaml", func(s string) string {
			return regexp.MustCompile(`(?m)^  flags:.*$`).ReplaceAllString(s, "  flags:\n    port: "+port)
		})
		r := sgtune(t, "tune", study, "--db", db, "--web", "off")
		oneLine(t, r, 3, port)
	})
	t.Run("database of a newer version", func(t *testing.T) {
		t.Parallel()
		study, db := copyStudy(t, "quickstart.yaml", func(s string) string { return s })
		h, err := sql.Open("sqlite3", "file:"+db)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Exec(`CREATE TABLE x (y); PRAGMA user_version = 999`); err != nil {
			t.Fatal(err)
		}
		_ = h.Close()
		oneLine(t, sgtune(t, "tune", study, "--db", db, "--web", "off"), 1, "newer")
	})
	t.Run("folder cannot be written", func(t *testing.T) {
		t.Parallel()
		study, _ := copyStudy(t, "quickstart.yaml", func(s string) string { return s })
		oneLine(t, sgtune(t, "tune", study, "--db", "/proc/sgtune.db", "--web", "off"), 1, "/proc/sgtune.db")
	})
	t.Run("no such study file", func(t *testing.T) {
		t.Parallel()
		oneLine(t, sgtune(t, "tune", filepath.Join(t.TempDir(), "none.yaml")), 2, "none.yaml")
	})
	t.Run("unknown flag", func(t *testing.T) {
		t.Parallel()
		oneLine(t, sgtune(t, "tune", "x.yaml", "--no-such-flag"), 2, "no-such-flag")
	})
}

// TestTenMistakes gives one line for each of ten mistakes, with line and column.
func TestTenMistakes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.yaml")
	text := `study: "no spaces allowed"
server:
  comand: [sglang, serve]
  flags: {num-continuous-decode-steps: 2}
  ready_timeout: 25
host: {kind: cloud, ram_budget: 400}
space:
  mem-fracton-static: [0.8]
  hicache-size: {min: 48, max: 16, step: 8}
workload: {file: nowhere.jsonl, load: {concurrency: [0]}}
budget: {trials: -3}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sgtune(t, "check", file)
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	if r.code != 2 || len(lines) != 10 {
		t.Fatalf("exit %d, %d lines, want exit 2 and the first 10 mistakes:\n%s", r.code, len(lines), r.stderr)
	}
	position := regexp.MustCompile(`^` + regexp.QuoteMeta(file) + `:\d+:\d+: .+; .+$`)
	positioned := 0
	for _, l := range lines {
		if position.MatchString(l) {
			positioned++
		} else if !strings.HasPrefix(l, file+": ") {
			t.Errorf("not FILE:LINE:COL: what; what to do: %s", l)
		}
		if len(l) > 400 {
			t.Errorf("longer than 400 characters: %s", l)
		}
	}
	if positioned < 9 {
		t.Errorf("%d of 10 lines have a position", positioned)
	}
	if !strings.Contains(r.stderr, "did you mean `mem-fraction-static`?") || !strings.Contains(r.stderr, "did you mean `command`?") {
		t.Errorf("suggestions are missing:\n%s", r.stderr)
	}
	if r.stdout != "" {
		t.Errorf("something on stdout: %s", r.stdout)
	}
}
