package hosts

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // rows are compared as they are stored
)

// nightStudy is the quickstart, cut to six points that a grid walks through, on a host of the testbed. The host's clock is
// real, so the server is told to be fast. Its RAM is real too, so there is no hierarchical cache.
const nightStudy = `study: @NAME
server:
  command: [@PROGRAM, sim-server, --sim-profile, kimi-8x96, --sim-time-scale, "60", --sim-seed, "7", --sim-startup, "30"]
  model: /models/Kimi-K2.5
  flags: {tp-size: 8, trust-remote-code: true}
  baseline: {mem-fraction-static: 0.79, chunked-prefill-size: 512}
  env: {FAKENVML_CLAIMS: @CLAIMS}
host:
  kind: ssh
  address: @ADDRESS
  ssh_config: @CONFIG
  work_dir: @WORK
  tuner_gone: 2m
sampler: grid
space:
  mem-fraction-static: {values: [0.79, 0.80, 0.90]}
  chunked-prefill-size: {values: [512, 8192]}
workload:
  file: @ROWS
  load: {concurrency: [48]}
measure: {window: 400ms, max: 1600ms, canary: 400ms, fill: off}
budget: {trials: 7}
confirm: {launches: 3}
`

// shown is what the tests read of sgtune show --json.
type shown struct {
	State   string `json:"state"`
	Verdict struct {
		Answer string         `json:"answer"`
		Gain   float64        `json:"gain"`
		Low    *float64       `json:"gain_low"`
		High   *float64       `json:"gain_high"`
		Config map[string]any `json:"config"`
	} `json:"verdict"`
	Trials []struct {
		Number  int            `json:"number"`
		Role    string         `json:"role"`
		State   string         `json:"state"`
		Outcome string         `json:"outcome"`
		Cause   string         `json:"cause"`
		Config  map[string]any `json:"config"`
		Value   *float64       `json:"value"`
	} `json:"trials"`
	Events []struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	} `json:"events"`
}

func (n *night) show() shown {
	n.t.Helper()
	cmd, out := n.command("show", n.name, "--db", n.db(), "--json")
	if err := cmd.Run(); err != nil {
		n.t.Fatalf("show: %v", err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		n.t.Fatal(err)
	}
	var s shown
	if err := json.Unmarshal(b, &s); err != nil {
		n.t.Fatalf("show --json: %v\n%s", err, b)
	}
	return s
}

// open opens the database as another program would; nil when it is not there yet.
func (n *night) open() *sql.DB {
	n.t.Helper()
	if _, err := os.Stat(n.db()); err != nil {
		return nil
	}
	db, err := sql.Open("sqlite3", "file:"+n.db()+"?_busy_timeout=10000&mode=rw")
	if err != nil {
		n.t.Fatal(err)
	}
	return db
}

// awaitRow waits for a running trial that satisfies the condition.
func (n *night) awaitRow(r *tuning, condition string, args ...any) {
	n.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case <-r.ended:
			n.t.Fatalf("it ended with %d before a trial was there with %s %v:\n%s", r.code, condition, args, n.text(r))
		default:
		}
		db := n.open()
		if db == nil {
			continue
		}
		found := 0
		// It fails as long as there are no tables.
		_ = db.QueryRow(`SELECT count(*) FROM trials WHERE state = 'running' AND `+condition, args...).Scan(&found)
		_ = db.Close()
		if found > 0 {
			return
		}
	}
	n.t.Fatalf("no trial with %s %v in five minutes:\n%s", condition, args, n.text(r))
}

// whole checks that the database survived.
func (n *night) whole() {
	n.t.Helper()
	db := n.open()
	if db == nil {
		return
	}
	defer func() { _ = db.Close() }()
	var answer string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&answer); err != nil || answer != "ok" {
		n.t.Errorf("integrity_check: %s, %v", answer, err)
	}
}

// sums are the checksums of all finished trials, by number: of their row and of their load levels.
func (n *night) sums() map[int]string {
	n.t.Helper()
	sums := map[int]string{}
	db := n.open()
	if db == nil {
		return sums
	}
	defer func() { _ = db.Close() }()
	for _, query := range []string{
		`SELECT number, * FROM trials WHERE state NOT IN ('waiting', 'running') ORDER BY number`,
		`SELECT number, * FROM levels WHERE (study_id, number) IN (SELECT study_id, number FROM trials WHERE state NOT IN ('waiting', 'running')) ORDER BY number, position`,
	} {
		if err := addSums(db, query, sums); err != nil {
			n.t.Logf("no rows yet: %v", err) // killed before the tables were made
			return map[int]string{}
		}
	}
	return sums
}

func addSums(db *sql.DB, query string, sums map[int]string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		number := 0
		values[0] = &number
		if err := rows.Scan(values...); err != nil {
			return err
		}
		text := sums[number]
		for _, v := range values[1:] {
			text += fmt.Sprintf("|%v", *v.(*any))
		}
		sums[number] = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	return rows.Err()
}

// allVerified fails when the GPU memory of a finished trial was not proven to be back where it was.
func (n *night) allVerified() {
	n.t.Helper()
	db := n.open()
	if db == nil {
		n.t.Fatal("no database")
	}
	defer func() { _ = db.Close() }()
	var all, verified int
	err := db.QueryRow(`SELECT count(*), count(*) FILTER (WHERE release = 'verified') FROM trials WHERE state <> 'cancelled'`).Scan(&all, &verified)
	if err != nil || all == 0 || verified != all {
		n.t.Errorf("%d of %d trials gave everything back for certain, %v", verified, all, err)
	}
}

// kept fails when a trial that was finished before is another one now.
func kept(t *testing.T, before, after map[int]string) {
	t.Helper()
	for number, sum := range before {
		if after[number] != sum {
			t.Errorf("finished trial %d changed: checksum %.12s, was %.12s", number, after[number], sum)
		}
	}
}

// sameAnswer compares two verdicts: winner and class are the same, and the intervals overlap.
func sameAnswer(t *testing.T, want, got shown) {
	t.Helper()
	w, g := want.Verdict, got.Verdict
	if got.State != "complete" || g.Answer != w.Answer {
		t.Errorf("state %s, answer %q; want complete, %q", got.State, g.Answer, w.Answer)
	}
	if fmt.Sprint(g.Config) != fmt.Sprint(w.Config) { // maps are printed in order
		t.Errorf("winner %v, want %v", g.Config, w.Config)
	}
	if w.Low == nil || w.High == nil || g.Low == nil || g.High == nil {
		t.Errorf("no interval: %+v, %+v", w, g)
		return
	}
	if *g.Low > *w.High || *w.Low > *g.High {
		t.Errorf("the intervals do not overlap: %.3f to %.3f, %.3f to %.3f", *w.Low, *w.High, *g.Low, *g.High)
	}
}
