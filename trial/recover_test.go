package trial_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/host"
	"sgtune/trial"
)

// orphan starts a marked server as a sgtune would that is killed afterwards.
func orphan(t *testing.T, h *fakeHost, marker string) {
	t.Helper()
	e, err := h.Reach(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"python3", "--port", e.URL[strings.LastIndex(e.URL, ":")+1:]}
	if _, err := h.Start(t.Context(), host.Command{Argv: argv, Marker: marker, LogPath: filepath.Join(t.TempDir(), "server.log")}); err != nil {
		t.Fatal(err)
	}
}

func TestRecover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		script  script
		step    trial.Step
		base    []int64
		release trial.Release
		dirty   bool
	}{
		{"killed while loading", script{silent: true}, trial.StepWait, []int64{gib / 2, gib / 2}, trial.ReleaseVerified, false},
		{"killed while measuring", script{log: startLog}, trial.StepMeasure, []int64{gib / 2, gib / 2}, trial.ReleaseVerified, false},
		{"baseline not stored", script{log: startLog}, trial.StepMeasure, nil, trial.ReleaseUnverified, false},
		{"killed before the launch", script{silent: true}, trial.StepAdmit, nil, trial.ReleaseVerified, false},
		{"memory is not given back", script{silent: true, sticky: true}, trial.StepMeasure, []int64{gib / 2, gib / 2}, trial.ReleaseDirty, true},
		{"a child survives", script{silent: true, immortal: true}, trial.StepMeasure, []int64{gib / 2, gib / 2}, trial.ReleaseDirty, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, c.script), &fakeStore{}
			marker := "night.7.1767300000000000000"
			orphan(t, h, marker)
			row := newTrial(2)
			row.State, row.Step, row.Marker, row.GPUBaseline = trial.Running, c.step, marker, c.base
			waiting, done := newTrial(2), newTrial(2)
			waiting.Number, done.Number, done.State = 8, 6, trial.Complete
			got, err := trial.Recover(t.Context(), h, h.clock, "night", []*trial.Trial{done, row, waiting}, store)
			if errors.Is(err, trial.ErrDirtyHost) != c.dirty || err != nil && !c.dirty {
				t.Errorf("error %v", err)
			}
			if len(got) != 1 || got[0] != row || store.finished != 1 || len(store.saves) != 1 {
				t.Errorf("%d rows recovered, %d finished stored", len(got), store.finished)
			}
			outcome := trial.Aborted
			if c.dirty {
				outcome = trial.DirtyHost
			}
			if row.State != trial.Failed || row.Verdict.Outcome != outcome || row.Verdict.Blames != trial.BlameNo || row.Release != c.release || row.EndedAt.IsZero() {
				t.Errorf("row %s, release %s, verdict %+v", row.State, row.Release, row.Verdict)
			}
			if waiting.State != trial.Waiting || done.State != trial.Complete {
				t.Errorf("other rows changed: %s, %s", waiting.State, done.State)
			}
			if left := h.alive(); (left != 0) != c.script.immortal {
				t.Errorf("%d processes left", left)
			}
		})
	}
}

// TestRecoverStrays: a database was thrown away, its server lives on; other studies are left alone.
func TestRecoverStrays(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{silent: true}), &fakeStore{}
	orphan(t, h, "night.3.1767300000000000000")
	orphan(t, h, "night.two.3.1767300000000000000")
	orphan(t, h, "a word")
	if _, err := trial.Recover(t.Context(), h, h.clock, "night", nil, store); err != nil {
		t.Fatal(err)
	}
	left, err := h.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		if m := p.ID().Marker; m != "night.two.3.1767300000000000000" && m != "a word" {
			t.Errorf("%s was left", m)
		}
	}
	if len(left) != 4 {
		t.Errorf("%d processes left, want the 4 of others", len(left))
	}
}

func TestRecoverStoreError(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t, script{silent: true})
	orphan(t, h, "night.7.1")
	row := newTrial(2)
	row.State, row.Step, row.Marker = trial.Running, trial.StepWait, "night.7.1"
	broken := errors.New("read-only file system")
	store := &fakeStore{at: func(*trial.Trial) error { return broken }}
	got, err := trial.Recover(t.Context(), h, h.clock, "night", []*trial.Trial{row}, store)
	if !errors.Is(err, broken) || len(got) != 0 || row.State != trial.Running {
		t.Errorf("%d rows, state %s, error %v", len(got), row.State, err)
	}
	if h.alive() != 0 {
		t.Error("the store's error kept the host from being cleaned")
	}
}

// TestReclaimIsIdempotent: on a clean host nothing happens.
func TestReclaimIsIdempotent(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t, script{silent: true})
	orphan(t, h, "night.7.1")
	for _, want := range []int{2, 0} {
		ended, err := trial.Reclaim(t.Context(), h, h.clock, "")
		if err != nil || len(ended) != want {
			t.Errorf("ended %d, want %d: %v", len(ended), want, err)
		}
	}
	if _, err := os.Stat("sgtune"); err == nil {
		t.Error("wrote into the package's folder")
	}
}
