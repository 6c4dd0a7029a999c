package tuner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sgtune/trial"
	"sgtune/tuner"
)

// A study goes on only on the machine that its first trials ran on, whatever happened between two runs of the program.
func TestOtherMachineBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		kind   string
		change func(f *tuner.HostFacts)
		want   string // "" = the study goes on
	}{
		{"a new start", "", func(f *tuner.HostFacts) { f.BootID, f.MemTotal = "b2", f.MemTotal-100<<20 }, ""},
		{"another card", "", func(f *tuner.HostFacts) { f.GPUs[2].UUID = "GPU-other" }, "GPU 2 was the card GPU-2 and is GPU-other"},
		{"cards numbered anew", "", func(f *tuner.HostFacts) {
			f.GPUs[0].UUID, f.GPUs[7].UUID = f.GPUs[7].UUID, f.GPUs[0].UUID
		}, ""},
		{"another kind of card", "", func(f *tuner.HostFacts) { f.GPUs[3].Name = "H20" }, "GPU 3 was GPU with"},
		{"fewer cards", "", func(f *tuner.HostFacts) { f.GPUs = f.GPUs[:4] }, "8 GPUs and has 4"},
		{"another driver", "", func(f *tuner.HostFacts) { f.Driver = "555.42.06" }, "its NVIDIA driver was 550.54.15 and is 555.42.06"},
		{"another kernel", "", func(f *tuner.HostFacts) { f.Kernel = "6.8.0-45" }, "its kernel was 6.1.0-31 and is 6.8.0-45"},
		{"less memory", "", func(f *tuner.HostFacts) { f.MemTotal = 300e9 }, "449.0 GB of RAM and has 300.0 GB"},
		{"a driver that does not answer", "", func(f *tuner.HostFacts) { f.GPUs, f.GPUNote, f.Driver = nil, "no answer", "" }, ""},
		{"another node of a cluster", tuner.HostSlurm, func(f *tuner.HostFacts) {
			f.Kernel, f.Driver, f.MemTotal, f.GPUs[2].UUID = "6.8.0-45", "555.42.06", 300e9, "GPU-other"
		}, ""},
		{"another kind of node", tuner.HostSlurm, func(f *tuner.HostFacts) { f.GPUs[3].Name = "H20" }, "GPU 3 was GPU with"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			if tt.kind != "" {
				s.Host.Kind = tt.kind
			}
			r := newRig(t, s)
			facts := &r.host.facts
			facts.BootID, facts.Driver, facts.Kernel = "b1", "550.54.15", "6.1.0-31"
			for i := range facts.GPUs {
				facts.GPUs[i].UUID = fmt.Sprintf("GPU-%d", i)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			r.runner.during = func(_ context.Context, row *trial.Trial) {
				if row.Number == 1 {
					stop(trial.ErrStopped)
				}
			}
			if _, err := r.loop.Run(ctx); !errors.Is(err, trial.ErrStopped) {
				t.Fatal(err)
			}
			before := len(r.trials(t))
			facts.GPUs = slices.Clone(facts.GPUs)
			tt.change(facts)
			r.runner.during, r.host.ran = nil, nil
			r.restart(t)
			_, err := r.loop.Run(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want == "":
			case !errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), tt.want) || len(r.trials(t)) != before:
				t.Errorf("error %v after %d trials, want %q", err, len(r.trials(t))-before, tt.want)
			case len(r.host.ran) > 0:
				t.Errorf("it ran %v on a host that it would not use", r.host.ran)
			}
		})
	}
}

// A study from before machines were stored takes the one it finds.
func TestMachineOfAnOldStudy(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	ctx, stop := context.WithCancelCause(t.Context())
	r.runner.during = func(context.Context, *trial.Trial) { stop(trial.ErrStopped) }
	if _, err := r.loop.Run(ctx); !errors.Is(err, trial.ErrStopped) {
		t.Fatal(err)
	}
	r.restart(t)
	r.loop.Record.Machine, r.runner.during = nil, nil
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := r.store.Record().Machine; m == nil || len(m.GPUs) != 8 || m.MemTotal != 449e9 {
		t.Errorf("stored %+v", m)
	}
}

// What sgtune itself left running is named as its own, with how to stop it; nothing is started beside it.
func TestOwnServerHoldsTheHost(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.host.facts.Residents = []string{"the server that sgtune launched when study night ended (pid 4711); to stop it: kill 4710"}
	_, err := r.loop.Run(t.Context())
	if !errors.Is(err, tuner.ErrHeld) || !strings.Contains(err.Error(), "sgtune's own: the server that sgtune launched") || !strings.Contains(err.Error(), "kill 4710; stop it") {
		t.Errorf("got %v", err)
	}
	if n := len(r.trials(t)); n != 0 {
		t.Errorf("%d trials", n)
	}
}

// check says it beforehand.
func TestCheckNamesOwnServers(t *testing.T) {
	t.Parallel()
	own := "the server on port 30000 that sgtune launched when study night ended (pid 4711); to stop it: kill 4710"
	for _, before := range [][]string{nil, {"kill", "4710"}} {
		s := smallStudy()
		s.Before = before
		r := newRig(t, s)
		r.host.facts.Residents = []string{own}
		got := tuner.Check(s, tuner.CheckInput{Facts: r.host.facts, Now: r.clock.Now()})
		against, note := strings.Contains(got.Verdict, own), slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, own) })
		if against != (before == nil) || note != (before != nil) {
			t.Errorf("with before: %v: %s, notes %q", before, got.Verdict, got.Notes)
		}
	}
}
