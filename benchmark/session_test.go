package benchmark_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
)

// sessionRows are two sessions, mixed, and a row of its own: a 20+5+6 tokens, b 10+4.
func sessionRows() *benchmark.Workload {
	return benchmark.NewWorkload([]benchmark.Row{
		{Number: 0, InputTokens: 20, OutputTokens: 3, Session: `"a"`},
		{Number: 1, InputTokens: 10, OutputTokens: 2, Session: `"b"`},
		{Number: 2, InputTokens: 5, OutputTokens: 4, Session: `"a"`, Follows: true, Pause: 2 * time.Second},
		{Number: 3, InputTokens: 7, OutputTokens: 1},
		{Number: 4, InputTokens: 4, OutputTokens: 1, Session: `"b"`, Follows: true},
		{Number: 5, InputTokens: 6, OutputTokens: 5, Session: `"a"`, Follows: true, Pause: time.Second},
	}, 0)
}

// wordedPalette is a palette of ids whose words are known.
func wordedPalette() benchmark.Palette {
	p := benchmark.WordPalette("")
	p.Approximate, p.Note = false, ""
	for i := range p.Words {
		p.IDs = append(p.IDs, 10_000+i)
	}
	return p
}

func TestSessionOfLengthsGoesOnFromTheAnswersIds(t *testing.T) {
	t.Parallel()
	feed := benchmark.NewFeed(sessionRows(), 0, 6, "s", testPalette())
	var starts []int
	for range 6 {
		starts = append(starts, feed.Next().Row.Number)
	}
	if diff := cmp.Diff([]int{0, 1, 3, 0, 1, 3}, starts); diff != "" {
		t.Errorf("Next hands out (-want +got):\n%s", diff)
	}
	p := benchmark.NewFeed(sessionRows(), 0, 6, "s", testPalette()).Next()
	history := slices.Clone(p.IDs)
	for i, want := range []struct {
		row, fresh, output int
		pause              time.Duration
	}{{2, 5, 4, 2 * time.Second}, {5, 6, 5, time.Second}} {
		said := []int{70 + i, 80, 90}
		next, pause, ok := p.Follow(benchmark.Answer{Text: "ignored", IDs: said})
		if !ok || pause != want.pause || next.Row.Number != want.row || next.Turn != i+1 || next.OutputTokens != want.output {
			t.Fatalf("turn %d: %v %v %+v", i+1, ok, pause, next)
		}
		history = append(history, said...)
		if !slices.Equal(next.IDs[:len(history)], history) || len(next.IDs) != len(history)+want.fresh || next.InputTokens != len(next.IDs) {
			t.Errorf("turn %d: %d ids, %d wanted, want %d, beginning with the history", i+1, len(next.IDs), next.InputTokens, len(history)+want.fresh)
		}
		history, p = slices.Clone(next.IDs), next
	}
	if p.Follow != nil {
		t.Error("the last turn has a Follow")
	}
}

func TestSessionOfLengthsAsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		endpoint string
		palette  benchmark.Palette
	}{
		{"completions", benchmark.EndpointCompletions, wordedPalette()},
		{"words", benchmark.EndpointGenerate, benchmark.WordPalette("test")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			feed := benchmark.NewFeedWith(sessionRows(), benchmark.FeedOptions{Endpoint: c.endpoint, Palette: c.palette})
			p := feed.Next()
			if p.IDs != nil || len(strings.Fields(p.Text)) != 20 || p.InputTokens != 20 {
				t.Fatalf("first turn: %+v", p)
			}
			next, _, ok := p.Follow(benchmark.Answer{Text: " blue and red"})
			fresh, found := strings.CutPrefix(next.Text, p.Text+" blue and red")
			if !ok || !found || len(strings.Fields(fresh)) != 5 || next.InputTokens != 20+3+5 {
				t.Errorf("second turn: %v %d tokens %q", ok, next.InputTokens, next.Text)
			}
		})
	}
}

// A single request may still be ids where a session may not.
func TestCompletionsTakeIdsWithoutASession(t *testing.T) {
	t.Parallel()
	feed := benchmark.NewFeedWith(sessionRows(), benchmark.FeedOptions{From: 3, To: 4, Endpoint: benchmark.EndpointCompletions, Palette: wordedPalette()})
	if p := feed.Next(); len(p.IDs) != 7 || p.Text != "" {
		t.Errorf("%+v", p)
	}
}

