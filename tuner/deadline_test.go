package tuner

import (
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
)

func TestDeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 22, 0, 0, 0, time.FixedZone("host", 3600))
	hour := row(0, 100, sglang.Config{}, 0)
	hour.StartedAt, hour.EndedAt = now.Add(-20*time.Hour), now.Add(-19*time.Hour)
	tests := []struct {
		name   string
		budget Budget
		h      History
		want   time.Time
	}{
		{"no limit", Budget{Trials: 5}, nil, time.Time{}},
		{"wall", Budget{Wall: 9 * time.Hour}, nil, now.Add(9 * time.Hour)},
		{"wall of a study that was interrupted overnight", Budget{Wall: 9 * time.Hour}, History{hour}, now.Add(8 * time.Hour)},
		{"until tomorrow", Budget{Until: "07:00"}, nil, now.Add(9*time.Hour - finishTime)},
		{"until today", Budget{Until: "22:30"}, nil, now.Add(30*time.Minute - finishTime)},
		{"until the hour that just struck", Budget{Until: "22:00"}, nil, now.Add(24*time.Hour - finishTime)},
		{"until by another clock", Budget{Until: "07:00", UntilAt: now.Add(3 * time.Hour)}, nil, now.Add(3*time.Hour - finishTime)},
		{"whichever comes first", Budget{Wall: time.Hour, Until: "07:00"}, nil, now.Add(time.Hour)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := deadline(tt.budget, tt.h, now, finishTime)
			if err != nil || !got.Equal(tt.want) {
				t.Errorf("deadline %v, %v; want %v", got, err, tt.want)
			}
		})
	}
	if _, err := deadline(Budget{Until: "noon"}, nil, now, 0); err == nil {
		t.Error("an hour that is none was accepted")
	}
}

// The hour of another machine's clock is told beside the one it is here.
func TestUntilText(t *testing.T) {
	t.Parallel()
	here := time.FixedZone("here", 0)
	at := time.Date(2026, 1, 2, 7, 0, 0, 0, time.FixedZone("CET", 3600))
	for _, tt := range []struct {
		name string
		at   time.Time
		want string
	}{
		{"our own clock", time.Time{}, "07:00"},
		{"the same zone", at.Add(time.Hour), "07:00"},
		{"another zone", at, "07:00 on gpu-box = 06:00 here"},
		{"a clock that is 3 minutes ahead", at.Add(57 * time.Minute), "07:00 on gpu-box = 06:57 here"},
	} {
		s := &Study{Budget: Budget{Until: "07:00", UntilAt: tt.at}, Host: HostSpec{Address: "gpu-box"}}
		if got := s.UntilText(here); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Launches count what the budget pays for; numbers are never reused.
func TestHistoryCounts(t *testing.T) {
	t.Parallel()
	cancelled := &trial.Trial{Number: 5, Role: trial.RoleSearch, State: trial.Cancelled}
	confirm := row(4, 1, sglang.Config{}, 0)
	confirm.Role = trial.RoleConfirm
	lost := &trial.Trial{Number: 1, Role: trial.RoleSearch, State: trial.Failed, Verdict: trial.Verdict{Outcome: trial.Aborted, Cause: "unknown"}}
	h := History{row(0, 1, sglang.Config{}, 0), lost, row(2, 1, sglang.Config{}, 0), confirm, cancelled, {Number: 3, Role: trial.RoleSearch, State: trial.Waiting}}
	if h.Launches() != 3 || h.NextNumber() != 6 || len(h.Pending()) != 1 || History(nil).Pending() == nil || History(nil).NextNumber() != 0 {
		t.Errorf("%d launches, next %d, %d pending", h.Launches(), h.NextNumber(), len(h.Pending()))
	}
}
