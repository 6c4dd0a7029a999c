package nights_test

import (
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

	_ "github.com/mattn/go-sqlite3" // the test makes the program's writes slow
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

// killAt runs tune and kills it while a trial stands in the step. A trigger in the database makes the program's next
// write after that step slow, so that no step is too short to be caught.
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
	deadline := time.After(3 * time.Minute)
	var handle *sql.DB
	for caught := false; !caught; {
		select {
		case <-ended:
			text, _ := os.ReadFile(out.Name())
			t.Fatalf("tune ended without standing in step %s\n%s", step, text)
		case <-deadline:
			_ = cmd.Process.Kill()
			t.Fatalf("step %s was not seen in three minutes", step)
		case <-time.After(2 * time.Millisecond):
		}
		if handle == nil {
			handle = slowAfter(t, step, db)
			continue
		}
		caught = standsIn(handle, step)
	}
	_ = cmd.Process.Kill()
	<-ended
	defer func() { _ = handle.Close() }()
	var whole string
	if err := handle.QueryRow(`PRAGMA integrity_check`).Scan(&whole); err != nil || whole != "ok" {
		t.Errorf("integrity_check after kill -9 in step %s: %s, %v", step, whole, err)
	}
	if _, err := handle.Exec(`DROP TRIGGER slow`); err != nil {
		t.Fatal(err)
	}
}

// The second trial and later ones, so that a finished one is there to be kept.
const inStep = `state = 'running' AND number >= 1 AND step = `

// slowAfter opens the database once its tables are there and makes the write that leaves the step slow: the trigger
// counts the rows of a large product for many seconds.
func slowAfter(t *testing.T, step, db string) *sql.DB {
	t.Helper()
	if _, err := os.Stat(db); err != nil {
		return nil
	}
	h, err := sql.Open("sqlite3", "file:"+db+"?_busy_timeout=10000&mode=rw")
	if err != nil {
		return nil
	}
	_, err = h.Exec(`CREATE TRIGGER slow BEFORE UPDATE ON trials WHEN OLD.` + strings.ReplaceAll(inStep, "AND ", "AND OLD.") + `'` + step + `'
		BEGIN SELECT count(*) FROM sqlite_master a, sqlite_master b, sqlite_master c, sqlite_master d, sqlite_master e, sqlite_master f, sqlite_master g; END`)
	if err != nil {
		_ = h.Close() // no tables yet
		return nil
	}
	return h
}

func standsIn(db *sql.DB, step string) bool {
	var n int
	return db.QueryRow(`SELECT count(*) FROM trials WHERE `+inStep+`?`, step).Scan(&n) == nil && n > 0
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
