package nights_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // the test holds the database's lock to stop the program between two steps
)

// shortNight cuts the quickstart to two search trials and one confirmation pair with small windows.
func shortNight(dir string) func(string) string {
	return func(s string) string {
		s = regexp.MustCompile(`(?m)^(\s*)trials: \d+`).ReplaceAllString(s, "${1}trials: 3")
		s = regexp.MustCompile(`launches: \d+`).ReplaceAllString(s, "launches: 1")
		s = regexp.MustCompile(`(?m)^study: .*`).ReplaceAllString(s, "study: "+filepath.Base(dir))
		return s + fmt.Sprintf("\nbefore: [sh, -c, \"echo before >> %s/before\"]\nafter: [sh, -c, \"echo after >> %s/after\"]\n", dir, dir)
	}
}

// TestKillNineInEachStep kills sgtune with SIGKILL while a trial stands in each of its steps. The next
// tune on the same database must reclaim what runs, keep every finished trial, finish the study and run `after`.
func TestKillNineInEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("slow tier: make test-nights runs it")
	}
	for _, step := range []string{"admit", "launch", "wait", "canary", "warmup", "measure", "stop", "reclaim", "save"} {
		t.Run(step, func(t *testing.T) {
			marks := t.TempDir()
			name := "kill-" + step
			marks = filepath.Join(marks, name)
			if err := os.Mkdir(marks, 0o700); err != nil {
				t.Fatal(err)
			}
			study, db := copyStudy(t, "quickstart.yaml", shortNight(marks))
			killAt(t, step, study, db)

			before := show(t, db, name)
			r := sgtune(t, "tune", study, "--db", db, "--web", "off")
			if r.code != 0 && r.code != 1 { // one launch each is "not confirmed": exit 1
				t.Fatalf("second tune: exit %d\n%s\n%s", r.code, r.stdout, r.stderr)
			}
			after := show(t, db, name)
			if after.State != "complete" || after.Verdict.Answer == "" {
				t.Errorf("state %q, verdict %q; want a complete study with a verdict", after.State, after.Verdict.Answer)
			}
			sameFinished(t, before, after)
			for _, tr := range after.Trials {
				if tr.State == "running" || tr.State == "waiting" {
					t.Errorf("trial %d is still %s", tr.Number, tr.State)
				}
			}
			if left := leftovers(t, name); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
			text, err := os.ReadFile(filepath.Join(marks, "after"))
			if err != nil || strings.Count(string(text), "after") != 1 {
				t.Errorf("after: ran %q (%v), want once", text, err)
			}
		})
	}
}

// killAt runs tune and kills it while some trial stands in the step. It holds the database's write lock
// nearly all the time, so that the program waits at its next save and no step is too short to be caught.
func killAt(t *testing.T, step, study, db string) {
	t.Helper()
	cmd := exec.Command(program, "tune", study, "--db", db, "--web", "off")
	cmd.Env = environ(t)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	fail := func(format string, args ...any) {
		_ = cmd.Process.Kill()
		text, _ := os.ReadFile(out.Name())
		t.Fatalf(format+"\n%s", append(args, text)...)
	}
	deadline := time.After(3 * time.Minute)
	var handle *sql.DB
	for handle == nil {
		select {
		case <-ended:
			fail("tune ended before its database was there")
		case <-deadline:
			fail("no database after three minutes")
		case <-time.After(2 * time.Millisecond):
		}
		if _, err := os.Stat(db); err != nil {
			continue
		}
		h, err := sql.Open("sqlite3", "file:"+db+"?_busy_timeout=0&_txlock=immediate&mode=rw")
		if err != nil {
			continue
		}
		h.SetMaxOpenConns(1) // data_version belongs to a connection
		var n int
		if h.QueryRow(`SELECT count(*) FROM trials`).Scan(&n) != nil {
			_ = h.Close()
			continue
		}
		handle = h
	}
	defer func() { _ = handle.Close() }()
	for {
		select {
		case <-ended:
			fail("tune ended without standing in step %s", step)
		case <-deadline:
			fail("step %s was not seen in three minutes", step)
		default:
		}
		if standsIn(t, handle, step, func() { _ = cmd.Process.Kill() }) {
			<-ended
			return
		}
		oneWrite(handle)
	}
}

// oneWrite leaves the lock free until somebody has written once, or for a moment.
func oneWrite(db *sql.DB) {
	version := func() (v int) {
		_ = db.QueryRow(`PRAGMA data_version`).Scan(&v)
		return v
	}
	for before, until := version(), time.Now().Add(100*time.Millisecond); version() == before && time.Now().Before(until); {
		time.Sleep(100 * time.Microsecond)
	}
}

// standsIn takes the write lock, looks for a running trial in the step, and calls kill while it holds the lock.
func standsIn(t *testing.T, db *sql.DB, step string, kill func()) bool {
	t.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback() }()
	var n int
	// The second trial, so that a finished one is there to be kept.
	err = tx.QueryRow(`SELECT count(*) FROM trials WHERE state = 'running' AND step = ? AND number >= 1`, step).Scan(&n)
	if err != nil || n == 0 {
		return false
	}
	kill()
	return true
}

func sameFinished(t *testing.T, before, after shown) {
	t.Helper()
	later := map[int]string{}
	for _, tr := range after.Trials {
		b, _ := json.Marshal(tr)
		later[tr.Number] = string(b)
	}
	finished := 0
	for _, tr := range before.Trials {
		if tr.State == "running" || tr.State == "waiting" {
			continue
		}
		finished++
		if b, _ := json.Marshal(tr); later[tr.Number] != string(b) {
			t.Errorf("finished trial %d changed:\n%s\n%s", tr.Number, b, later[tr.Number])
		}
	}
	if finished == 0 {
		t.Error("no finished trial before the kill: the test proves nothing")
	}
}
