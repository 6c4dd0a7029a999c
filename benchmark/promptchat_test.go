package benchmark_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sgtune/benchmark"
)

func TestPromptRenderText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		messages []json.RawMessage
		want     string
	}{
		{"nothing", nil, "assistant:"},
		{"one", raw(colour), "user: Name a colour.\nassistant:"},
		{"a history", raw(colour, `{"role":"assistant","content":" Blue."}`, fruit), "user: Name a colour.\nassistant: Blue.\nuser: And a fruit?\nassistant:"},
		{"parts", raw(`{"role":"user","content":[{"type":"text","text":"Look: "},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"what?"}]}`), "user: Look: what?\nassistant:"},
		{"a tool's answer", raw(`{"role":"tool","tool_call_id":"1","content":"sunny"}`), "tool: sunny\nassistant:"},
		{"no content", raw(`{"role":"user","content":null}`, `{"role":"user"}`), "user: \nuser: \nassistant:"},
		{"no role", raw(`{"content":"hi"}`), "user: hi\nassistant:"},
		{"no message", raw(`"hi"`, `7`), "user: \"hi\"\nuser: 7\nassistant:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := benchmark.RenderText(c.messages); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// headed is the first message of the second pass of a conversation that begins with this one.
func headed(message string) []json.RawMessage {
	w := benchmark.NewWorkload([]benchmark.Row{{Turns: []benchmark.Turn{{Messages: raw(message), OutputTokens: 1}}}}, 0)
	feed := benchmark.NewFeed(w, 0, 1, "", testPalette())
	feed.Next()
	return feed.Next().Messages
}

func TestPromptHeadKeepsTheMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, message, want string }{
		{"text", `{"role":"system","name":"n","content":"Be brief.","x":{"b":1,"a":2}}`, `{"content":"HEAD\nBe brief.","name":"n","role":"system","x":{"b":1,"a":2}}`},
		{"parts", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}`, `{"content":[{"text":"HEAD\n","type":"text"},{"type":"image_url","image_url":{"url":"u"}}],"role":"user"}`},
		{"null", `{"role":"user","content":null}`, `{"content":"HEAD\n","role":"user"}`},
		{"no content", `{"role":"user"}`, `{"content":"HEAD","role":"user"}`},
		{"no message", `7`, `{"role":"user","content":"HEAD"}`},
		{"another content", `{"role":"user","content":7}`, `{"role":"user","content":"HEAD"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			messages := headed(c.message)
			plain := headed(`{"role":"user"}`)
			head := content(t, plain[0])
			if len(strings.Fields(head)) != 8 {
				t.Fatalf("head %q", head)
			}
			if got := strings.ReplaceAll(string(messages[0]), head, "HEAD"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if len(messages) == 2 && string(messages[1]) != c.message {
				t.Errorf("the message became %s", messages[1])
			}
		})
	}
}

func FuzzPromptMessages(f *testing.F) {
	for _, seed := range []string{brief, `{"role":"user","content":[{"type":"text","text":"a"},"b"]}`, `{"role":1,"content":{}}`, `null`, `[`, `{"content":"\ud800"}`} {
		f.Add(seed, "an answer")
	}
	f.Fuzz(func(t *testing.T, message, answer string) {
		before := raw(message)
		quoted, err := json.Marshal(map[string]string{"role": "assistant", "content": answer})
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Content string }
		if err := json.Unmarshal(quoted, &said); err != nil {
			t.Fatal(err)
		}
		var m struct{ Role string }
		if json.Unmarshal([]byte(message), &m) == nil && m.Role == "assistant" {
			return // the model goes on from its own words
		}
		text := benchmark.RenderText(before)
		if after := benchmark.RenderText(append(before, quoted, raw(fruit)[0])); !strings.HasPrefix(after, text+said.Content+"\n") {
			t.Errorf("%q is not how %q begins", text+said.Content, after)
		}
		for _, h := range headed(message) {
			if json.Valid([]byte(message)) && !json.Valid(h) {
				t.Errorf("%q became %q", message, h)
			}
		}
	})
}
