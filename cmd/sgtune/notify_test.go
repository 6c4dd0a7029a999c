package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

var told = tuner.Message{
	Kind: tuner.MessageDone, Study: "night", State: tuner.StudyComplete, Text: "study night is complete; pass=correct-horse-battery",
	After: "after: ok", Simulated: true,
	Verdict: &tuner.Verdict{Answer: "better", Trial: 4, Config: sglang.Config{"api-key": 884220197735.0, "mem-fraction-static": 0.9, "env.HF_TOKEN": "anything"}, Text: "better by hf_Qx7mPz0aVb3nRk8s"},
}

// quick is a notifier that does not make a test wait.
func quick() *notifier {
	n := newNotifier([]string{"correct-horse-battery"})
	n.try, n.limit, n.pauses = 5*time.Second, 20*time.Second, []time.Duration{time.Millisecond, time.Millisecond}
	return n
}

// isTold checks that a message arrived whole and without its secrets.
func isTold(t *testing.T, body []byte) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	verdict, _ := got["verdict"].(map[string]any)
	for _, name := range []string{"kind", "study", "state", "text", "after", "simulated"} {
		want := map[string]any{
			"kind": "done", "study": "night", "state": "complete", "text": "study night is complete; pass=***", "after": "after: ok", "simulated": true,
		}[name]
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	config := map[string]any{"api-key": "***", "mem-fraction-static": 0.9, "env.HF_TOKEN": "***"}
	if diff := cmp.Diff(config, verdict["config"]); diff != "" || verdict["text"] != "better by ***" || verdict["trial"] != 4.0 {
		t.Errorf("verdict %v (-want +got):\n%s", verdict, diff)
	}
}

// A program gets JSON on its standard input, the words in its environment, and is its own process group.
func TestNotifyProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "message")
	script := `cat > "$1"; printf '%s\n' "$SGTUNE_KIND" "$SGTUNE_STUDY" "$SGTUNE_TEXT" > "$1.env"`
	if err := quick().send(t.Context(), tuner.Notify{Run: []string{"sh", "-c", script, "sh", file}}, told); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	isTold(t, body)
	words, err := os.ReadFile(file + ".env")
	if err != nil || string(words) != "done\nnight\nstudy night is complete; pass=***\n" {
		t.Errorf("environment %q, %v", words, err)
	}
}

func TestNotifyURL(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Message") != "{{.text}}" {
			t.Errorf("%s with %q", r.Method, r.Header)
		}
		bodies <- body
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	if err := quick().send(t.Context(), tuner.Notify{URL: server.URL}, told); err != nil {
		t.Fatal(err)
	}
	isTold(t, <-bodies)
}

// A server or a program that fails is tried again a little; one that says no is not.
func TestNotifyTriesAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		answers []int // the last one repeats
		want    int   // tries
		ok      bool
	}{
		{"well at once", []int{200}, 1, true},
		{"busy, then well", []int{503, 429, 200}, 3, true},
		{"always ill", []int{500}, 3, false},
		{"forbidden", []int{403}, 1, false},
		{"moved", []int{302}, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/hook" { // where a redirect leads: it would look well
					return
				}
				n := int(tries.Add(1))
				w.Header().Set("Location", "/login")
				w.WriteHeader(tt.answers[min(n, len(tt.answers))-1])
			}))
			defer server.Close()
			err := quick().send(t.Context(), tuner.Notify{URL: server.URL + "/hook"}, told)
			if (err == nil) != tt.ok || int(tries.Load()) != tt.want {
				t.Errorf("%d tries, error %v", tries.Load(), err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "tries")
	script := `echo x >> "$1"; test $(wc -l < "$1") -ge 2`
	if err := quick().send(t.Context(), tuner.Notify{Run: []string{"sh", "-c", script, "sh", file}}, told); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "x\nx\n" {
		t.Errorf("the program was run %q", text)
	}
}

// Whatever is on the other side takes bounded time, and leaves nothing running.
func TestNotifyIsBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer silent.Close()
	defer close(release)
	child := filepath.Join(t.TempDir(), "child")
	for _, tt := range []struct {
		name string
		to   tuner.Notify
		want string
	}{
		{"silent server", tuner.Notify{URL: silent.URL}, "no answer in time"},
		{"program that hangs", tuner.Notify{Run: []string{"sh", "-c", `(sleep 2; touch "$1") & wait`, "sh", child}}, "it took too long and was ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := quick()
			n.try, n.limit = 100*time.Millisecond, 250*time.Millisecond
			begun := time.Now()
			err := n.send(t.Context(), tt.to, told)
			if err == nil || !strings.Contains(err.Error(), tt.want) || time.Since(begun) > 3*time.Second {
				t.Errorf("error %v after %s", err, time.Since(begun))
			}
		})
	}
	time.Sleep(2200 * time.Millisecond)
	if _, err := os.Stat(child); err == nil {
		t.Error("what the program had started went on")
	}
}

// An error names the receiver, and neither a hook's address, which is its secret, nor any other.
func TestNotifyFails(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "no such\nchannel")
	}))
	t.Cleanup(refusing.Close) // after the parallel ones
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		name string
		to   tuner.Notify
		want string
	}{
		{"program fails", tuner.Notify{Run: []string{"sh", "-c", "echo no mail to correct-horse-battery; exit 4"}}, "notify sh: exit status 4: no mail to *** (tried 3 times)"},
		{"no program", tuner.Notify{Run: []string{"/nowhere/notify.sh"}}, "/nowhere/notify.sh: no such file or directory (tried once)"},
		{"refused", tuner.Notify{URL: refusing.URL + "/services/T0/B0/hidden"}, "notify " + refusing.URL + ": the server answered 403 Forbidden: no such channel (tried once)"},
		{"nobody there", tuner.Notify{URL: gone.URL + "/services/T0/B0/hidden"}, "connection refused (tried 3 times)"},
		{"no address", tuner.Notify{URL: "http://bad host/hidden"}, "the address is not understood"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := quick().send(t.Context(), tt.to, told)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestUncleanIsTold: a host that cannot be cleaned before --fresh is told like any other dirty one.
func TestUncleanIsTold(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	n := &night{study: &tuner.Study{Name: "night", Finish: tuner.Finish{Notify: []tuner.Notify{{Run: []string{"sh", "-c", `echo "$SGTUNE_KIND: $SGTUNE_TEXT" >"$0"`, told}}}}}}
	if err := n.tellUnclean(t.Context(), errors.New("the link is down")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(told); err == nil {
		t.Error("told of a host that is not known to be dirty")
	}
	if err := n.tellUnclean(t.Context(), fmt.Errorf("pid 99 lives: %w", trial.ErrDirtyHost)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(told); err != nil || !strings.HasPrefix(string(text), "dirty_host: study night was not begun anew: pid 99 lives") {
		t.Errorf("%q, %v", text, err)
	}
}
