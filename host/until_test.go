package host_test

import (
	"testing"
	"time"

	"sgtune/host"
)

// The hour comes by the rules of the zone: a night in which summer time begins is an hour shorter.
func TestHourAt(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		now  time.Time
		hour string
		want time.Duration
	}{
		{"tomorrow", time.Date(2026, 1, 1, 22, 0, 0, 0, berlin), "07:00", 9 * time.Hour},
		{"today", time.Date(2026, 1, 1, 3, 30, 0, 0, berlin), "07:00", 3*time.Hour + 30*time.Minute},
		{"just struck", time.Date(2026, 1, 1, 7, 0, 0, 0, berlin), "07:00", 24 * time.Hour},
		{"summer time begins", time.Date(2026, 3, 28, 22, 0, 0, 0, berlin), "07:00", 8 * time.Hour},
		{"summer time ends", time.Date(2026, 10, 24, 22, 0, 0, 0, berlin), "07:00", 10 * time.Hour},
	} {
		got, err := host.HourAt(tt.now, tt.hour)
		if err != nil || got.Sub(tt.now) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got.Sub(tt.now), err, tt.want)
		}
	}
	if _, err := host.HourAt(time.Now(), "noon"); err == nil {
		t.Error("noon is an hour")
	}
}

// Another machine is asked over the link.
func TestRemoteUntil(t *testing.T) {
	t.Parallel()
	r := newRemote(t.TempDir())
	defer func() { _ = r.Close() }()
	w, err := r.Until(t.Context(), "07:00")
	if err != nil {
		t.Fatal(err)
	}
	if left := w.Then.Sub(w.Now); w.Then.Local().Format("15:04") != "07:00" || left <= 0 || left > 25*time.Hour || time.Since(w.Now).Abs() > 5*time.Second {
		t.Errorf("it is %s there, and the hour comes %s", w.Now, w.Then)
	}
	if _, err := r.Until(t.Context(), "noon"); err == nil {
		t.Error("noon is an hour")
	}
}