func TestSessionOfIdsWhoseAnswersAreText(t *testing.T) {
	t.Parallel()
	p := benchmark.NewFeed(sessionRows(), 0, 6, "", wordedPalette()).Next()
	next, _, ok := p.Follow(benchmark.Answer{Text: " blue"})
	if !ok || next.IDs != nil {
		t.Fatalf("%v %+v", ok, next)
	}
	words := strings.Fields(next.Text)
	if len(words) != 20+1+5 || words[20] != "blue" {
		t.Errorf("second turn: %q", next.Text)
	}
	for i, id := range p.IDs {
		if words[i] != wordedPalette().Words[id-10_000] {
			t.Fatalf("word %d is %q, not that of id %d", i, words[i], id)
		}
	}
	if _, _, ok := benchmark.NewFeed(sessionRows(), 0, 6, "", testPalette()).Next().Follow(benchmark.Answer{Text: " blue"}); ok {
		t.Error("a session went on with ids nobody can spell")
	}
}

func TestSessionOfLengthsAsChat(t *testing.T) {
	t.Parallel()
	p := benchmark.NewFeedWith(sessionRows(), benchmark.FeedOptions{Endpoint: benchmark.EndpointChat, Palette: wordedPalette()}).Next()
	if p.IDs != nil || p.Text != "" || len(p.Messages) != 1 || len(strings.Fields(content(t, p.Messages[0]))) != 1+20 {
		t.Fatalf("first turn: %s", p.Messages)
	}
	next, _, ok := p.Follow(benchmark.Answer{Text: `blue "and" red`})
	if !ok || len(next.Messages) != 3 || string(next.Messages[0]) != string(p.Messages[0]) {
		t.Fatalf("second turn: %v %s", ok, next.Messages)
	}
	if string(next.Messages[1]) != `{"role":"assistant","content":"blue \"and\" red"}` || len(strings.Fields(content(t, next.Messages[2]))) != 1+5 {
		t.Errorf("second turn: %s", next.Messages)
	}
}

func content(t *testing.T, message json.RawMessage) string {
	t.Helper()
	var m struct{ Role, Content string }
	if err := json.Unmarshal(message, &m); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	return m.Content
}

// A part of a file that begins in the middle of a session starts it there, and ends where the part ends.
func TestSessionAcrossTheBordersOfARange(t *testing.T) {
	t.Parallel()
	feed := benchmark.NewFeed(sessionRows(), 2, 5, "", testPalette())
	var got []int
	for range 4 {
		p := feed.Next()
		got = append(got, p.Row.Number)
		if p.Follow != nil {
			t.Errorf("row %d leads out of the range", p.Row.Number)
		}
	}
	if diff := cmp.Diff([]int{2, 3, 4, 2}, got); diff != "" || feed.Passes() != 2 {
		t.Errorf("%d passes (-want +got):\n%s", feed.Passes(), diff)
	}
}

func raw(texts ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, t := range texts {
		out = append(out, json.RawMessage(t))
	}
	return out
}

const (
	brief  = `{"role":"system","content":"Be brief."}`
	colour = `{"role":"user","content":"Name a colour."}`
	fruit  = `{"role":"user","content":"And a fruit?"}`
)

func conversation() *benchmark.Workload {
	return benchmark.NewWorkload([]benchmark.Row{{OutputTokens: 9, Turns: []benchmark.Turn{
		{Messages: raw(brief, colour), OutputTokens: 4},
		{Messages: raw(fruit), OutputTokens: 5, Open: true},
	}}}, 0)
}

func TestConversationFeedsTheServersAnswersBack(t *testing.T) {
	t.Parallel()
	p := benchmark.NewFeed(conversation(), 0, 1, "", testPalette()).Next()
	if diff := cmp.Diff(raw(brief, colour), p.Messages); diff != "" || p.OutputTokens != 4 || p.Open || p.InputTokens != 0 {
		t.Errorf("first turn: %+v (-want +got):\n%s", p, diff)
	}
	next, pause, ok := p.Follow(benchmark.Answer{Text: "Blue."})
	want := raw(brief, colour, `{"role":"assistant","content":"Blue."}`, fruit)
	if diff := cmp.Diff(want, next.Messages); diff != "" || !ok || pause != 0 || next.OutputTokens != 5 || next.Open || next.Turn != 1 || next.Follow != nil {
		t.Errorf("second turn: %+v (-want +got):\n%s", next, diff)
	}
	before, after := benchmark.RenderText(p.Messages), benchmark.RenderText(next.Messages)
	if before != "system: Be brief.\nuser: Name a colour.\nassistant:" || after != before+"Blue.\nuser: And a fruit?\nassistant:" {
		t.Errorf("as text:\n%s\n\n%s", before, after)
	}
}

