package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// client talks to a server that runs inside the test, without a process of its own: no start-up, no log.
type client struct {
	t   *testing.T
	url string
	s   *server
}

// serve starts one, 1,000 times as fast as life.
func serve(t *testing.T, flags ...string) *client {
	t.Helper()
	l := sized(t, append([]string{"--mem-fraction-static", "0.88", "--sim-time-scale", "1000"}, flags...)...)
	start := time.Now()
	s := &server{l: l, clock: pacedClock{start, l.s.Sim.TimeScale}, log: newLogWriter(l.d, io.Discard, start), access: io.Discard, wake: make(chan struct{}, 1), claims: &claims{}, info: l.infoJSON()}
	s.readyS.Store(0.0)
	s.state.Store(int32(stateReady))
	if l.s.Metrics {
		s.book = newBook(l.d)
	}
	s.eng = newEngine(&l.p, &l.s, &l.b, 1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.pace(ctx) })
	h := httptest.NewServer(s.handler())
	t.Cleanup(func() { h.Close(); cancel(); wg.Wait() })
	return &client{t: t, url: h.URL, s: s}
}

// post sends JSON and returns status and body.
func (c *client) post(path, body string) (int, string) { return c.send(http.MethodPost, path, body) }

func (c *client) send(method, path, body string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// counts is the token counts of an answer, whatever its endpoint.
type counts struct {
	Prompt     int `json:"prompt_tokens"`
	Total      int `json:"total_tokens"`
	Completion int `json:"completion_tokens"`
	Details    *struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// heard is what a client makes of an answer.
type heard struct {
	text, finish string
	usage        *counts
	events       int
	done         bool
}

// ask sends a body to one of the OpenAI endpoints and puts the answer together.
func (c *client) ask(path, body string) heard {
	c.t.Helper()
	code, text := c.post(path, body)
	if code != 200 {
		c.t.Fatalf("%s %.200s: %d %s", path, body, code, text)
	}
	h := heard{}
	if !strings.HasPrefix(text, "data: ") {
		h.add(c.t, text)
		return h
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || h.done {
			c.t.Fatalf("event %q in %s", event, text)
		}
		if h.done = data == "[DONE]"; !h.done {
			h.events++
			h.add(c.t, data)
		}
	}
	return h
}

func (h *heard) add(t *testing.T, text string) {
	t.Helper()
	var piece struct {
		Choices []struct {
			Text           string
			Delta, Message struct{ Content string }
			Finish         *string `json:"finish_reason"`
		}
		Usage *counts
	}
	if err := json.Unmarshal([]byte(text), &piece); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, x := range piece.Choices {
		h.text += x.Text + x.Delta.Content + x.Message.Content
		if x.Finish != nil {
			h.finish = *x.Finish
		}
	}
	if piece.Usage != nil {
		h.usage = piece.Usage
	}
}

// wordsText is n words that no other number begins with.
func wordsText(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " w%d", from+i)
	}
	return b.String()
}

