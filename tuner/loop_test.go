package tuner_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/trial"
	"sgtune/tuner"
)

func count(h tuner.History, keep func(*trial.Trial) bool) int {
	n := 0
	for _, t := range h {
		if keep(t) {
			n++
		}
	}
	return n
}

// nights is how many whole nights a test plays: the models take their time under the race detector.
func nights() int64 {
	if testing.Short() {
		return 1
	}
	return 5
}

// A night of the founding case's shape: the budget is kept, few trials fail, the verdict is better
// than the baseline and its gain is the true one.
func TestNights(t *testing.T) {
	t.Parallel()
	for seed := range nights() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newStudy()
			s.Seed = seed
			r := newRig(t, s)
			v, err := r.loop.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h := r.trials(t)
			failed := count(h, func(t *trial.Trial) bool { return t.State == trial.Failed })
			if len(h) != 25 || h.Launches() != 19 || failed > 3 {
				t.Errorf("%d launches, %d of them before the confirmation, %d failed; want 25, 19, at most 3", len(h), h.Launches(), failed)
			}
			if n := count(h, func(t *trial.Trial) bool { return t.Sampler == "physics" }); n != 18 {
				t.Errorf("%d trials proposed by the physics sampler, want 18", n)
			}
			truth := speed(v.Config)/speed(s.Baseline) - 1
			if v.Answer != "better" || v.Low == nil || *v.Low <= 0 || math.Abs(v.Gain-truth) > 0.03 || v.Launches != 3 {
				t.Errorf("verdict %+v (%s), true gain %.3f", v, v.Text, truth)
			}
			best := 0.0
			for c := range s.Space.All() {
				if observe(c).AfterGraphGiB > need(c)+0.3 {
					best = math.Max(best, speed(c))
				}
			}
			t.Logf("failed %d, gain %.3f, regret against the safe best %.3f, %v", failed, v.Gain, 1-speed(v.Config)/best, v.Config)
			if d := cmp.Diff([]string{"stop-service", "start-service"}, r.host.ran); d != "" {
				t.Errorf("programs on the host (-want +got):\n%s", d)
			}
			if rec := r.store.Record(); rec.State != tuner.StudyComplete || rec.Verdict == nil || rec.AfterDue || !strings.HasPrefix(rec.AfterDone, "after: ok") {
				t.Errorf("record %+v", rec)
			}
			again, err := r.loop.Run(t.Context())
			if err != nil || again.Text != v.Text || len(r.trials(t)) != 25 {
				t.Errorf("running a complete study again: %+v, %v, %d trials", again, err, len(r.trials(t)))
			}
		})
	}
}

// smallStudy takes few launches, for the tests that run it many times.
func smallStudy() *tuner.Study {
	s := newStudy()
	s.Sampler = "grid"
	s.Space = tuner.Space{{Name: "mem-fraction-static", Kind: tuner.Numeric, Values: []any{0.86, 0.88, 0.93, 0.9}}}
	s.Budget.Trials = 5
	return s
}

// Founding fact: 0.93 ends gpu_oom / prefill / prefill_activation and the study goes on.
func TestOOMIsAResult(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	v, err := r.loop.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := r.trials(t)
	oom := h.Numbered(3)
	if oom.Config["mem-fraction-static"] != 0.93 || oom.State != trial.Failed || oom.Verdict.Outcome != trial.GPUOOM || oom.Verdict.Cause != "prefill_activation" {
		t.Errorf("trial 3: %v %s %+v", oom.Config, oom.State, oom.Verdict)
	}
	if v.Answer != "better" || v.Config["mem-fraction-static"] != 0.9 || v.Trial != 4 {
		t.Errorf("verdict %+v", v)
	}
	want := []string{
		"baseline 0.85", "search 0.86", "search 0.88", "search 0.93", "search 0.9",
		"confirm 0.85", "confirm 0.9", "confirm 0.9", "confirm 0.85", "confirm 0.85", "confirm 0.9",
	}
	if d := cmp.Diff(want, r.runner.order); d != "" {
		t.Errorf("launches, confirmation in ABBA order (-want +got):\n%s", d)
	}
}

