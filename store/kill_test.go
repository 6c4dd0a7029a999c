package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// killedStore names the database in the process that TestKilledWriter kills.
const killedStore = "SGTUNE_TEST_KILLED_STORE"

// TestWriterToBeKilled saves trials, each first as running, and prints the number of each that is stored for good.
func TestWriterToBeKilled(t *testing.T) {
	path := os.Getenv(killedStore)
	if path == "" {
		t.Skip("TestKilledWriter runs it in a process of its own")
	}
	ctx := context.Background()
	db, err := store.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.SaveStudy(ctx, &tuner.Record{Name: "night", State: tuner.StudyRunning, CreatedAt: night}); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Trials(ctx, "night")
	if err != nil {
		t.Fatal(err)
	}
	n := len(rows)
	if n > 0 && rows[n-1].State == trial.Running {
		n-- // what was in the making is finished first
	}
	for ; ; n++ {
		running := full(n)
		running.State = trial.Running
		if err := errors.Join(db.SaveTrial(ctx, running), db.SaveTrial(ctx, full(n))); err != nil {
			t.Fatal(err)
		}
		fmt.Println("stored", n)
	}
}

// TestKilledWriter kills a program that writes at random instants. The database stays whole each time, every trial
// whose save had returned is there as it was, and the next run goes on.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sgtune.db")
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	stored, rounds := -1, 8
	for round := range rounds {
		cmd := exec.Command(self, "-test.run=^TestWriterToBeKilled$")
		cmd.Env = append(os.Environ(), killedStore+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			n, err := strconv.Atoi(lines.Text()[min(len(lines.Text()), len("stored ")):])
			if err != nil {
				t.Errorf("round %d: %s", round, lines.Text())
				break
			}
			stored = max(stored, n)
			if first { // it runs: from now on it may die in the middle of anything
				time.AfterFunc(time.Duration(random.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("round %d: it ended with %v", round, err)
		}
		wholeUpTo(t, path, stored, seed)
	}
	if stored < rounds-1 {
		t.Errorf("only %d trials were stored in %d rounds", stored+1, rounds)
	}
}

// wholeUpTo checks a database that nobody has cleaned up, with the trials up to number stored in it.
func wholeUpTo(t *testing.T, path string, stored int, seed uint64) {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Check(t.Context()); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	trials, err := db.Trials(t.Context(), "night")
	if err != nil || len(trials) < stored+1 {
		t.Fatalf("seed %d: %d trials, %v, want %d", seed, len(trials), err, stored+1)
	}
	for n, got := range trials {
		if n > stored && got.State == trial.Running { // the one in the making
			continue
		}
		if diff := cmp.Diff(full(n), got); diff != "" {
			t.Fatalf("seed %d: trial %d (-want +got):\n%s", seed, n, diff)
		}
	}
}