// Each endpoint answers a prompt in every form, with exact counts.
func TestOpenAIAnswers(t *testing.T) {
	t.Parallel()
	c := serve(t, "--enable-cache-report")
	const streamed = `,"stream":true,"stream_options":{"include_usage":true}`
	for _, x := range []struct {
		name, path, body string
		prompt, out      int
	}{
		{"ids", "/v1/completions", `{"model":"m","prompt":[5,6,7,8],"max_tokens":3,"temperature":0.7,"ignore_eos":true%s}`, 4, 3},
		{"one list of ids", "/v1/completions", `{"prompt":[[5,6,7,8]],"max_tokens":5%s}`, 4, 5},
		{"text", "/v1/completions", `{"prompt":"a b\nc \u00e9","max_tokens":40%s}`, 5, 40},
		{"one text in a list", "/v1/completions", `{"prompt":["a b"],"logit_bias":{"5":1},"max_tokens":"7"%s}`, 3, 7},
		{"default length", "/v1/completions", `{"prompt":[1,2,3]%s}`, 3, 16},
		{"chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hello big world"}],"max_tokens":9%s}`, 3 + chatFixed + chatMessage, 9},
		{"parts", "/v1/chat/completions", `{"messages":[{"content":[{"type":"text","text":"hello big"},{"type":"text","text":"world"}],"role":"user"}],"max_tokens":4,"max_completion_tokens":8%s}`, 3 + chatFixed + chatMessage, 8},
		{
			"turns", "/v1/chat/completions",
			`{"max_tokens":2,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":1}]},{"role":"tool","content":"b c"}]%s}`,
			5 + 3 + chatFixed + 4*chatMessage, 2, // [{"id":1}] is ten bytes: three tokens
		},
		{
			"tools", "/v1/chat/completions", `{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"a"}],"max_tokens":2%s}`,
			1 + chatFixed + 2*chatMessage + 1 + 12, 2, // 48 bytes of tools
		},
	} {
		for _, options := range []string{"", streamed} {
			h := c.ask(x.path, fmt.Sprintf(x.body, options))
			if h.usage == nil || h.usage.Details == nil {
				t.Fatalf("%s%s: no usage in %+v", x.name, options, h)
			}
			if h.usage.Prompt != x.prompt || h.usage.Completion != x.out || h.usage.Total != x.prompt+x.out || len(strings.Fields(h.text)) != x.out || h.finish != "length" || h.done != (options != "") {
				t.Errorf("%s%s: %+v, usage %+v; want %d prompt and %d output tokens", x.name, options, h, *h.usage, x.prompt, x.out)
			}
		}
	}
}

// A chat without a limit stops by itself, always at the same place; ignore_eos takes it to the end of the context.
func TestChatStopsByItself(t *testing.T) {
	t.Parallel()
	c := serve(t, "--context-length", "2000")
	const body = `{"messages":[{"role":"user","content":"hello"}]%s}`
	a, b := c.ask("/v1/chat/completions", fmt.Sprintf(body, "")), c.ask("/v1/chat/completions", fmt.Sprintf(body, `,"stream":true,"max_tokens":null,"stream_options":{"include_usage":true}`))
	if a.finish != "stop" || a.usage.Completion < 64 || a.usage.Completion > 1087 || a.usage.Details != nil || b.finish != "stop" || b.text != a.text || b.usage.Completion != a.usage.Completion {
		t.Errorf("%+v and %+v", a, b)
	}
	if x := c.ask("/v1/chat/completions", fmt.Sprintf(body, `,"min_tokens":1500`)); x.finish != "stop" || x.usage.Completion != 1500 {
		t.Errorf("min_tokens: %+v", x.usage)
	}
	if x := c.ask("/v1/chat/completions", fmt.Sprintf(body, `,"ignore_eos":true`)); x.finish != "length" || x.usage.Completion != 2000-x.usage.Prompt-1 {
		t.Errorf("ignore_eos: %+v", x.usage)
	}
}

// A next turn that quotes the answer finds prompt and answer in the cache, but for the block that is not whole.
func TestFollowUpHitsTheCache(t *testing.T) {
	t.Parallel()
	c := serve(t, "--enable-cache-report")
	const out = 200
	whole := func(tokens int) int { return tokens / blockTokens * blockTokens }
	for _, stream := range []string{"", `,"stream":true,"stream_options":{"include_usage":true}`} {
		from := 1000 + len(stream)
		prompt := wordsText(from, 300)
		body := `{"prompt":"%s","max_tokens":200` + stream + `}`
		first := c.ask("/v1/completions", fmt.Sprintf(body, prompt))
		next := c.ask("/v1/completions", fmt.Sprintf(body, prompt+first.text+wordsText(from+5000, 40)))
		if want := whole(1 + 300 + out); first.usage.Details.Cached != 0 || next.usage.Details.Cached != want {
			t.Errorf("completions: %d, then %d tokens cached, want 0 and %d", first.usage.Details.Cached, next.usage.Details.Cached, want)
		}
		other := c.ask("/v1/completions", fmt.Sprintf(body, prompt+" nine"+first.text))
		if want := whole(1 + 300); other.usage.Details.Cached != want {
			t.Errorf("another answer: %d tokens cached, want %d", other.usage.Details.Cached, want)
		}

		content := wordsText(from+20000, 300)
		chat := `{"max_tokens":200,"messages":[{"role":"user","content":"%s"}%s]` + stream + `}`
		first = c.ask("/v1/chat/completions", fmt.Sprintf(chat, content, ""))
		next = c.ask("/v1/chat/completions", fmt.Sprintf(chat, content, fmt.Sprintf(`,{"role":"assistant","content":"%s"},{"role":"user","content":"more"}`, first.text)))
		if want := whole(first.usage.Prompt + out); first.usage.Details.Cached != 0 || next.usage.Details.Cached != want {
			t.Errorf("chat: %d, then %d tokens cached, want 0 and %d", first.usage.Details.Cached, next.usage.Details.Cached, want)
		}
	}
}