// A program that is killed at any write is continued by the next one: no finished trial is lost or
// changed, the budget holds, the same verdict is reached, after: runs once at the end.
func TestResumeEverywhere(t *testing.T) {
	t.Parallel()
	clean := newRig(t, smallStudy())
	if _, err := clean.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	writes := clean.store.writes
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed after the write %v", after), func(t *testing.T) {
			t.Parallel()
			for k := 1; k <= writes; k++ {
				r := newRig(t, smallStudy())
				r.store.killAt, r.store.killAfter = k, after
				if _, killed, err := r.runUntilKilled(t); !killed {
					t.Fatalf("write %d of %d: not killed (%v)", k, writes, err)
				}
				finished := r.trials(t).Finished()
				due := len(r.host.ran) > 0
				r.restart(t)
				v, killed, err := r.runUntilKilled(t)
				if killed || err != nil {
					t.Fatalf("killed at write %d: %v", k, err)
				}
				checkResumed(t, k, r, finished, v)
				if due && r.host.ran[len(r.host.ran)-1] != "start-service" {
					t.Errorf("killed at write %d: programs on the host %v", k, r.host.ran)
				}
			}
		})
	}
}

func checkResumed(t *testing.T, k int, r *rig, finished tuner.History, v *tuner.Verdict) {
	t.Helper()
	h := r.trials(t)
	for _, f := range finished {
		if d := cmp.Diff(f, h.Numbered(f.Number)); d != "" {
			t.Errorf("killed at write %d: finished trial %d changed:\n%s", k, f.Number, d)
		}
	}
	if h.Launches() > r.study.Budget.Trials {
		t.Errorf("killed at write %d: %d launches, the budget is %d", k, h.Launches(), r.study.Budget.Trials)
	}
	if n := count(h, func(t *trial.Trial) bool { return !t.State.Finished() }); n > 0 {
		t.Errorf("killed at write %d: %d rows are not finished", k, n)
	}
	if v == nil || v.Answer != "better" {
		t.Errorf("killed at write %d: verdict %+v", k, v)
	}
	rec := r.store.Record()
	if rec.State != tuner.StudyComplete || rec.AfterDue || rec.AfterDone == "" {
		t.Errorf("killed at write %d: record %s, after due %v, %q", k, rec.State, rec.AfterDue, rec.AfterDone)
	}
	afters := 0
	for _, p := range r.host.ran {
		if p == "start-service" {
			afters++
		}
	}
	if afters == 0 || afters > 2 || slices.Index(r.host.ran, "start-service") < slices.Index(r.host.ran, "stop-service") {
		t.Errorf("killed at write %d: programs on the host %v", k, r.host.ran)
	}
}

