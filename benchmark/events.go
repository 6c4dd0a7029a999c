package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What the three endpoints stream:
//
//	generate     SGLang's own; every event repeats the whole answer so far (or, started with the flag for it,
//	             only what is new) and counts it: meta_info.completion_tokens
//	completions  OpenAI's, choices[0].text is what is new; counts come with usage, in each event
//	chat         or in one event at the end; choices[0].delta.content is what is new
//
// One cumulative answer of n tokens is O(n²) bytes, so events are only looked into for what is needed at
// places where it stood before; the last one alone is decoded as JSON.

// Endpoints of a server.
const (
	EndpointGenerate    = "generate"
	EndpointCompletions = "completions"
	EndpointChat        = "chat"
)

// endpointPaths are their paths.
var endpointPaths = map[string]string{
	EndpointGenerate:    "/generate",
	EndpointCompletions: "/v1/completions",
	EndpointChat:        "/v1/chat/completions",
}

var (
	keyCompletion = []byte(`"completion_tokens":`)
	keyPrompt     = []byte(`"prompt_tokens":`)
	keyCached     = []byte(`"cached_tokens":`)
	keyFinish     = []byte(`"finish_reason":`)
	keyUsage      = []byte(`"usage":{`)
	noUsage       = []byte(`"usage":null}`)
	doneMark      = []byte("[DONE]")
	textKeys      = map[string][][]byte{
		EndpointCompletions: {[]byte(`"text":"`)},
		EndpointChat:        {[]byte(`"content":"`), []byte(`"reasoning_content":"`), []byte(`"reasoning":"`), []byte(`"arguments":"`)},
	}
	errorMarks = [][]byte{[]byte(`{"error"`), []byte(`{"object":"error"`)}
)

// place remembers where a key stood in the event before: in one stream it hardly moves.
type place struct {
	fromEnd int
	fromTop int
}

// last finds the last occurrence of key and returns the index behind it, -1 without one.
func (p *place) last(event, key []byte) int {
	if at := len(event) - p.fromEnd; p.fromEnd > 0 && at >= len(key) && bytes.Equal(event[at-len(key):at], key) {
		return at
	}
	i := bytes.LastIndex(event, key)
	if i < 0 {
		return -1
	}
	p.fromEnd = len(event) - i - len(key)
	return i + len(key)
}

// first finds the first occurrence of key and returns the index behind it, -1 without one.
func (p *place) first(event, key []byte) int {
	if at := p.fromTop; at >= len(key) && at <= len(event) && bytes.Equal(event[at-len(key):at], key) {
		return at
	}
	i := bytes.Index(event, key)
	if i < 0 {
		return -1
	}
	p.fromTop = i + len(key)
	return p.fromTop
}

// reader reads the events of one answer after the other of one endpoint.
type reader struct {
	endpoint   string
	texts      [][]byte
	completion place
	finish     place
	text       [4]place

	last    []byte // the event that ends the answer, as far as it came
	usage   bool   // last holds usage (OpenAI's endpoints)
	counted bool   // events carry counts of their own, so that no token was guessed
}

func newReader(endpoint string) reader {
	return reader{endpoint: endpoint, texts: textKeys[endpoint]}
}

func (r *reader) reset() { r.last, r.usage, r.counted = r.last[:0], false, false }

// tokens is how many tokens the answer has after this event, before is how many it had.
func (r *reader) tokens(event []byte, before int) int {
	if r.endpoint == EndpointGenerate {
		if at := r.finish.last(event, keyFinish); at < 0 || at >= len(event) || event[at] != 'n' {
			r.last = append(r.last[:0], event...) // not null: the last one
		}
		if at := r.completion.last(event, keyCompletion); at >= 0 {
			if n, ok := digits(event[at:]); ok {
				r.counted = true
				return n
			}
		}
		return before
	}
	spoken := r.speaks(event)
	if !bytes.HasSuffix(event, noUsage) && bytes.Contains(event, keyUsage) {
		r.last, r.usage = append(r.last[:0], event...), true
		if n, ok := number(event, keyCompletion); ok && spoken {
			r.counted = true
			return n
		}
	}
	if spoken && !r.counted {
		return before + 1
	}
	return before
}

// speaks reports whether an event of OpenAI's endpoints brings text.
func (r *reader) speaks(event []byte) bool {
	for i, key := range r.texts {
		if at := r.text[i].first(event, key); at >= 0 && at < len(event) && event[at] != '"' {
			return true
		}
	}
	return false
}

