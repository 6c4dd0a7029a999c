package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/tuner/physics"
)

// say sends lines to a fresh sgtune suggest and returns its replies.
func say(t *testing.T, lines ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := serveSuggest(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// smallInit is a search of twelve configurations.
const smallInit = `{"op":"init","space":[{"name":"mem_fraction_static","type":"float","low":0.8,"high":0.815,"step":0.005},` +
	`{"name":"chunked_prefill_size","type":"cat_ord","choices":[8192,2048,4096]}],` +
	`"facts":{"tp":8,"gpu_gb":95.6,"defaults":{"mem_fraction_static":0.8101,"chunked_prefill_size":8192}},"budget":30,"seed":7}`

// TestSuggestExchange is what a caller sees, request by request.
func TestSuggestExchange(t *testing.T) {
	t.Parallel()
	const refused = `^{"error":"`
	for _, tt := range []struct {
		name  string
		lines []string // requests, each followed by a pattern of its reply; "" = no reply
	}{
		{"the usual order", []string{
			smallInit, `^{"ok":true}$`,
			`{"op":"suggest"}`, `^{"config":{"mem_fraction_static":0\.81,"chunked_prefill_size":8192},"measure_frac":[0-9.]+,("abort_below":[0-9.]+,"abort_frac":[0-9.]+,)?"why":{"kind":"\w+".*}}$`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.81,"chunked_prefill_size":8192},"trial":0,"status":"ok","value":700,"frac":1,"cost_min":12,"log":{}}}`, `^{"ok":true}$`,
			`{"op":"recommend"}`, `^{"config":{"mem_fraction_static":0\.81,"chunked_prefill_size":8192}}$`,
			`{"op":"exit"}`, `^{"ok":true}$`,
			`{"op":"suggest"}`, "",
		}},
		{"other lines are no requests", []string{"", "", "# a comment", "", "[1]", "", ` {"op":"suggest"}`, "", "\ufeff{}", ""}},
		{"carriage returns", []string{smallInit + "\r", `^{"ok":true}$`, "\r", ""}},
		{"nothing to recommend", []string{smallInit, "", `{"op":"recommend"}`, `^{"config":(null|{.*})}$`}},
		{"no search yet", []string{
			`{"op":"suggest"}`, refused + `suggest needs a search; send .*init`,
			`{"op":"observe","obs":{}}`, refused + `observe needs a search`,
			`{"op":"recommend"}`, refused + `recommend needs a search`,
			smallInit, `^{"ok":true}$`,
			`{"op":"suggest"}`, `^{"config"`,
		}},
		{"a wrong init leaves no search", []string{
			smallInit, `^{"ok":true}$`,
			`{"op":"init","space":[]}`, refused + `space has no knob`,
			`{"op":"suggest"}`, refused + `suggest needs`,
			smallInit, `^{"ok":true}$`,
			`{"op":"init","space":7}`, refused + `space is a JSON number; give a list`,
			`{"op":"suggest"}`, refused + `suggest needs`,
		}},
		{"no JSON", []string{
			`{"op":"suggest"`, refused + `no JSON at byte \d+: .*; send one object a line`,
			`{"op":"suggest"} {}`, refused + `no JSON`,
			`{"op":"observe","obs":{"value":NaN}}`, refused + `no JSON`,
			`{"op":"` + "\xff" + `"}`, refused + `the line is not UTF-8`,
			`{"op":7}`, refused + `op is a JSON number; give a string`,
			`{}`, refused + `the request has no \\"op\\"`,
			`{"op":"sugest"}`, refused + `op \\"sugest\\" is not known; use init, suggest`,
			`{"op":""}`, refused + `op \\"\\" is not known`,
			`{"op":"exit"}`, `^{"ok":true}$`,
		}},
		{"wrong spaces", []string{
			`{"op":"init"}`, refused + `space has no knob`,
			`{"op":"init","space":[{"type":"int","low":1,"high":2}]}`, refused + `space\[0\] has no name`,
			`{"op":"init","space":[{"name":"a"}]}`, refused + `space\[0\] \\"a\\": type is missing`,
			`{"op":"init","space":[{"name":"a","type":"enum"}]}`, refused + `.*type \\"enum\\" is not known; use float`,
			`{"op":"init","space":[{"name":"a","type":"int","high":2}]}`, refused + `.*low is missing`,
			`{"op":"init","space":[{"name":"a","type":"int","low":"1","high":2}]}`, refused + `.*low is \\"1\\"; give a number`,
			`{"op":"init","space":[{"name":"a","type":"int","low":3,"high":2}]}`, refused + `.*low 3 is above high 2`,
			`{"op":"init","space":[{"name":"a","type":"int","low":0.5,"high":2}]}`, refused + `.*whole numbers`,
			`{"op":"init","space":[{"name":"a","type":"int","low":0,"high":8,"log":true}]}`, refused + `.*a log range begins above 0`,
			`{"op":"init","space":[{"name":"a","type":"float","low":0,"high":8,"step":0}]}`, refused + `.*step is 0; it must be above 0`,
			`{"op":"init","space":[{"name":"a","type":"float","low":0,"high":8,"step":1e-300}]}`, refused + `.*step is 1e-300; give a number`,
			`{"op":"init","space":[{"name":"a","type":"float","low":0,"high":1e15,"step":1e-15}]}`, refused + `.*too fine`,
			`{"op":"init","space":[{"name":"a","type":"float","low":0,"high":1e400,"step":1}]}`, refused + `.*high is 1e400`,
			`{"op":"init","space":[{"name":"a","type":"cat"}]}`, refused + `.*0 choices; give 1 to 1000`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1,1.0]}]}`, refused + `.*choice 1\.0 stands there twice`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[[1]]}]}`, refused + `.*is a list or object`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]},{"name":"a","type":"cat","choices":[1]}]}`, refused + `.*space\[1\] \\"a\\" is there twice`,
			`{"op":"init","space":[{"name":"page_size","type":"cat","choices":[1]},{"name":"kv_cache_dtype","type":"cat","choices":["fp8_e4m3"]}]}`, refused + `.*no value is left`,
			`{"op":"init","space":[{"name":"hicache_size","type":"cat_ord","choices":["big","small"]}],"facts":{"host_budget_gb":1}}`, refused + `.*no value is left`,
			`{"op":"init","space":[{"name":"hicache_size","type":"int","low":20,"high":40}],"facts":{"tp":8,"host_budget_gb":100}}`, refused + `.*hicache_size 20 x tp 8 is above host_budget_gb 100`,
		}},
		{"wrong facts", []string{
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"facts":{"tp":-1}}`, refused + `facts.tp is -1`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"facts":{"tp":1.5}}`, refused + `facts.tp is 1.5`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"facts":{"workload_hint":{"clients":"many"}}}`, refused + `facts.workload_hint.clients is a JSON string; give a number`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"facts":[]}`, refused + `facts is a JSON array; give an object`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"facts":{"fp8_opt_in":1}}`, refused + `facts.fp8_opt_in is a JSON number; give true or false`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"budget":-3}`, refused + `budget is -3`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"budget":2.5}`, refused + `budget is 2.5`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"facts":null,"budget":null,"seed":null}`, `^{"ok":true}$`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"seed":"any text"}`, `^{"ok":true}$`,
			`{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}],"seed":-18446744073709551617}`, `^{"ok":true}$`,
		}},
		{"wrong observations change nothing", []string{
			smallInit, `^{"ok":true}$`,
			`{"op":"observe"}`, refused + `observe needs \\"obs\\"`,
			`{"op":"observe","obs":{"status":"ok","value":1}}`, refused + `obs.config has no knob of the space`,
			`{"op":"observe","obs":{"config":{"page_size":1},"status":"ok","value":1}}`, refused + `obs.config has no knob of the space`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":"much"},"status":"ok","value":1}}`, refused + `obs.config: \\"mem_fraction_static\\" is \\"much\\"; give a number`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":[0.8]},"status":"ok","value":1}}`, refused + `.*is a list or object`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.8},"status":"fine","value":1}}`, refused + `obs.status is \\"fine\\"; use ok, aborted`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.8},"status":"ok"}}`, refused + `obs of status ok has no value`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.8},"status":"ok","value":1,"frac":1.5}}`, refused + `obs.frac is 1.5`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.8},"status":"ok","value":1e30}}`, refused + `obs.value is 1e\+30`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.8},"status":"ok","value":1e13}}`, refused + `obs.value is 1e\+13; .*give a figure of 0 to 1e\+12`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.8},"status":"aborted","value":-5}}`, refused + `obs.value is -5; higher is better`,
			`{"op":"observe","obs":{"config":{"mem_fraction_static":0.8},"status":"ok","value":1,"log":{"kv_gb":"9"}}}`, refused + `obs.log.kv_gb is a JSON string`,
			`{"op":"suggest"}`, `^{"config":{"mem_fraction_static":0\.81,`,
		}},
		{"what a rule keeps out is not learnt", []string{
			`{"op":"init","space":[{"name":"hicache_size","type":"int","low":0,"high":300},{"name":"kv_cache_dtype","type":"cat","choices":["fp8_e4m3","bf16"]}],"facts":{"tp":8,"host_budget_gb":400}}`, `^{"ok":true}$`,
			`{"op":"observe","obs":{"config":{"hicache_size":300},"status":"host_oom"}}`, `^{"ok":true,"ignored":"hicache_size 300 x tp 8 is above host_budget_gb 400"}$`,
			`{"op":"observe","obs":{"config":{"hicache_size":null},"status":"started"}}`, `^{"ok":true,"ignored":"hicache_size null is no number of GB a rank`,
			`{"op":"observe","obs":{"config":{"kv_cache_dtype":"fp8_e4m3"},"status":"ok","value":2000}}`, `^{"ok":true,"ignored":"kv_cache_dtype fp8_e4m3 is below 16 bits`,
			`{"op":"observe","obs":{"config":{"kv_cache_dtype":"bf16","hicache_size":50},"status":"ok","value":2000}}`, `^{"ok":true}$`,
			`{"op":"recommend"}`, `^{"config":{"hicache_size":(0|50),"kv_cache_dtype":"bf16"}}$`,
		}},
		{"control characters stay out of errors", []string{`{"op":"\u001b[2J\nx"}`, refused + `op \\"\\\\x1b\[2J\\\\nx\\" is not known`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var requests, patterns []string
			for i := 0; i < len(tt.lines); i += 2 {
				requests = append(requests, tt.lines[i])
				if strings.HasPrefix(tt.lines[i], "{") && (i < 2 || !strings.Contains(tt.lines[i-2], `"exit"`)) {
					patterns = append(patterns, tt.lines[i+1])
				}
			}
			replies := say(t, requests...)
			if len(patterns) == 0 {
				patterns = []string{"^$"}
			}
			if len(replies) != len(patterns) {
				t.Fatalf("%d replies, want %d:\n%s", len(replies), len(patterns), strings.Join(replies, "\n"))
			}
			for i, reply := range replies {
				if !regexp.MustCompile(patterns[i]).MatchString(reply) {
					t.Errorf("reply %d is %s, want %s", i, reply, patterns[i])
				}
				if len(reply) > 0 && !json.Valid([]byte(reply)) || strings.HasPrefix(reply, refused[1:]) && len(reply) > 900 {
					t.Errorf("reply %d is no short JSON: %s", i, reply)
				}
			}
		})
	}
}

