package trial_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/trial"
)

// TestReadiness is the one rule of design 5 against a server that lives or lies.
func TestReadiness(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script script
		ready  bool
		wrong  string // part of the monitor_wrong finding, "" = none
	}{
		{"both witnesses and a token", script{log: startLog}, true, ""},
		{"loads for a while", script{log: startLog, load: 150 * time.Millisecond}, true, ""},
		{"log level hides the ready line", script{log: startLog, noReady: true}, true, "no ready line"},
		{"/health says 503 for ever", script{log: startLog, health: http.StatusServiceUnavailable}, true, "/health says 503"},
		{"/health does not exist", script{log: startLog, health: http.StatusNotFound}, true, "/health says 404"},
		{"neither, but a token", script{log: startLog, noReady: true, health: http.StatusServiceUnavailable}, true, "health_starting"},
		{"no token", script{log: startLog, noToken: true}, false, ""},
		{"dies", script{log: startLog, dies: "gone\n"}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, c.script), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial()
			r.Load.Canary = 0
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if ready := tr.Startup > 0; ready != c.ready {
				t.Errorf("ready %t, want %t: %s", ready, c.ready, tr.Verdict.Text)
			}
			if c.ready != (tr.State == trial.Complete) {
				t.Errorf("state %s", tr.State)
			}
			i := slices.IndexFunc(tr.Verdict.Findings, func(f trial.Finding) bool { return f.Name == "monitor_wrong" })
			switch {
			case c.wrong == "" && i >= 0:
				t.Errorf("finding %v", tr.Verdict.Findings[i])
			case c.wrong != "" && (i < 0 || !strings.Contains(tr.Verdict.Findings[i].Text, c.wrong)):
				t.Errorf("findings %v lack %q", tr.Verdict.Findings, c.wrong)
			}
		})
	}
}

// TestNobodyAsksHealthUnderLoad: once requests run, tokens are the sign of life.
func TestNobodyAsksHealthUnderLoad(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Load.Canary = 0
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	events := h.happened()
	first := slices.IndexFunc(events, func(e string) bool { return strings.HasPrefix(e, "prompt") })
	if first < 0 {
		t.Fatal("no load")
	}
	if slices.Contains(events[first:], "health") {
		t.Error("/health was called under load")
	}
}

// TestForeignServerIsNotOurs: 200 and tokens from somebody else's server do not make a trial ready.
func TestForeignServerIsNotOurs(t *testing.T) {
	t.Parallel()
	other := newFakeHost(t, script{log: startLog})
	h, store := newFakeHost(t, script{log: startLog, silent: true}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial()
	r.ReadyTimeout = 2 * time.Minute
	end, err := h.Reach(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	r.Port = end.Port
	store.at = func(row *trial.Trial) error { // it takes the port right after ours was launched
		if row.Step == trial.StepWait {
			serve(t, other, end.Port)
		}
		return nil
	}
	if err := r.Run(t.Context(), tr); err == nil {
		t.Error("the port is still held and Run says nothing")
	}
	if tr.Startup > 0 || tr.State != trial.Failed {
		t.Errorf("taken for ready: state %s, start-up %s", tr.State, tr.Startup)
	}
}