// prompt is the number of prompt tokens an event tells, 0 when it does not.
func (r *reader) prompt(event []byte) int {
	n, _ := number(event, keyPrompt)
	return n
}

// final is what the end of an answer says about the whole request.
type final struct {
	Completion int
	Prompt     int
	Cached     int
}

var (
	errNoUsage   = errors.New("the last event has no meta_info.completion_tokens")
	errNoCount   = errors.New("no event had usage: the server does not honour stream_options.include_usage, so tokens cannot be counted")
	errNoAnswer  = errors.New("the stream ended without an answer")
	errNotStream = errors.New("the answer is not an event stream")
)

// end is what the last event says.
func (r *reader) end() (final, error) {
	if r.endpoint == EndpointGenerate {
		if len(r.last) == 0 {
			return final{}, errNoAnswer
		}
		return decodeFinal(r.last)
	}
	if !r.usage {
		return final{}, errNoCount
	}
	f := final{}
	f.Completion, _ = number(r.last, keyCompletion)
	f.Prompt, _ = number(r.last, keyPrompt)
	f.Cached, _ = number(r.last, keyCached)
	return f, nil
}

// complete reports whether an answer that ended without [DONE] was complete all the same.
func (r *reader) complete() bool {
	if r.endpoint == EndpointGenerate {
		at := bytes.LastIndex(r.last, keyFinish)
		return at >= 0 && !bytes.HasPrefix(r.last[at+len(keyFinish):], []byte("null"))
	}
	return r.usage
}

// decodeFinal reads the last event of /generate. A request the server aborted is an error.
func decodeFinal(event []byte) (final, error) {
	var e struct {
		Meta struct {
			Completion *int            `json:"completion_tokens"`
			Prompt     int             `json:"prompt_tokens"`
			Cached     int             `json:"cached_tokens"`
			Finish     json.RawMessage `json:"finish_reason"`
		} `json:"meta_info"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return final{}, fmt.Errorf("the last event is not JSON: %w", err)
	}
	if e.Meta.Completion == nil {
		return final{}, errNoUsage
	}
	var reason struct{ Type, Message string }
	if json.Unmarshal(e.Meta.Finish, &reason) == nil && reason.Type == "abort" {
		return final{}, fmt.Errorf("the server aborted the request: %s", shorten(reason.Message, 200))
	}
	return final{*e.Meta.Completion, e.Meta.Prompt, e.Meta.Cached}, nil
}

// isError reports whether an event tells of an error.
func isError(event []byte) bool {
	for _, mark := range errorMarks {
		if bytes.HasPrefix(event, mark) {
			return true
		}
	}
	return false
}

// streamError reads an error event; its shape is only known to be an object with "error" or "message".
func streamError(event []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(event, &e) == nil {
		if text := e.Error.Message + e.Message; text != "" {
			return shorten(text, 200)
		}
	}
	return excerpt(event)
}

// spoken collects what a server said, for the next turn of a conversation.
type spoken struct {
	text  []byte
	ids   []int
	delta bool // texts have turned out to be only what is new
}

func (s *spoken) reset() { s.text, s.ids, s.delta = s.text[:0], nil, false }

// add notes an event. SGLang's events hold the whole answer so far unless it was told to send only what is new.
// Ids are whole when there are as many as the event counts; versions differ, and 0.5.5 has whole texts beside
// new ids, so texts are told apart by themselves: a whole one begins with what came before and is longer.
func (s *spoken) add(event []byte) {
	var e struct {
		Text string `json:"text"`
		IDs  []int  `json:"output_ids"`
		Meta struct {
			Completion int `json:"completion_tokens"`
		} `json:"meta_info"`
		Choices []struct {
			Text  string
			Delta struct{ Content string }
		}
	}
	if json.Unmarshal(event, &e) != nil {
		return
	}
	if len(e.Choices) > 0 {
		s.text = append(append(s.text, e.Choices[0].Text...), e.Choices[0].Delta.Content...)
		return
	}
	whole := len(e.IDs) > 0 && len(e.IDs) == e.Meta.Completion
	if whole {
		s.ids = e.IDs
	} else {
		s.ids = append(s.ids, e.IDs...)
	}
	switch {
	case whole, !s.delta && len(e.Text) > len(s.text) && bytes.HasPrefix([]byte(e.Text), s.text):
		s.text = append(s.text[:0], e.Text...)
	default:
		s.text, s.delta = append(s.text, e.Text...), s.delta || e.Text != ""
	}
}
