package tuner_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// messages collects what a rig's study sends.
func (r *rig) messages() *[]tuner.Message {
	var got []tuner.Message
	r.study.Finish.Notify = []tuner.Notify{{URL: "http://anywhere"}}
	r.loop.Notify = func(_ context.Context, _ tuner.Notify, m tuner.Message) error {
		got = append(got, m)
		return nil
	}
	return &got
}

func failing(v trial.Verdict) func(*trial.Trial) *trial.Verdict {
	return func(*trial.Trial) *trial.Verdict { return &v }
}

// Each way a study ends is a message of its own kind that says why, and that reason is stored.
func TestMessageOfEachEnd(t *testing.T) {
	t.Parallel()
	crash := trial.Verdict{Outcome: trial.Crashed, Phase: sglang.PhaseWeightLoad, Cause: "cuda_error", Blames: trial.BlameYes, Text: "CUDA error 700"}
	tests := []struct {
		name   string
		change func(r *rig)
		kind   tuner.MessageKind
		says   []string
		after  string
	}{
		{"verdict", func(*rig) {}, tuner.MessageDone, []string{"study night is complete", "better: trial 4", "after: ok"}, "after: ok"},
		{"same failure", func(r *rig) { r.runner.script = failing(crash) }, tuner.MessageBreaker, []string{"study night is stopped", "CUDA error 700", "3 times"}, "after: ok"},
		{
			"host changed", func(r *rig) {
				r.runner.during = func(context.Context, *trial.Trial) { r.host.facts.GPUs = r.host.facts.GPUs[:7] }
			}, tuner.MessageBreaker, []string{"it had 8 GPUs and has 7"}, "after: ok",
		},
		{
			"dirty host", func(r *rig) {
				r.runner.script = failing(trial.Verdict{Outcome: trial.DirtyHost, Cause: "memory_held", Text: "pid 99 holds 12 GB of GPU 3"})
			}, tuner.MessageDirty, []string{"pid 99 holds 12 GB of GPU 3", "after: not run"}, "after: not run",
		},
		{"what an earlier run left", func(r *rig) { r.host.dirty = true }, tuner.MessageDirty, []string{"could not be cleaned of what an earlier run left"}, ""},
		{"held", func(r *rig) { r.host.facts.PortHolders = []string{"pid 4711"} }, tuner.MessageHeld, []string{"pid 4711", "free it with before:"}, "after: ok"},
		{"before failed", func(r *rig) { r.host.fail = map[string]error{"stop-service": errors.New("exit status 5")} }, tuner.MessageFailed, []string{"exit status 5"}, "after: ok"},
		{"a person", func(r *rig) {
			r.runner.during = func(context.Context, *trial.Trial) {
				r.store.push(tuner.Command{ID: 1, Kind: "stop_after_trial"})
			}
		}, tuner.MessageStopped, []string{"as a person asked"}, "after: ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, smallStudy())
			tt.change(r)
			got := r.messages()
			_, err := r.loop.Run(t.Context())
			if len(*got) != 1 {
				t.Fatalf("%d messages: %+v (%v)", len(*got), *got, err)
			}
			m, rec := (*got)[0], r.store.Record()
			if m.Kind != tt.kind || m.Study != "night" || m.State != rec.State || m.Reason != rec.Reason || !strings.HasPrefix(m.After, tt.after) {
				t.Errorf("message %+v of %+v", m, rec)
			}
			if (err != nil) != (m.Reason != "") {
				t.Errorf("reason %q for the error %v", m.Reason, err)
			}
			for _, want := range tt.says {
				if !strings.Contains(m.Text, want) {
					t.Errorf("the message does not say %q: %s", want, m.Text)
				}
			}
			if strings.Contains(m.Text, "\n") {
				t.Errorf("more than a line: %q", m.Text)
			}
		})
	}
}

// A server that hangs is told at once and once; the study goes on to its verdict.
func TestStuckIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	got := r.messages()
	r.runner.script = func(row *trial.Trial) *trial.Verdict {
		if row.Number != 1 && row.Number != 2 {
			return nil
		}
		return &trial.Verdict{Outcome: trial.Stuck, Phase: sglang.PhaseDecode, Cause: "no_progress", Blames: trial.BlamePartly, Text: "nothing moved for 3m"}
	}
	during := -1
	notify := r.loop.Notify
	r.loop.Notify = func(ctx context.Context, to tuner.Notify, m tuner.Message) error {
		if m.Kind == tuner.MessageStuck {
			during = len(r.trials(t))
		}
		return errors.Join(notify(ctx, to, m), errors.New("no mail today"))
	}
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(*got) != 2 || (*got)[0].Kind != tuner.MessageStuck || (*got)[1].Kind != tuner.MessageDone || during != 2 {
		t.Fatalf("%+v, the first after %d trials", *got, during)
	}
	m := (*got)[0]
	if m.State != tuner.StudyRunning || m.Trial == nil || *m.Trial != 1 || !strings.Contains(m.Text, "nothing moved for 3m") || !strings.Contains(m.Text, "goes on") {
		t.Errorf("message %+v", m)
	}
	if told := r.store.texts("notify"); len(told) != 2 || !strings.Contains(told[0], "no mail today") {
		t.Errorf("events %v", told)
	}
}

// What after: takes does not shorten the time for telling people.
func TestSlowAfterLeavesTimeToTell(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.study.Budget.Trials = 1
	r.messages()
	var left []bool
	r.loop.Notify = func(ctx context.Context, _ tuner.Notify, _ tuner.Message) error {
		_, limited := ctx.Deadline()
		left = append(left, limited && ctx.Err() == nil)
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.loop.Host = ended{r.host, cancel}
	if _, err := r.loop.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || !left[0] {
		t.Errorf("told %v", left)
	}
}

// ended is a host whose after: takes until nobody waits any more.
type ended struct {
	*fakeHost
	cancel func()
}

func (h ended) Run(ctx context.Context, argv []string) error {
	if argv[0] == "start-service" {
		h.cancel()
	}
	return h.fakeHost.Run(ctx, argv)
}