func TestConversationOfALaterPassSharesNothing(t *testing.T) {
	t.Parallel()
	feed := benchmark.NewFeed(conversation(), 0, 1, "", testPalette())
	first, second, third := feed.Next(), feed.Next(), feed.Next()
	a, b := content(t, second.Messages[0]), content(t, third.Messages[0])
	if !strings.HasSuffix(a, "\nBe brief.") || len(strings.Fields(a)) != 8+2 || strings.Fields(a)[0] == strings.Fields(b)[0] {
		t.Errorf("second pass %q, third %q", a, b)
	}
	if content(t, first.Messages[0]) != "Be brief." || string(second.Messages[1]) != colour {
		t.Errorf("first pass %s, second %s", first.Messages, second.Messages)
	}
	next, _, _ := second.Follow(benchmark.Answer{Text: "Blue."})
	if content(t, next.Messages[0]) != a {
		t.Errorf("the second turn does not begin like the first: %s", next.Messages[0])
	}
}

// Rows of different kinds may follow each other in one session (AIPerf's additions to Mooncake).
func TestSessionOfMixedRows(t *testing.T) {
	t.Parallel()
	lengths := benchmark.Row{InputTokens: 3, OutputTokens: 1, Session: "1"}
	text := benchmark.Row{Text: "Say hello.", OutputTokens: 1, Session: "1"}
	chat := benchmark.Row{Turns: []benchmark.Turn{{Messages: raw(colour), OutputTokens: 1}}, Session: "1"}
	answer := benchmark.Answer{Text: " yes", IDs: []int{1}}
	for _, c := range []struct {
		name          string
		first, second benchmark.Row
		endpoint      string
		want          func(p, next benchmark.Prompt) bool
	}{
		{"text after ids", lengths, text, "", func(_, next benchmark.Prompt) bool {
			return strings.HasSuffix(next.Text, " yes\nSay hello.") && next.IDs == nil && next.InputTokens == 0
		}},
		{"ids after text", text, lengths, "", func(_, next benchmark.Prompt) bool {
			return strings.HasPrefix(next.Text, "Say hello. yes ") && len(strings.Fields(next.Text)) == 6
		}},
		{"messages after ids", lengths, chat, "", func(_, next benchmark.Prompt) bool {
			return len(next.Messages) == 3 && string(next.Messages[2]) == colour && next.Text == "" && next.IDs == nil
		}},
		{"lengths after messages", chat, lengths, "", func(p, next benchmark.Prompt) bool {
			return len(next.Messages) == 3 && string(next.Messages[0]) == string(p.Messages[0])
		}},
		{"text to a chat endpoint", text, text, benchmark.EndpointChat, func(p, next benchmark.Prompt) bool {
			return string(p.Messages[0]) == `{"role":"user","content":"Say hello."}` && len(next.Messages) == 3 && p.Text == ""
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.second.Follows, c.second.Number = true, 1
			w := benchmark.NewWorkload([]benchmark.Row{c.first, c.second}, 0)
			p := benchmark.NewFeedWith(w, benchmark.FeedOptions{Endpoint: c.endpoint, Palette: wordedPalette()}).Next()
			next, _, ok := p.Follow(answer)
			if !ok || !c.want(p, next) {
				t.Errorf("%v: %+v, then %+v", ok, p, next)
			}
		})
	}
}

func TestFeedAsksForOtherAnswers(t *testing.T) {
	t.Parallel()
	p := benchmark.NewFeedWith(conversation(), benchmark.FeedOptions{OutputTokens: 77, Palette: testPalette()}).Next()
	next, _, _ := p.Follow(benchmark.Answer{Text: "x"})
	if p.OutputTokens != 77 || next.OutputTokens != 77 || p.Open || next.Open {
		t.Errorf("forced length: %+v, %+v", p, next)
	}
	p = benchmark.NewFeedWith(sessionRows(), benchmark.FeedOptions{Open: true, Palette: testPalette()}).Next()
	if p.OutputTokens != 3 || !p.Open {
		t.Errorf("open: %+v", p)
	}
}

func TestFeedOfNoRows(t *testing.T) {
	t.Parallel()
	feed := benchmark.NewFeed(benchmark.NewWorkload(nil, 0), 0, 0, "", testPalette())
	if p := feed.Next(); p.Row.Err == nil || p.Follow != nil || feed.Passes() != 0 {
		t.Errorf("%+v, %d passes", p, feed.Passes())
	}
}

func TestSessionsAreSafeForManyClients(t *testing.T) {
	t.Parallel()
	feed := benchmark.NewFeed(sessionRows(), 0, 6, "", testPalette())
	var mu sync.Mutex
	count := map[string]int{}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 30 {
				p, more := feed.Next(), true
				for more {
					mu.Lock()
					count[fmt.Sprint(p.Pass, p.Row.Number)]++
					mu.Unlock()
					if more = p.Follow != nil; more {
						p, _, more = p.Follow(benchmark.Answer{IDs: []int{1, 2, 3}})
					}
				}
			}
		})
	}
	clients.Wait()
	if len(count) != 8*30*6/3 {
		t.Errorf("%d different requests of %d", len(count), 8*30*6/3)
	}
}