// TestSuggestEndsByItself tries every configuration of a small space once, then stops.
func TestSuggestEndsByItself(t *testing.T) {
	t.Parallel()
	var s suggestSession
	ask(t, &s, `{"op":"init","space":[{"name":"a","type":"cat","choices":["x","y"]},{"name":"b","type":"cat","choices":[false,true]}],"budget":30,"seed":1}`)
	seen := map[string]bool{}
	for range 4 {
		reply := ask(t, &s, `{"op":"suggest"}`)
		config, _ := json.Marshal(reply["config"])
		if seen[string(config)] {
			t.Fatalf("%s is suggested twice", config)
		}
		seen[string(config)] = true
		ask(t, &s, fmt.Sprintf(`{"op":"observe","obs":{"config":%s,"status":"ok","value":100}}`, config))
	}
	if reply := ask(t, &s, `{"op":"suggest"}`); reply["stop"] != true {
		t.Errorf("after all four configurations: %v", reply)
	}
}

// TestSuggestNothingServed tells of a trial that ran and served nothing of worth: the search goes on
// from it as from one that meets no SLO in tune, and neither recommends it nor calls it a failure.
func TestSuggestNothingServed(t *testing.T) {
	t.Parallel()
	var s suggestSession
	ask(t, &s, smallInit)
	ask(t, &s, `{"op":"observe","obs":{"config":{"mem_fraction_static":0.81,"chunked_prefill_size":8192},"status":"ok","value":0}}`)
	if reply := ask(t, &s, `{"op":"recommend"}`); reply["config"] != nil {
		t.Errorf("nothing has a value, yet %v", reply)
	}
	obs := suggestedObservation{Status: "ok", Value: new(float64)}
	if o, err := obs.physics(nil); err != nil || o.Status != physics.Worthless {
		t.Errorf("status %v (%v), want Worthless", o.Status, err)
	}
}

