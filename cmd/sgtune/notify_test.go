package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/tuner"
)

var told = tuner.Message{Study: "night", State: tuner.StudyComplete, Text: "study night is complete", After: "after: ok", Simulated: true}

// isTold checks that a message arrived whole.
func isTold(t *testing.T, body []byte) {
	t.Helper()
	var got tuner.Message
	if err := json.Unmarshal(body, &got); err != nil || got != told {
		t.Errorf("got %s (%v)", body, err)
	}
	if !strings.Contains(string(body), `"study":"night"`) {
		t.Errorf("the keys of %s are not those of scripts", body)
	}
}

func TestNotifyProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "message")
	if err := notify(t.Context(), tuner.Notify{Run: []string{"sh", "-c", `cat > "$1"`, "sh", file}}, told); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	isTold(t, body)
}

func TestNotifyURL(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s with %q", r.Method, r.Header)
		}
		bodies <- body
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	if err := notify(t.Context(), tuner.Notify{URL: server.URL}, told); err != nil {
		t.Fatal(err)
	}
	isTold(t, <-bodies)
}

func TestNotifyFails(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		name string
		to   tuner.Notify
		want string
	}{
		{"program fails", tuner.Notify{Run: []string{"sh", "-c", "echo no mail today >&2; exit 4"}}, "notify with sh: exit status 4: no mail today"},
		{"no program", tuner.Notify{Run: []string{"/nowhere/notify.sh"}}, "/nowhere/notify.sh: no such file"},
		{"refused", tuner.Notify{URL: refusing.URL}, "the server answered 403 Forbidden"},
		{"nobody there", tuner.Notify{URL: gone.URL}, "connection refused"},
		{"no address", tuner.Notify{URL: "http://bad host/"}, "notify: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := notify(t.Context(), tt.to, told)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
