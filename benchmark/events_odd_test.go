package benchmark

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	usageLast  = `{"id":"c","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`
	usageSoFar = `{"id":"c","choices":[{"index":0,"text":" a","finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":%d,"total_tokens":9}}`
)

// TestOddEvents: answers that servers really give, other than the documented way.
func TestOddEvents(t *testing.T) {
	t.Parallel()
	spaced := func(events ...string) (out []string) {
		for _, e := range events {
			out = append(out, strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(e))
		}
		return out
	}
	word := func(text string) string { return fmt.Sprintf(chatText, `"`+text+`"`, "null") }
	for _, c := range []struct {
		name, endpoint string
		events         []string
		output         int
		gaps           []uint32
		kind           string
	}{
		{"spaces", EndpointCompletions, spaced(fmt.Sprintf(cmplText, " a"), fmt.Sprintf(cmplText, " b"), fmt.Sprintf(cmplText, " c"), usage3, "[DONE]"), 3, []uint32{1, 1}, ""},
		{"spaces, an error", EndpointChat, spaced(`{"error":{"message":"out of memory"}}`), 0, nil, failedStream},
		{"usage in the last choice", EndpointChat, []string{word(" a"), word(" b c"), fmt.Sprintf(usageLast, ""), "[DONE]"}, 5, []uint32{4}, ""},
		{"usage in the last choice, which speaks", EndpointChat, []string{word(" a"), word(" b c"), fmt.Sprintf(usageLast, " d e"), "[DONE]"}, 5, []uint32{2, 2}, ""},
		{"no reason to finish", EndpointGenerate, []string{
			`{"text":" a","meta_info":{"finish_reason":null,"prompt_tokens":7,"completion_tokens":1}}`,
			`{"text":" a b","meta_info":{"finish_reason":null,"prompt_tokens":7,"completion_tokens":2}}`, "[DONE]",
		}, 2, []uint32{1}, ""},
		{"aborted", EndpointChat, []string{
			word(" a"), `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}`,
			`{"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}`, "[DONE]",
		}, 1, nil, failedStream},
		{"a token without text", EndpointCompletions, []string{fmt.Sprintf(cmplText, ""), usage3, "[DONE]"}, 3, nil, ""},
		{"no [DONE]", EndpointChat, []string{word(" a"), word(" b"), word(" c"), usage3}, 3, []uint32{1, 1}, ""},
		{"usage all along", EndpointCompletions, []string{fmt.Sprintf(usageSoFar, 1), fmt.Sprintf(usageSoFar, 3), usage3}, 3, []uint32{2}, ""},
		{"usage all along, cut", EndpointCompletions, []string{fmt.Sprintf(usageSoFar, 1), fmt.Sprintf(usageSoFar, 2)}, 2, []uint32{1}, failedCut},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := talked(c.endpoint, streamOf(c.events...), false)
			kind := ""
			if err != nil {
				kind = kindOf(err)
			}
			if kind != c.kind || a.Output != c.output {
				t.Fatalf("%v, %+v", err, a.Request)
			}
			if err == nil && (a.TTFT <= 0 || a.TTFT > a.E2E) {
				t.Errorf("TTFT %v of %v", a.TTFT, a.E2E)
			}
			var tokens []uint32
			for _, g := range a.gaps {
				tokens = append(tokens, g.Tokens)
			}
			if !slices.Equal(tokens, c.gaps) {
				t.Errorf("tokens behind each gap %v, want %v", tokens, c.gaps)
			}
		})
	}
}

// A whole text that a token leaves as it was (half a character, say) is not taken for a new one.
func TestSpokenTextThatDoesNotGrow(t *testing.T) {
	t.Parallel()
	var s spoken
	s.reset()
	for _, text := range []string{" a", " a b", " a b", " a b c"} {
		s.add([]byte(fmt.Sprintf(`{"text":%q,"meta_info":{"completion_tokens":1}}`, text)))
	}
	if string(s.text) != " a b c" {
		t.Errorf("said %q", s.text)
	}
}