// What a /generate answer says in ids and in words is the same to the cache.
func TestAnswersInWordsAreAnswersInIDs(t *testing.T) {
	t.Parallel()
	for id, word := range outputWords[1:] {
		if got := wordID(word[1:], 163840); got != uint32(id)+1 {
			t.Errorf("%q is token %d, want %d", word, got, id+1)
		}
	}
	p := NewPrompt(ids(100, 70))
	a := newAnswer(p)
	var list idList
	spell(&list, string(a.appendText(nil, 0, 100)), 163840)
	want := make(idList, 100)
	for i := range want {
		want[i] = p.OutputID(i)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if got := string(a.appendIDs(nil, 14, 40)); got != strings.Trim(strings.ReplaceAll(fmt.Sprint([]uint32(want[14:40])), " ", ","), "[]") {
		t.Errorf("ids 14 to 40: %s", got)
	}
	var mixed idList
	spell(&mixed, "\u00e9a\u00a0b\u2003 w1\tw\u00e92\n\vtwo", 163840)
	for i, w := range []string{"\u00e9a", "b", "w1", "w\u00e92", "two"} {
		if len(mixed) != 5 || mixed[i] != wordID(w, 163840) {
			t.Errorf("word %d of %v is not %q", i, mixed, w)
		}
	}
	for i := range 2000 {
		if id := wordID(fmt.Sprint("w", i), 163840); id < firstWordID || id >= 163840 {
			t.Errorf("word %d is token %d", i, id)
		}
	}
}

func TestOpenAIRefusals(t *testing.T) {
	t.Parallel()
	c := serve(t)
	long := strings.Repeat("7,", 200000) + "7"
	longer := strings.Repeat("7,", 262143) + "7"
	const pool, limit = "Input length (200001 tokens) exceeds the maximum allowed length (159271 tokens). Use a shorter input or enable --allow-auto-truncate.", "The input (262144 tokens) is longer than the model's context length (262144 tokens)."
	object := func(message, kind string) string {
		return `^` + regexp.QuoteMeta(fmt.Sprintf(`{"object":"error","message":"%s","type":"%s","param":null,"code":400}`, message, kind)) + `$`
	}
	field := func(item, handler, path string) string {
		return `^` + regexp.QuoteMeta(`{"object":"error","message":"1 validation error:\n  `+item+`\n\n  File \"`) + `.*` +
			regexp.QuoteMeta(fmt.Sprintf(`, in %s\n    POST %s [%s]","type":"Bad Request","param":null,"code":400}`, handler, path, item)) + `$`
	}
	const completions, chat = "/v1/completions", "/v1/chat/completions"
	for _, x := range []struct {
		name, path, body string
		code             int
		want             string
	}{
		{"empty list", completions, `{"prompt":[]}`, 400, object("Prompt cannot be empty", "BadRequestError")},
		{"empty text", completions, `{"prompt":""}`, 400, object("Prompt cannot be empty", "BadRequestError")},
		{"no prompt", completions, `{"model":"x","max_tokens":2}`, 400, field(`{'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required', 'input': {'model': 'x', 'max_tokens': 2}}`, "openai_v1_completions", completions)},
		{"no tokens", completions, `{"prompt":"a","max_tokens":0}`, 400, field(`{'type': 'value_error', 'loc': ('body', 'max_tokens'), 'msg': 'Value error, max_tokens must be positive', 'input': 0, 'ctx': {'error': ValueError('max_tokens must be positive')}}`, "openai_v1_completions", completions)},
		{"no number", completions, `{"prompt":"a","max_tokens":"abc"}`, 400, field(`{'type': 'int_parsing', 'loc': ('body', 'max_tokens'), 'msg': 'Input should be a valid integer, unable to parse string as an integer', 'input': 'abc'}`, "openai_v1_completions", completions)},
		{"an object", completions, `{"prompt":{"a":[1,null,true]}}`, 400, field(`{'type': 'list_type', 'loc': ('body', 'prompt', 'list[int]'), 'msg': 'Input should be a valid list', 'input': {'a': [1, None, True]}}`, "openai_v1_completions", completions)},
		{"cut JSON", completions, `{"model":"x","prompt":"a",`, 400, `^{"object":"error","message":"1 validation error:.*json_invalid.*"type":"Bad Request","param":null,"code":400}$`},
		{"garbage", completions, `garbage`, 400, `'json_invalid', 'loc': \('body', 0\)`},
		{"nothing", completions, ``, 400, `json_invalid`},
		{"nested", completions, strings.Repeat(`[`, 100000), 400, `json_invalid`},
		{"a list", completions, `[1]`, 400, field(`{'type': 'model_attributes_type', 'loc': ('body',), 'msg': 'Input should be a valid dictionary or object to extract fields from', 'input': [1]}`, "openai_v1_completions", completions)},
		{"two prompts", completions, `{"prompt":["a","b"]}`, 400, "batches of prompts are not simulated"},
		{"two answers", completions, `{"prompt":"a","n":2}`, 400, "n = 2 is not simulated"},
		{"longer than the context", completions, `{"prompt":[` + longer + `]}`, 400, object(limit, "BadRequestError")},
		{"longer than the context, streamed", completions, `{"stream":true,"prompt":[` + longer + `]}`, 400, object(limit, "BadRequestError")},
		{"longer than the pool", completions, `{"prompt":[` + long + `]}`, 400, object(pool, "BadRequestError")},
		{"longer than the pool, streamed", completions, `{"stream":true,"prompt":[` + long + `]}`, 200, `^` + regexp.QuoteMeta(`data: {"error": {"object": "error", "message": "`+pool+`", "type": "BAD_REQUEST", "param": null, "code": 400}}`+"\n\ndata: [DONE]\n\n") + `$`},
		{"answer too long", completions, `{"prompt":[1,2],"max_tokens":9999999}`, 400, object("Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of 10000001 tokens: 2 tokens from the input messages and 9999999 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.", "BadRequestError")},
		{"no messages", chat, `{"max_tokens":3}`, 400, `'missing', 'loc': \('body', 'messages'\)`},
		{"empty messages", chat, `{"messages":[]}`, 400, object("Messages cannot be empty.", "BadRequestError")},
		{"a text for messages", chat, `{"messages":"hi"}`, 400, field(`{'type': 'list_type', 'loc': ('body', 'messages'), 'msg': 'Input should be a valid list', 'input': 'hi'}`, "openai_v1_chat_completions", chat)},
		{"no content", chat, `{"messages":[{"role":"user"}]}`, 400, `'loc': \('body', 'messages', 'content'\), 'msg': 'Field required'`},
		{"an image", chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, 400, "image_url parts are not simulated"},
		{"tokenize nothing", "/tokenize", `{}`, 400, `Exactly one of 'prompt' or 'messages' must be provided\.`},
		{"generate too much", "/generate", `{"input_ids":[1,2],"sampling_params":{"max_new_tokens":300000}}`, 400, `You requested a total of 300002 tokens`},
	} {
		code, text := c.post(x.path, x.body)
		if code != x.code || !regexp.MustCompile(x.want).MatchString(text) {
			t.Errorf("%s: %d %.900s\nwant %d %s", x.name, code, text, x.code, x.want)
		}
	}
	res, err := http.Post(c.url+completions, "text/plain", strings.NewReader(`{"prompt":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); res.StatusCode != 400 || !strings.Contains(string(b), "Unsupported Media Type: Only 'application/json' is allowed") {
		t.Errorf("another media type: %d %s", res.StatusCode, b)
	}
}

// A full queue is a 503 for who waits and an error inside a stream.
func TestOpenAIQueueFull(t *testing.T) {
	t.Parallel()
	c := serve(t, "--max-queued-requests", "1")
	c.s.mu.Lock()
	c.s.eng.waiting = append(c.s.eng.waiting, &Request{Prompt: NewPrompt([]uint32{1}), MaxNew: 1})
	c.s.frozen = true
	c.s.mu.Unlock()
	const body = `{"prompt":[1,2],"stream":%v}`
	if code, text := c.post("/v1/completions", fmt.Sprintf(body, false)); code != 503 || text != `{"object":"error","message":"The request queue is full.","type":"503","param":null,"code":503}` {
		t.Errorf("%d %s", code, text)
	}
	if code, text := c.post("/v1/completions", fmt.Sprintf(body, true)); code != 200 || !strings.HasPrefix(text, `data: {"error": {"object": "error", "message": "The request queue is full.", "type": "SERVICE_UNAVAILABLE", "param": null, "code": 503}}`) {
		t.Errorf("%d %s", code, text)
	}
}

// /tokenize with messages counts as the chat endpoint does.
func TestTokenizeMessages(t *testing.T) {
	t.Parallel()
	const body = `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"a b c"}],"tools":[{"a":1}],"max_tokens":1}`
	c := serve(t)
	code, text := c.post("/tokenize", body)
	var got struct {
		Tokens []uint32
		Count  int
		Max    int `json:"max_model_len"`
	}
	if err := json.Unmarshal([]byte(text), &got); code != 200 || err != nil {
		t.Fatalf("%d %s", code, text)
	}
	if h := c.ask("/v1/chat/completions", body); got.Count != h.usage.Prompt || len(got.Tokens) != got.Count || got.Max != 262144 || got.Tokens[0] != bosID {
		t.Errorf("%s, but the chat counts %d", text, h.usage.Prompt)
	}
	if code, text := serve(t, "--sim-version", "0.5.10").post("/tokenize", body); code != 400 {
		t.Errorf("0.5.10 knows no messages: %d %s", code, text)
	}
}

// Aborts and the key apply as they do to /generate.
func TestOpenAIAbortAndKey(t *testing.T) {
	t.Parallel()
	c := serve(t, "--sim-time-scale", "10", "--api-key", "k", "--enable-metrics")
	if code, _ := c.post("/v1/completions", `{"prompt":"a"}`); code != 401 {
		t.Errorf("without the key: %d", code)
	}
	if code, _ := c.send("GET", "/metrics", ""); code != 200 {
		t.Errorf("/metrics needs no key: %d", code)
	}
	open := serve(t, "--sim-time-scale", "10")
	var wg sync.WaitGroup
	for _, x := range []struct{ path, body string }{
		{"/v1/completions", `{"prompt":"a","max_tokens":20000,"rid":"x1","stream":true}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"max_tokens":20000,"rid":"x2"}`},
	} {
		wg.Go(func() {
			if h := open.ask(x.path, x.body); h.finish != "abort" {
				t.Errorf("%s ended with %q", x.path, h.finish)
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		open.s.mu.Lock()
		n := len(open.s.eng.running)
		open.s.mu.Unlock()
		if n == 2 || time.Now().After(deadline) {
			break
		}
	}
	open.post("/abort_request", `{"rid":"x"}`)
	wg.Wait()
}
