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
		{"no token, the log is silent and /health fails", sglang.Witness{Alive: true, FiredUp: true, Health: 503, Failures: 3, Owed: long, Silent: long}, sglang.StateStuck, ""},
		{"no token, but /health failed once only", sglang.Witness{Alive: true, FiredUp: true, Health: 503, Failures: 1, Owed: long, Silent: long}, sglang.StateWaiting, ""},
		{"/health fails while the log moves", sglang.Witness{Alive: true, FiredUp: true, Health: 503, Failures: 9, Owed: long, Silent: time.Second}, sglang.StateWaiting, ""},
		{"200 alone, in silence", sglang.Witness{Alive: true, Health: 200, Owed: long, Silent: long}, sglang.StateWaiting, ""},
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

func TestHealthPath(t *testing.T) {
	t.Parallel()
	log := func(lines ...string) map[string]sglang.Event {
		first := map[string]sglang.Event{}
		for _, line := range lines {
			if e, ok := sglang.ParseLine("[2026-01-01 22:00:00 TP0] " + line); ok {
				first[e.Kind] = e
			}
		}
		return first
	}
	off := map[string]string{"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false"}
	for _, tt := range []struct {
		name    string
		version string
		log     map[string]sglang.Event
		env     map[string]string
		want    string
	}{
		{"0.4.6 says 200 to everybody", "0.4.6.post5", nil, nil, "/health_generate"},
		{"0.4.9 too", "0.4.9.post6", nil, nil, "/health_generate"},
		{"0.5.2 generates", "0.5.2", nil, nil, "/health"},
		{"0.5.23 generates", "0.5.23", nil, nil, "/health"},
		{"unless it is switched off", "0.5.23", nil, off, "/health_generate"},
		{"nothing is known", "", nil, nil, "/health_generate"},
		{"an old log", "", log("Load weight end. type=X, dtype=torch.bfloat16, avail mem=1.00 GB, mem usage=1.00 GB."), nil, "/health_generate"},
		{"a log of 0.5.10", "", log("Load weight end. elapsed=3.00 s, type=X, avail mem=1.00 GB, mem usage=1.00 GB."), nil, "/health"},
		{"a log of 0.5.23", "", log("Init parallel begin."), nil, "/health"},
		{"a log of 0.5.20", "", log("server_args={'model_path': 'm', 'tp_size': 8}"), nil, "/health"},
		{"arguments of a dataclass", "", log("server_args=ServerArgs(model_path='m', tp_size=8)"), nil, "/health_generate"},
		{"the version is believed before the log", "0.4.9", log("Init parallel begin."), nil, "/health_generate"},
	} {
		version, _ := sglang.ParseVersion(tt.version) // an empty text is an unknown version
		if got := sglang.HealthPath(version, tt.log, tt.env); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
