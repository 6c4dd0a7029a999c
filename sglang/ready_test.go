package sglang_test

import (
	"strings"
	"testing"
	"time"

	"sgtune/sglang"
)

func TestReady(t *testing.T) {
	t.Parallel()
	const long = 3 * sglang.HealthTimeout
	for _, tt := range []struct {
		name    string
		w       sglang.Witness
		want    sglang.State
		finding string
	}{
		{"loading", sglang.Witness{Alive: true}, sglang.StateWaiting, ""},
		{"warming up", sglang.Witness{Alive: true, Health: 503}, sglang.StateWaiting, ""},
		{"says ready, no token yet", sglang.Witness{Alive: true, FiredUp: true, Health: 200}, sglang.StateWaiting, ""},
		{"token after the log line", sglang.Witness{Alive: true, FiredUp: true, Token: true, Ours: true}, sglang.StateReady, ""},
		{"token after health", sglang.Witness{Alive: true, Health: 200, Token: true, Ours: true}, sglang.StateReady, ""},
		{"token from somebody else's port", sglang.Witness{Alive: true, FiredUp: true, Health: 200, Token: true}, sglang.StateWaiting, ""},
		{"token, but 503", sglang.Witness{Alive: true, Health: 503, Token: true, Ours: true}, sglang.StateReady, "health_starting"},
		{"token, health too slow", sglang.Witness{Alive: true, HealthTimedOut: true, Token: true, Ours: true}, sglang.StateReady, "health_busy_timeout"},
		{"token, nothing else", sglang.Witness{Alive: true, Token: true, Ours: true}, sglang.StateReady, "health_starting"},
		{"no token and silence", sglang.Witness{Alive: true, FiredUp: true, Health: 200, Owed: long, Silent: long}, sglang.StateStuck, ""},
		{"no token but the log moves", sglang.Witness{Alive: true, FiredUp: true, Health: 200, Owed: long, Silent: time.Second}, sglang.StateWaiting, ""},
		{"silence while loading", sglang.Witness{Alive: true, Owed: long, Silent: long}, sglang.StateWaiting, ""},
		{"dead with a token", sglang.Witness{FiredUp: true, Health: 200, Token: true, Ours: true}, sglang.StateGone, ""},
		{"a monitor that wants a body", sglang.Witness{Alive: true, FiredUp: true, Health: 200, Token: true, Ours: true, CalledDead: true}, sglang.StateReady, "health_body_empty"},
		{"a monitor that cannot wait", sglang.Witness{Alive: true, FiredUp: true, Health: 503, Token: true, Ours: true, Batches: true, CalledDead: true}, sglang.StateReady, "health_busy_timeout"},
		{"a monitor that is early", sglang.Witness{Alive: true, Health: 503, CalledDead: true}, sglang.StateWaiting, "health_starting"},
	} {
		got := sglang.Ready(tt.w)
		if got.State != tt.want || got.Ready != (tt.want == sglang.StateReady) {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
		if tt.finding == "" && len(got.Disagree) > 0 || tt.finding != "" && (len(got.Disagree) == 0 || !strings.HasPrefix(got.Disagree[0], tt.finding+": ")) {
			t.Errorf("%s: findings %q, want %q", tt.name, got.Disagree, tt.finding)
		}
	}
}