// TestSuggestPending asks for trials before the results are in: they differ.
func TestSuggestPending(t *testing.T) {
	t.Parallel()
	var s suggestSession
	ask(t, &s, smallInit)
	seen := map[string]bool{}
	for range 3 {
		config, _ := json.Marshal(ask(t, &s, `{"op":"suggest"}`)["config"])
		seen[string(config)] = true
	}
	if len(seen) != 3 || len(s.problem.pending) != 3 {
		t.Fatalf("pending %d, suggested %v", len(s.problem.pending), seen)
	}
	second := s.problem.pending[1].Point
	config, err := json.Marshal(s.problem.knobs.config(second))
	if err != nil {
		t.Fatal(err)
	}
	ask(t, &s, fmt.Sprintf(`{"op":"observe","obs":{"config":%s,"status":"start_crash"}}`, config))
	for _, p := range s.problem.pending {
		if p.Point.Equal(second) {
			t.Error("an observed trial is still pending")
		}
	}
	ask(t, &s, `{"op":"observe","obs":{"config":{"chunked_prefill_size":2048,"mem_fraction_static":0.8},"status":"start_crash"}}`)
	if len(s.problem.pending) != 1 {
		t.Errorf("%d pending after two results of three", len(s.problem.pending))
	}
}

// ask sends one request that must not be refused.
func ask(t testing.TB, s *suggestSession, line string) map[string]any {
	t.Helper()
	reply, _ := s.answer([]byte(line))
	var v map[string]any
	if err := json.Unmarshal(reply, &v); err != nil || v["error"] != nil {
		t.Fatalf("%s\nreply %s (%v)", line, reply, err)
	}
	return v
}

