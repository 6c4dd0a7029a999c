package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sgtune/benchmark"
)

// TestChooseEndpoint takes what rows and server agree on; a server that says nothing is asked as OpenAI's are.
func TestChooseEndpoint(t *testing.T) {
	t.Parallel()
	lengths := benchmark.Row{InputTokens: 8, OutputTokens: 1}
	text := benchmark.Row{Text: "a", OutputTokens: 1}
	named := benchmark.Row{Text: "a", OutputTokens: 1, Path: "/v1/completions"}
	chat := benchmark.Row{OutputTokens: 1, Turns: []benchmark.Turn{{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"a"}`)}, OutputTokens: 1}}}
	sglang, openai, nobody := benchmark.Server{Kind: benchmark.KindSGLang}, benchmark.Server{Kind: benchmark.KindOpenAI}, benchmark.Server{Kind: benchmark.KindUnknown}
	for _, test := range []struct {
		name   string
		said   string
		server benchmark.Server
		rows   []benchmark.Row
		want   string
		noted  bool
	}{
		{"said", "chat", sglang, []benchmark.Row{lengths}, "chat", false},
		{"lengths", "auto", sglang, []benchmark.Row{lengths}, "generate", false},
		{"a text", "auto", sglang, []benchmark.Row{text}, "generate", false},
		{"what the file names", "auto", sglang, []benchmark.Row{named}, "completions", false},
		{"a later conversation", "auto", sglang, []benchmark.Row{lengths, chat}, "chat", false},
		{"ids only", "auto", benchmark.Server{Kind: benchmark.KindSGLang, IDsOnly: true}, []benchmark.Row{chat}, "generate", false},
		{"another server", "auto", openai, []benchmark.Row{lengths}, "completions", false},
		{"nobody knows, lengths", "auto", nobody, []benchmark.Row{lengths}, "completions", true},
		{"nobody knows, a conversation", "auto", nobody, []benchmark.Row{chat}, "chat", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := &replayRun{options: &replayOptions{endpoint: test.said}, detected: test.server, kinds: kindsOf(benchmark.NewWorkload(test.rows, 0))}
			r.chooseEndpoint()
			if noted := strings.Contains(strings.Join(r.detected.Notes, " "), "says nothing of itself"); r.endpoint != test.want || noted != test.noted {
				t.Errorf("endpoint %s, notes %q; want %s", r.endpoint, r.detected.Notes, test.want)
			}
		})
	}
}

// TestElsewhere: a file may name two endpoints, a run has one, and says so.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	k := kindsOf(benchmark.NewWorkload([]benchmark.Row{{Path: "/v1/chat/completions", Text: "a"}, {Path: "/v1/completions", Text: "b"}, {Text: "c"}}, 0))
	if got := k.elsewhere("/v1/chat/completions"); got != "the file names /v1/completions for some rows; every request goes to /v1/chat/completions" {
		t.Error(got)
	}
	if got := kindsOf(benchmark.NewWorkload([]benchmark.Row{{Text: "c"}}, 0)).elsewhere("/generate"); got != "" {
		t.Error(got)
	}
}

// TestLengthsNote: what the server's counts have shown takes the place of what nobody knew.
func TestLengthsNote(t *testing.T) {
	t.Parallel()
	r := &replayRun{palette: benchmark.WordPalette("no /tokenize"), calibration: &benchmark.Calibration{}}
	if note := r.lengthsNote(); !strings.Contains(note, "approximate") {
		t.Errorf("before anything was counted: %q", note)
	}
	feed := benchmark.NewFeedWith(benchmark.NewWorkload([]benchmark.Row{{InputTokens: 8, OutputTokens: 1}}, 0), benchmark.FeedOptions{
		Palette: r.palette, Endpoint: benchmark.EndpointCompletions, Calibration: r.calibration,
	})
	for range 3 {
		p := feed.Next()
		feed.(benchmark.Learner).Learn(p, benchmark.Request{Prompt: 8})
	}
	if note := r.lengthsNote(); !strings.Contains(note, "one token a word") || strings.Contains(note, "approximate") {
		t.Errorf("after three answers: %q", note)
	}
	if note := (&replayRun{calibration: &benchmark.Calibration{}}).lengthsNote(); note != "" {
		t.Errorf("of texts: %q", note)
	}
}

// TestServerOfAShortPart is held against ours only when it was measured for long enough, or is far away.
func TestServerOfAShortPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		seconds, rate float64
		percent, far  bool
	}{
		{"long", 60, 110, true, false},
		{"short", 5, 110, false, false},
		{"short and far away", 5, 150, false, true},
	} {
		view, report := &benchmark.ServerView{Seconds: test.seconds, OutputTokS: &test.rate}, &benchmark.Report{OutputTokS: 100}
		report.Server = view
		text := serverViewText(report)
		if strings.Contains(text, "%)") != test.percent || strings.HasPrefix(text, "about ") == test.percent || farApart(view, report) != test.far {
			t.Errorf("%s: %q, far away %v", test.name, text, farApart(view, report))
		}
	}
}

// TestStarts lets conversations come to their end before another pass of the file begins.
func TestStarts(t *testing.T) {
	t.Parallel()
	turn := benchmark.Turn{OutputTokens: 1}
	talks := []benchmark.Row{{Number: 0, OutputTokens: 3, Turns: []benchmark.Turn{turn, turn, turn}}, {Number: 1, OutputTokens: 1, Turns: []benchmark.Turn{turn}}}
	session := []benchmark.Row{{Number: 0, InputTokens: 8, OutputTokens: 1, Session: `"a"`}, {Number: 1, InputTokens: 8, OutputTokens: 1, Session: `"a"`, Follows: true}}
	for _, test := range []struct {
		name     string
		rows     []benchmark.Row
		requests int
		want     int
	}{
		{"one pass", talks, 4, 2},
		{"half a pass", talks, 2, 2},
		{"more than one", talks, 5, 4},
		{"a session of rows", session, 2, 1},
		{"nobody waits for another", []benchmark.Row{{InputTokens: 8, OutputTokens: 1}}, 100, 0},
		{"by time", talks, 0, 0},
	} {
		w := benchmark.NewWorkload(test.rows, 0)
		r := &replayRun{workload: w, summary: w.Summary(), end: levelEnd{requests: test.requests}}
		if got := r.starts(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
