package benchmark

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// streamOf is an answer with these events, each in a chunk of its own.
func streamOf(events ...string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, e := range events {
		e = "data: " + e + "\n\n"
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(e), e)
	}
	b.WriteString("0\r\n\r\n")
	return b.String()
}

// talked reads one answer of an endpoint as a client does.
func talked(endpoint, said string, follow bool) (answer, error) {
	s := &sender{clock: RealClock(), endpoint: endpoint, reader: newReader(endpoint), keepGaps: true}
	told := [2]int{}
	s.tokens = func(_ time.Time, output, prompt int) { told[0] += output; told[1] += prompt }
	s.conn = newConn(wire{from: strings.NewReader(said)}, RealClock())
	a := answer{Request: Request{Intended: time.Now()}}
	p := Prompt{}
	if follow {
		p.Follow = func(Answer) (Prompt, time.Duration, bool) { return Prompt{}, 0, false }
	}
	if err := s.conn.head(); err != nil {
		return a, err
	}
	err := s.events(p, &a)
	if err == nil && (told[0] != a.Output || told[1] != a.Prompt) {
		err = fmt.Errorf("booked %v, the answer has %d and %d", told, a.Output, a.Prompt)
	}
	a.gaps, a.said = s.gaps, Answer{Text: string(s.said.text), IDs: s.said.ids}
	return a, err
}

const (
	final3   = `{"text":" a b c","output_ids":[1,2,3],"meta_info":{"id":"x","finish_reason":{"type":"length","length":3},"prompt_tokens":7,"completion_tokens":3,"cached_tokens":4}}`
	usage3   = `{"id":"c","choices":[],"usage":{"prompt_tokens":7,"total_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}`
	cmplText = `{"id":"c","choices":[{"index":0,"text":"%s","finish_reason":null}],"usage":null}`
	chatText = `{"id":"c","choices":[{"index":0,"delta":{"role":null,"content":%s,"reasoning_content":%s},"finish_reason":null}]}`
)

func TestEventsOfEveryEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, endpoint string
		events         []string
		text           string
		ids            []int
		gaps           []uint32
	}{
		{
			"cumulative", EndpointGenerate,
			[]string{
				`{"text":" a","output_ids":[1],"meta_info":{"id":"x","finish_reason":null,"prompt_tokens":7,"completion_tokens":1,"cached_tokens":4}}`,
				`{"text":" a b","output_ids":[1,2],"meta_info":{"id":"x","finish_reason":null,"prompt_tokens":7,"completion_tokens":2,"cached_tokens":4}}`,
				final3, "[DONE]",
			},
			" a b c",
			[]int{1, 2, 3},
			[]uint32{1, 1},
		},
		{
			"only what is new", EndpointGenerate,
			[]string{
				`{"text":" a","output_ids":[1],"meta_info":{"finish_reason":null,"prompt_tokens":7,"completion_tokens":1,"cached_tokens":4}}`,
				`{"text":" b c","output_ids":[2,3],"meta_info":{"finish_reason":{"type":"length","length":3},"prompt_tokens":7,"completion_tokens":3,"cached_tokens":4}}`,
				"[DONE]",
			},
			" a b c",
			[]int{1, 2, 3},
			[]uint32{2},
		},
		{
			"whole texts beside new ids", EndpointGenerate,
			[]string{
				`{"text":" a","output_ids":[1],"meta_info":{"finish_reason":null,"prompt_tokens":7,"completion_tokens":1,"cached_tokens":4}}`,
				`{"text":" a b c","output_ids":[2,3],"meta_info":{"finish_reason":{"type":"length","length":3},"prompt_tokens":7,"completion_tokens":3,"cached_tokens":4}}`,
				"[DONE]",
			},
			" a b c",
			[]int{1, 2, 3},
			[]uint32{2},
		},
		{
			"text that looks like a count", EndpointGenerate,
			[]string{
				`{"text":"\"completion_tokens\":99","output_ids":[1],"meta_info":{"finish_reason":null,"prompt_tokens":7,"completion_tokens":1,"cached_tokens":4}}`,
				final3, "[DONE]",
			},
			" a b c",
			[]int{1, 2, 3},
			[]uint32{2},
		},
		{"two tokens first", EndpointGenerate, []string{
			`{"text":" a b","output_ids":[1,2],"meta_info":{"finish_reason":null,"prompt_tokens":7,"completion_tokens":2,"cached_tokens":4}}`, final3, "[DONE]",
		}, " a b c", []int{1, 2, 3}, []uint32{1, 1}},
		{"no [DONE]", EndpointGenerate, []string{final3}, " a b c", []int{1, 2, 3}, []uint32{2}},
		{
			"completions", EndpointCompletions,
			[]string{fmt.Sprintf(cmplText, " a"), fmt.Sprintf(cmplText, " b"), fmt.Sprintf(cmplText, " c"), usage3, "[DONE]"},
			" a b c", nil,
			[]uint32{1, 1},
		},
		{"completions, several tokens an event", EndpointCompletions, []string{fmt.Sprintf(cmplText, " a"), fmt.Sprintf(cmplText, " b c"), usage3, "[DONE]"}, " a b c", nil, []uint32{2}},
		{
			"completions with usage in every event", EndpointCompletions,
			[]string{
				strings.Replace(fmt.Sprintf(cmplText, " a"), `"usage":null`, `"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}`, 1),
				strings.Replace(fmt.Sprintf(cmplText, " b c"), `"usage":null`, `"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}`, 1),
				usage3, "[DONE]",
			},
			" a b c", nil,
			[]uint32{2},
		},
		{
			"chat", EndpointChat,
			[]string{
				fmt.Sprintf(chatText, `""`, "null"), fmt.Sprintf(chatText, "null", `" hm"`), fmt.Sprintf(chatText, `" b"`, "null"), fmt.Sprintf(chatText, `" c"`, "null"), usage3, "[DONE]",
			},
			" b c", nil,
			[]uint32{1, 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := talked(c.endpoint, streamOf(c.events...), true)
			if err != nil {
				t.Fatal(err)
			}
			if a.Output != 3 || a.Prompt != 7 || a.Cached != 4 || a.TTFT <= 0 || a.E2E < a.TTFT {
				t.Errorf("%+v", a.Request)
			}
			if a.said.Text != c.text {
				t.Errorf("said %q, want %q", a.said.Text, c.text)
			}
			if diff := cmp.Diff(c.ids, a.said.IDs); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			var tokens []uint32
			for _, g := range a.gaps {
				tokens = append(tokens, g.Tokens)
			}
			if diff := cmp.Diff(c.gaps, tokens); diff != "" {
				t.Errorf("tokens behind each gap (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsThatFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, endpoint, said, kind string
	}{
		{"cut", EndpointGenerate, strings.TrimSuffix(streamOf(final3), "0\r\n\r\n"), failedCut},
		{"ended before its end", EndpointGenerate, streamOf(strings.Replace(final3, `{"type":"length","length":3}`, "null", 1)), failedCut},
		{"an error", EndpointGenerate, streamOf(`{"error":{"message":"out of memory","code":500}}`, "[DONE]"), failedStream},
		{"an error of OpenAI's shape", EndpointChat, streamOf(`{"object":"error","message":"too long","code":400}`, "[DONE]"), failedStream},
		{"aborted", EndpointGenerate, streamOf(strings.Replace(final3, `"type":"length"`, `"type":"abort","message":"flushed"`, 1), "[DONE]"), failedStream},
		{"no counts", EndpointCompletions, streamOf(fmt.Sprintf(cmplText, " a"), "[DONE]"), failedStream},
		{"nothing", EndpointGenerate, streamOf("[DONE]"), failedStream},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := talked(c.endpoint, c.said, false)
			if err == nil || kindOf(err) != c.kind {
				t.Errorf("%v, want a %s", err, c.kind)
			}
		})
	}
}

func rawMessages(list ...string) (out []json.RawMessage) {
	for _, m := range list {
		out = append(out, json.RawMessage(m))
	}
	return out
}

func TestBodies(t *testing.T) {
	t.Parallel()
	row := Row{Extra: []byte(`{"tools":[1],"temperature":0.5,"stream":false}`)}
	for _, c := range []struct {
		name   string
		s      sender
		p      Prompt
		want   string
		refuse error
	}{
		{"ids", sender{endpoint: EndpointGenerate}, Prompt{IDs: []int{5, 6}, OutputTokens: 3}, `{"input_ids":[5,6],"sampling_params":{"max_new_tokens":3,"temperature":0,"ignore_eos":true},"stream":true}`, nil},
		{"text", sender{endpoint: EndpointGenerate}, Prompt{Text: "a \"b\"", OutputTokens: 3, Open: true}, `{"text":"a \"b\"","sampling_params":{"max_new_tokens":3,"temperature":0},"stream":true}`, nil},
		{
			"completions",
			sender{endpoint: EndpointCompletions, model: []byte(`"m"`)},
			Prompt{IDs: []int{5}, OutputTokens: 3},
			`{"prompt":[5],"model":"m","max_tokens":3,"temperature":0,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`, nil,
		},
		{
			"chat of the row's own",
			sender{endpoint: EndpointChat, model: []byte(`"m"`), continuous: true},
			Prompt{Row: row, Messages: rawMessages(`{"role":"user","content":"x"}`), OutputTokens: 3},
			`{"messages":[{"role":"user","content":"x"}],"model":"m","max_tokens":3,"ignore_eos":true,"temperature":0.5,"tools":[1],"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, nil,
		},
		{
			"chat of a text",
			sender{endpoint: EndpointChat, model: []byte(`"m"`)},
			Prompt{Text: "x", OutputTokens: 3},
			`{"messages":[{"role":"user","content":"x"}],"model":"m","max_tokens":3,"temperature":0,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`, nil,
		},
		{"chat of ids", sender{endpoint: EndpointChat}, Prompt{IDs: []int{5}}, "", errNoIDs},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.s.appendBody(nil, c.p)
			if err != c.refuse { //nolint:errorlint // the very value
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