func TestHandOver(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		change  func(r *rig)
		want    error
		text    string
		ran     []string
		started int
	}{
		{
			"held", func(r *rig) {
				r.study.Before = nil
				r.host.facts.GPUs[3].Holders = []string{"pid 4711 (python3) 71.2 GB"}
			},
			tuner.ErrHeld, "GPU 3 by pid 4711 (python3) 71.2 GB", nil, 0,
		},
		{
			"held by a holder that cannot be seen", func(r *rig) { r.study.Before = nil; r.host.facts.GPUs[0].Used = 40 << 30 },
			tuner.ErrHeld, "outside this container", nil, 0,
		},
		{
			"held after before", func(r *rig) { r.host.facts.GPUs[3].Holders = []string{"pid 4711"} },
			tuner.ErrHeld, "pid 4711",
			[]string{"stop-service", "start-service"},
			0,
		},
		{
			"port", func(r *rig) { r.study.Before = nil; r.host.facts.PortHolders = []string{"pid 12 (nginx)"} },
			tuner.ErrHeld, "nginx", nil, 0,
		},
		{
			"before fails", func(r *rig) { r.host.fail = map[string]error{"stop-service": errors.New("exit status 5")} },
			tuner.ErrHandOver, "exit status 5",
			[]string{"stop-service", "start-service"},
			0,
		},
		{"dirty", func(r *rig) { r.host.dirty = true }, trial.ErrDirtyHost, "dirty", nil, 0},
		{"launch the baseline instead of after", func(r *rig) {
			r.study.After, r.study.Finish.Launch = nil, "best"
			r.host.facts.GPUs[3].Holders = []string{"pid 4711"}
		}, tuner.ErrHeld, "pid 4711", []string{"stop-service"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, smallStudy())
			tt.change(r)
			v, err := r.loop.Run(t.Context())
			if v != nil || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("verdict %v, error %v", v, err)
			}
			if d := cmp.Diff(tt.ran, r.host.ran); d != "" || len(r.host.started) != tt.started || len(r.trials(t)) != 0 {
				t.Errorf("programs (-want +got):\n%s%d servers started, %d trials", d, len(r.host.started), len(r.trials(t)))
			}
			if rec := r.store.Record(); rec.State != tuner.StudyStopped || rec.Reason == "" {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

// After a dirty trial nothing is started on the host; the record names what was not run and a later
// run, with the host clean, makes it good.
func TestDirtyHostStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.script = func(t *trial.Trial) *trial.Verdict {
		if t.Number == 2 {
			return &trial.Verdict{Outcome: trial.DirtyHost, Cause: "memory_held", Blames: trial.BlameNo, Text: "memory held"}
		}
		return nil
	}
	if _, err := r.loop.Run(t.Context()); !errors.Is(err, trial.ErrDirtyHost) || !strings.Contains(err.Error(), "pid 99") {
		t.Fatalf("error %v", err)
	}
	rec := r.store.Record()
	if !rec.AfterDue || !strings.Contains(rec.AfterDone, "not run") || !strings.Contains(rec.AfterDone, "start-service") || slices.Contains(r.host.ran, "start-service") {
		t.Errorf("after a dirty trial: %+v, ran %v", rec, r.host.ran)
	}
	r.restart(t)
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "better" || !slices.Contains(r.host.ran, "start-service") {
		t.Errorf("resumed: %+v, %v, ran %v", v, err, r.host.ran)
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	innocent := &trial.Verdict{Outcome: trial.EnvFault, Cause: "shm_too_small", Blames: trial.BlameNo, Text: "tiny /dev/shm"}
	guilty := &trial.Verdict{Outcome: trial.GPUOOM, Cause: "prefill_activation", Blames: trial.BlameYes, Text: "out of memory"}
	tests := []struct {
		name      string
		fails     []*trial.Verdict // of the first launches
		canary    bool             // they fail in the canary
		baselines int
		err       error
		verdict   string
		text      string
	}{
		{"runs", nil, false, 1, nil, "better", ""},
		{"innocent once", []*trial.Verdict{innocent}, false, 2, nil, "better", ""},
		{"innocent twice", []*trial.Verdict{innocent, innocent}, false, 2, tuner.ErrBreaker, "", "tiny /dev/shm"},
		{"to blame", []*trial.Verdict{guilty}, false, 1, nil, "not confirmed", "the baseline failed (gpu_oom: out of memory)"},
		{"canary too hard", []*trial.Verdict{guilty}, true, 2, nil, "better", ""},
		{"both canaries too hard", []*trial.Verdict{guilty, guilty}, true, 2, nil, "not confirmed", "the baseline failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, smallStudy())
			r.runner.script = func(row *trial.Trial) *trial.Verdict {
				if row.Role != trial.RoleBaseline || row.Number >= len(tt.fails) {
					return nil
				}
				if tt.canary {
					row.Steps = map[trial.Step]time.Duration{trial.StepCanary: time.Second}
				}
				return tt.fails[row.Number]
			}
			v, err := r.loop.Run(t.Context())
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			h := r.trials(t)
			if n := len(h.Role(trial.RoleBaseline)); n != tt.baselines {
				t.Errorf("%d baseline launches, want %d", n, tt.baselines)
			}
			for _, row := range h {
				if want := tt.canary && row.Number > 0; row.CanaryShrunk != want {
					t.Errorf("trial %d: canary shrunk %v, want %v", row.Number, row.CanaryShrunk, want)
				}
			}
			text := fmt.Sprint(err)
			if v != nil {
				text = v.Text
			}
			if (v == nil) != (tt.verdict == "") || (v != nil && v.Answer != tt.verdict) || !strings.Contains(text, tt.text) {
				t.Errorf("verdict %+v, error %v", v, err)
			}
		})
	}
}

// What the host's memory keeps out of the space is said with the rule and the value, once each.
func TestTooLargeHostPoolsAreNamed(t *testing.T) {
	t.Parallel()
	s := newStudy()
	s.Budget.Trials = 6
	s.Space[1].Values = []any{0.0, 48.0, 56.0, 300.0}
	r := newRig(t, s)
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, text := range r.store.texts("reject") {
		for _, size := range []string{"hicache-size 56 ", "hicache-size 300 "} {
			if strings.HasPrefix(text, "host RAM: "+size) {
				told[size]++
			}
		}
	}
	if d := cmp.Diff(map[string]int{"hicache-size 56 ": 1, "hicache-size 300 ": 1}, told); d != "" {
		t.Errorf("refusals (-want +got):\n%s\n%q", d, r.store.texts("reject"))
	}
	for _, row := range r.trials(t) {
		if pool, _ := row.Config.Float("hicache-size"); pool > 48 {
			t.Errorf("trial %d has a host pool of %v GB", row.Number, pool)
		}
	}
}