func TestSuggestLongLines(t *testing.T) {
	t.Parallel()
	var choices []string
	for i := range 10 {
		choices = append(choices, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 110_000)))
	}
	long := `{"op":"init","space":[{"name":"a","type":"cat","choices":[` + strings.Join(choices, ",") + `]}]}`
	if len(long) < 1<<20 {
		t.Fatalf("%d bytes", len(long))
	}
	got := say(t, strings.Repeat("#", 1<<20), long, `{"op":"suggest"}`, `{"op":"exit"}`)
	if len(got) != 3 || got[0] != `{"ok":true}` || !strings.HasPrefix(got[1], `{"config":{"a":"0xxx`) || len(got[1]) < 110_000 || got[2] != `{"ok":true}` {
		t.Errorf("%d replies, first %.100s", len(got), got[0])
	}
}

var braces = bytes.Repeat([]byte("{"), 64<<10)

// endless is a line without an end, up to n bytes.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), e.n)], braces)
	e.n -= n
	return n, nil
}

func TestSuggestLineTooLong(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads 64 MiB")
	}
	var out bytes.Buffer
	in := io.MultiReader(&endless{maxSuggestLine + 10}, strings.NewReader("\n"+smallInit+"\n"))
	if err := serveSuggest(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	if want := "{\"error\":\"the line is longer than 64 MiB; send one request a line\"}\n{\"ok\":true}\n"; out.String() != want {
		t.Errorf("got %.300s", out.String())
	}
}

// TestSuggestLeavesNothing counts goroutines after sessions that ended each way.
func TestSuggestLeavesNothing(t *testing.T) { //nolint:paralleltest // counts goroutines
	before := runtime.NumGoroutine()
	for range 20 {
		say(t, `{"op":"suggest"}`, `{"op":"exit"}`, `{"op":"suggest"}`)
		say(t, `{"op":"suggest"}`)
		in, feed := io.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, stop)
		var coded *exitError
		if err := serveSuggest(ctx, in, io.Discard); !errors.As(err, &coded) || coded.code != exitInterrupted {
			t.Fatalf("after Ctrl-C: %v", err)
		}
		_ = feed.Close() // the read that was waiting ends with the input
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	if err := serveSuggest(t.Context(), failing{}, io.Discard); err == nil || !strings.Contains(err.Error(), "read standard input") {
		t.Errorf("a broken input: %v", err)
	}
	if err := serveSuggest(t.Context(), strings.NewReader("{}\n"), failing{}); err == nil || !strings.Contains(err.Error(), "write a reply") {
		t.Errorf("a broken output: %v", err)
	}
}

// failing reads and writes nothing.
type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errors.New("broken") }
func (failing) Write([]byte) (int, error) { return 0, errors.New("broken") }

// TestSuggestInterrupted is Ctrl-C at a process that waits for a request.
func TestSuggestInterrupted(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sgtune", "suggest") // testscript.Main puts it into PATH
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.Write([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 100)); n == 0 || err != nil {
		t.Fatalf("no reply: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}

// TestSuggestDocs sends the requests of docs/suggest.md: none may be refused.
func TestSuggestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/suggest.md")
	if err != nil {
		t.Fatal(err)
	}
	var s suggestSession
	n := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, `{"op":`) {
			ask(t, &s, line)
			n++
		}
	}
	if n != 5 {
		t.Errorf("%d requests in the example, want 5", n)
	}
}
