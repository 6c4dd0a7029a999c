package nights_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stored is what the database has of a trial that the adoption must not touch.
type stored struct {
	PID           int
	State, Marker string
	Started       int64
	Launch, Wait  int64
	Levels        []string // concurrency, begin and end of each
	Plan          []int
	Adopted       bool
	Adoptions     string
}

// TestAdoptAfterKillNine kills sgtune with SIGKILL in the middle of a trial's second load level, twice. With recover: adopt
// each next tune goes on with the living server: it is not loaded again, and the stored level is not measured again.
func TestAdoptAfterKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("slow tier: make test-nights runs it")
	}
	marks := filepath.Join(t.TempDir(), "adopt")
	if err := os.Mkdir(marks, 0o700); err != nil {
		t.Fatal(err)
	}
	short := shortNight(marks)
	study, db := copyStudy(t, "quickstart.yaml", func(s string) string {
		return short(strings.Replace(s, "concurrency: [48]", "concurrency: [16, 32, 48]", 1)) + "recover: adopt\n"
	})
	t.Cleanup(func() { // of a test that failed
		for _, pid := range leftovers(t, "adopt") {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	killInLevel(t, study, db, 1)
	first := readStored(t, db)
	if err := syscall.Kill(first.PID, 0); err != nil {
		t.Fatalf("the server did not outlive its sgtune: %v", err)
	}
	killInLevel(t, study, db, 2)
	second := readStored(t, db)
	if second.PID != first.PID || !second.Adopted || len(second.Levels) < 2 || second.State != "running" {
		t.Fatalf("after the second kill: %+v, was %+v", second, first)
	}

	r := sgtune(t, "tune", study, "--db", db, "--web", "off")
	if r.code != 0 && r.code != 1 { // one launch each is "not confirmed": exit 1
		t.Fatalf("third tune: exit %d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	got := readStored(t, db)
	if got.PID != first.PID || got.Started != first.Started || got.Launch != first.Launch || got.Wait != first.Wait {
		t.Errorf("loaded again: %+v, was %+v", got, first)
	}
	if len(got.Levels) < len(first.Plan) || got.Levels[0] != first.Levels[0] || got.Levels[1] != second.Levels[1] {
		t.Errorf("levels %v, were %v, then %v, of the plan %v", got.Levels, first.Levels, second.Levels, first.Plan)
	}
	if got.State != "complete" || !got.Adopted || strings.Count(got.Adoptions, `"by"`) != 2 {
		t.Errorf("row %s, adopted %v: %s", got.State, got.Adopted, got.Adoptions)
	}
	s := show(t, db, "adopt")
	baselines := 0
	for _, tr := range s.Trials {
		if tr.Role == "baseline" {
			baselines++
		}
		if tr.State == "running" || tr.State == "waiting" || tr.Adopted != (tr.Number == 0) {
			t.Errorf("trial %d is %s, adopted %v", tr.Number, tr.State, tr.Adopted)
		}
	}
	if baselines != 1 || s.State != "complete" || s.Trials[0].Value == nil {
		t.Errorf("%d baselines, study %s", baselines, s.State)
	}
	log, err := os.ReadFile(filepath.Join(filepath.Dir(db), "sgtune.files", "adopt", "0", "server.log"))
	if n := strings.Count(string(log), "server_args="); err != nil || n != 1 {
		t.Errorf("the log shows %d starts, %v", n, err)
	}
	if text := sgtune(t, "show", "adopt", "0", "--db", db).stdout; strings.Count(text, "took its living server over") != 2 {
		t.Errorf("show says nothing of the adoption:\n%s", text)
	}
	if left := leftovers(t, "adopt"); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if _, err := os.Stat(filepath.Join(os.TempDir(), "sgtune-"+got.Marker)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unmasked log is left: %v", err)
	}
}

// killInLevel runs tune and kills it while trial 0 measures the level after so many stored ones.
func killInLevel(t *testing.T, study, db string, levels int) {
	t.Helper()
	cmd := exec.Command(program, "tune", study, "--db", db, "--web", "off")
	cmd.Env = environ(t)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if n := storedLevels(db); n == levels {
			break
		} else if n > levels || time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			<-ended
			t.Fatalf("%d levels were stored when %d were waited for\n%s", n, levels, out.String())
		}
		select {
		case <-ended:
			t.Fatalf("tune ended\n%s", out.String())
		default:
		}
	}
	time.Sleep(100 * time.Millisecond) // into the next level
	_ = cmd.Process.Kill()
	<-ended
}

// storedLevels is how many levels of trial 0 are stored while it runs, 0 as long as nothing can be read.
func storedLevels(db string) (n int) {
	h, err := sql.Open("sqlite3", "file:"+db+"?_busy_timeout=1000&mode=ro")
	if err != nil {
		return 0
	}
	defer func() { _ = h.Close() }()
	_ = h.QueryRow(`SELECT count(*) FROM levels JOIN trials USING (study_id, number) WHERE number = 0 AND state = 'running' AND step = 'measure'`).Scan(&n)
	return n
}

func readStored(t *testing.T, db string) stored {
	t.Helper()
	h, err := sql.Open("sqlite3", "file:"+db+"?_busy_timeout=10000&mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	var s stored
	var process, steps, plan string
	var adoptions sql.NullString
	if err := h.QueryRow(`SELECT state, marker, started_at, process_json, steps_json, plan_json, adopted, adoptions_json FROM trials WHERE number = 0`).
		Scan(&s.State, &s.Marker, &s.Started, &process, &steps, &plan, &s.Adopted, &adoptions); err != nil {
		t.Fatal(err)
	}
	s.Adoptions = adoptions.String
	id, took := struct {
		PID int `json:"pid"`
	}{}, map[string]int64{}
	for text, to := range map[string]any{process: &id, steps: &took, plan: &s.Plan} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	s.PID, s.Launch, s.Wait = id.PID, took["launch"], took["wait"]
	rows, err := h.Query(`SELECT concurrency, started_at, ended_at FROM levels WHERE number = 0 ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var clients, from, to int64
		if err := rows.Scan(&clients, &from, &to); err != nil {
			t.Fatal(err)
		}
		s.Levels = append(s.Levels, fmt.Sprintf("%d clients from %d to %d", clients, from, to))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}
