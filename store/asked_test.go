package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// TestAskAtOnce has many people press the same button at once, from two processes: it is asked once.
func TestAskAtOnce(t *testing.T) {
	t.Parallel()
	first := open(t)
	handles := []*store.DB{first, openAt(t, first.Path())}
	var mu sync.Mutex
	ids, news := map[int64]bool{}, 0
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			c, again, err := handles[i%2].Ask(t.Context(), "night", tuner.Command{Kind: tuner.StopNow, At: night, By: "somebody", Once: string(rune('a' + i))})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[c.ID] = true
			if !again {
				news++
			}
		})
	}
	group.Wait()
	if len(ids) != 1 || news != 1 {
		t.Errorf("ids %v, %d of them new; want one", ids, news)
	}
	c, err := first.TakeCommand(t.Context(), "night")
	if err != nil || c == nil || c.By != "somebody" || !c.At.Equal(night) || c.TakenAt.IsZero() {
		t.Fatalf("taken %+v, %v", c, err)
	}
	if c, err := first.TakeCommand(t.Context(), "night"); c != nil || err != nil {
		t.Errorf("a second one: %+v, %v", c, err)
	}
}

// TestAskAgain says what repeats what, while one process lives and after it.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	db := open(t)
	life := tuner.Heard{At: night, Since: night, PID: 4711}
	if err := db.Arrive(t.Context(), "night", life); err != nil {
		t.Fatal(err)
	}
	ask := func(kind, once string, after time.Duration, config sglang.Config) bool {
		t.Helper()
		_, again, err := db.Ask(t.Context(), "night", tuner.Command{Kind: kind, Once: once, At: night.Add(after), Config: config})
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	take := func() {
		t.Helper()
		if c, err := db.TakeCommand(t.Context(), "night"); c == nil || err != nil {
			t.Fatalf("nothing to take: %v", err)
		}
	}
	a, b := sglang.Config{"mem-fraction-static": 0.88}, sglang.Config{"mem-fraction-static": 0.89}
	steps := []struct {
		kind, once string
		config     sglang.Config
		take       bool
		again      bool
	}{
		{tuner.Enqueue, "1", a, false, false},
		{tuner.Enqueue, "2", a, false, true}, // it waits
		{tuner.Enqueue, "3", b, true, false}, // another one
		{tuner.Enqueue, "1", b, true, true},  // the same form
		{tuner.StopAfterTrial, "4", nil, true, false},
		{tuner.StopAfterTrial, "5", nil, false, true}, // taken, and in force
		{tuner.StopNow, "6", nil, false, false},       // more than that
		{tuner.StopNow, "7", nil, false, true},
		{tuner.StopAfterTrial, "8", nil, false, true}, // less than that
	}
	for i, step := range steps {
		if again := ask(step.kind, step.once, time.Duration(i)*time.Second/2, step.config); again != step.again {
			t.Errorf("step %d (%s): again is %v", i, step.kind, again)
		}
		if step.take {
			take()
		}
	}
	all, err := db.Asked(t.Context(), "night", 10)
	if err != nil || len(all) != 4 || all[0].Kind != tuner.StopNow || !all[0].TakenAt.IsZero() || all[3].TakenAt.IsZero() {
		t.Fatalf("asked: %+v, %v", all, err)
	}
	// Another process takes the study up: the stop was not meant for it, the configuration still is.
	life.Since, life.At = night.Add(time.Minute), night.Add(time.Minute)
	if err := db.Arrive(t.Context(), "night", life); err != nil {
		t.Fatal(err)
	}
	events, _, err := db.Events(t.Context(), "night", -1, 1)
	if err != nil || len(events) != 1 || !strings.Contains(events[0].Text, "stop now") || !strings.Contains(events[0].Text, "too late") {
		t.Errorf("events %+v, %v", events, err)
	}
	for {
		c, err := db.TakeCommand(t.Context(), "night")
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			break
		}
		if c.Kind == tuner.StopNow {
			t.Error("a stop for an earlier process was handed out")
		}
	}
	if ask(tuner.StopNow, "9", time.Minute+time.Second, nil) {
		t.Error("a stop of the new process counts as the old one's")
	}
}

