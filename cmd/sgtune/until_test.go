package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/tuner"
)

// wall is a machine's clock: that far ahead of ours, in a zone of its own.
type wall struct {
	ahead time.Duration
	zone  *time.Location
	err   error
}

func (w wall) Until(_ context.Context, hour string) (host.WallClock, error) {
	now := time.Now().Add(w.ahead).In(w.zone)
	then, err := host.HourAt(now, hour)
	return host.WallClock{Now: now, Then: then}, errors.Join(err, w.err)
}

// The hour is that of the host's clock, in the host's zone, and the study's clock is told when it comes.
func TestUntilByTheHostsClock(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		clock wall
		note  string
	}{
		{"the same", wall{zone: time.UTC}, ""},
		{"another zone", wall{zone: time.FixedZone("far", 9*3600)}, ""},
		{"a clock ahead", wall{zone: time.UTC, ahead: 4 * time.Minute}, "The clock of gpu-box is 4 min ahead of this machine's"},
		{"a clock behind", wall{zone: time.UTC, ahead: -4 * time.Minute}, "The clock of gpu-box is 4 min behind this machine's"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &tuner.Study{Host: tuner.HostSpec{Address: "gpu-box"}, Budget: tuner.Budget{Until: "07:00"}}
			ours := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC) // a study's clock may show anything
			note, err := setUntil(t.Context(), tt.clock, s, ours)
			if err != nil || !strings.HasPrefix(note, tt.note) || (tt.note == "") != (note == "") {
				t.Fatalf("%q, %v", note, err)
			}
			left := s.Budget.UntilAt.Sub(ours)
			shown := time.Now().Add(tt.clock.ahead + left).In(tt.clock.zone).Round(time.Minute)
			if left <= 0 || left > 25*time.Hour || shown.Format("15:04") != "07:00" {
				t.Errorf("%s are left, and then it is %s there", left, shown)
			}
		})
	}
	s := &tuner.Study{Budget: tuner.Budget{Until: "07:00"}}
	if _, err := setUntil(t.Context(), wall{zone: time.UTC, err: errors.New("the link is down")}, s, time.Now()); err == nil || !strings.Contains(err.Error(), "the link is down") {
		t.Errorf("got %v", err)
	}
}