func TestAskRefused(t *testing.T) {
	t.Parallel()
	db := open(t)
	void := full(1)
	void.Void = "somebody compiled"
	for _, tr := range []*trial.Trial{full(0), void, {Study: "night", Number: 2, Role: trial.RoleSearch, State: trial.Waiting}} {
		if err := db.SaveTrial(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*tuner.Record{{Name: "over", State: tuner.StudyComplete}, {Name: "dead", State: tuner.StudyRunning}} {
		if err := db.SaveStudy(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Hear(t.Context(), "dead", tuner.Heard{At: night.Add(-time.Minute), Since: night.Add(-time.Hour), PID: 1}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		study string
		c     tuner.Command
		want  string
	}{
		{"over", tuner.Command{Kind: tuner.StopNow}, "has ended"},
		{"over", tuner.Command{Kind: tuner.Enqueue, Config: sglang.Config{"x": 1.0}}, "nothing is launched any more"},
		{"over", tuner.Command{Kind: tuner.VoidTrial}, "verdict stands"},
		{"dead", tuner.Command{Kind: tuner.StopAfterTrial}, "has not been heard from"},
		{"night", tuner.Command{Kind: tuner.VoidTrial, Trial: 1}, "void already: somebody compiled"},
		{"night", tuner.Command{Kind: tuner.VoidTrial, Trial: 2}, "has not begun"},
		{"night", tuner.Command{Kind: tuner.VoidTrial, Trial: 99}, "no trial 99"},
		{"night", tuner.Command{Kind: tuner.VoidTrial, Trial: 0}, ""},
	} {
		tt.c.At = night
		_, _, err := db.Ask(t.Context(), tt.study, tt.c)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", tt.c, err)
			}
			continue
		}
		refused := (*tuner.Refusal)(nil)
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), ".db") {
			t.Errorf("%s %+v: %v, want %q", tt.study, tt.c, err, tt.want)
		}
	}
	if _, _, err := db.Ask(t.Context(), "nobody", tuner.Command{Kind: tuner.StopNow, At: night}); !errors.Is(err, tuner.ErrNoStudy) {
		t.Errorf("an unknown study: %v", err)
	}
}

// TestHeard keeps a sign of life apart from what changes a study, also where an older database has no place for it.
func TestHeard(t *testing.T) {
	t.Parallel()
	db := open(t)
	before, err := db.Summary(t.Context(), "night")
	if err != nil || before.Heard != (tuner.Heard{}) || before.Silent(night) {
		t.Fatalf("before: %+v, %v", before, err)
	}
	want := tuner.Heard{At: night.Add(time.Second), Since: night, PID: 4711}
	for range 2 {
		if err := db.Hear(t.Context(), "night", want); err != nil {
			t.Fatal(err)
		}
	}
	after, err := db.Summary(t.Context(), "night")
	if err != nil || after.Heard != want || after.Revision != before.Revision {
		t.Errorf("after: %+v, revision %d then %d, %v", after.Heard, before.Revision, after.Revision, err)
	}
	if pulse, err := db.Pulse(t.Context(), "night"); err != nil || pulse.Heard != want || pulse.Revision != after.Revision || pulse.State != after.State {
		t.Errorf("pulse: %+v, %v", pulse, err)
	}
	if _, err := db.Pulse(t.Context(), "nobody"); !errors.Is(err, tuner.ErrNoStudy) {
		t.Errorf("pulse of an unknown study: %v", err)
	}
	if after.Silent(want.At.Add(tuner.SilentAfter)) || !after.Silent(want.At.Add(tuner.SilentAfter+time.Millisecond)) {
		t.Error("silent too early or too late")
	}
	old, err := store.OpenReadOnly(t.Context(), older(t, db))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if s, err := old.Summary(t.Context(), "night"); err != nil || s.Heard != (tuner.Heard{}) {
		t.Errorf("the first schema: %+v, %v", s, err)
	}
	if s, err := old.Pulse(t.Context(), "night"); err != nil || s.Heard != (tuner.Heard{}) || s.State != tuner.StudyRunning {
		t.Errorf("pulse of the first schema: %+v, %v", s, err)
	}
	if c, err := old.Asked(t.Context(), "night", 5); err != nil || c != nil {
		t.Errorf("commands of the first schema: %v, %v", c, err)
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	db := open(t)
	void := full(1)
	void.Void = "x"
	for _, tr := range []*trial.Trial{full(0), void, full(2)} {
		if err := db.SaveTrial(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Tally(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total, voids := 0, 0
	for _, n := range got {
		total += n.Count
		if n.Void {
			voids += n.Count
		}
		if n.Study != "night" {
			t.Errorf("%+v", n)
		}
	}
	if total != 3 || voids != 1 {
		t.Errorf("%+v", got)
	}
}
