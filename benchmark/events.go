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
	abortMark     = []byte(`"finish_reason":"abort"`) // SGLang's, also of an answer cut short by /abort_request
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

	first   []byte // the event that brought the first tokens (generate)
	total   int    // tokens so far (generate)
	last    []byte // the event that ends the answer, as far as it came
	usage   bool   // last holds usage (OpenAI's endpoints)
	counted bool   // events carry counts of their own, so that no token was guessed
	guessed bool   // a token was: later counts are of the whole answer
	aborted bool   // by the server (OpenAI's endpoints)
	spare   bytes.Buffer
}

func newReader(endpoint string) reader {
	return reader{endpoint: endpoint, texts: textKeys[endpoint]}
}

func (r *reader) reset() {
	r.first, r.last, r.total = r.first[:0], r.last[:0], 0
	r.usage, r.counted, r.guessed, r.aborted = false, false, false, false
}

// dense is an event without the spaces that some servers write between its parts, as json.dumps of Python does.
// It is valid until the next call.
func (r *reader) dense(event []byte) []byte {
	i := bytes.IndexByte(event, ':') + 1
	if i <= 0 || i >= len(event) || event[i] != ' ' && event[1] != ' ' {
		return event
	}
	r.spare.Reset()
	if json.Compact(&r.spare, event) != nil {
		return event // whoever reads it says so
	}
	return r.spare.Bytes()
}

// tokens is how many tokens the answer has after this event, before is how many it had.
func (r *reader) tokens(event []byte, before int) int {
	if r.endpoint == EndpointGenerate {
		if at := r.finish.last(event, keyFinish); at < 0 || at >= len(event) || event[at] != 'n' {
			r.last = append(r.last[:0], event...) // not null: the last one
		}
		if at := r.completion.last(event, keyCompletion); at >= 0 {
			if n, ok := digits(event[at:]); ok {
				if !r.counted {
					r.first, r.counted = append(r.first[:0], event...), true
				}
				r.total = max(r.total, n)
				return n
			}
		}
		return before
	}
	spoken := r.speaks(event)
	if !bytes.HasSuffix(event, noUsage) && bytes.Contains(event, keyUsage) {
		r.last, r.usage = append(r.last[:0], event...), true
		if n, ok := number(event, keyCompletion); ok && spoken && !r.guessed {
			r.counted = true
			return n
		}
	}
	if !spoken && bytes.Contains(event, abortMark) {
		r.aborted = true
	}
	if spoken && !r.counted {
		r.guessed = true
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
	errAborted   = errors.New("the server aborted the request")
	errNoAnswer  = errors.New("the stream ended without an answer")
	errNotStream = errors.New("the answer is not an event stream")
)

// end is what the last event says.
func (r *reader) end() (final, error) {
	if r.endpoint == EndpointGenerate {
		if len(r.last) > 0 {
			return decodeFinal(r.last)
		}
		if !r.counted {
			return final{}, errNoAnswer
		}
		f := final{Completion: r.total} // [DONE] came, a reason to finish did not
		f.Prompt, _ = number(r.first, keyPrompt)
		f.Cached, _ = number(r.first, keyCached)
		return f, nil
	}
	if r.aborted {
		return final{}, errAborted
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
	at := bytes.LastIndex(r.last, keyFinish)
	finished := at >= 0 && !bytes.HasPrefix(r.last[at+len(keyFinish):], []byte("null"))
	if r.endpoint == EndpointGenerate {
		return finished
	}
	return r.usage && (finished || at < 0) // usage alone comes behind the choices
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
		return final{}, fmt.Errorf("%w: %s", errAborted, shorten(reason.Message, 200))
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
	whole bool // or all of the answer so far
}

func (s *spoken) reset() { s.text, s.ids, s.delta, s.whole = s.text[:0], nil, false, false }

// add notes an event. SGLang's events hold the whole answer so far unless it was told to send only what is new.
// Ids are whole when there are as many as the event counts; versions differ, and 0.5.5 has whole texts beside
// new ids, so texts are told apart by themselves: a whole one begins with what came before and is longer. Once it
// is known to be whole it may also be the same again, when a token completes no character.
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
	case whole, s.whole && e.Text == string(s.text):
		s.text = append(s.text[:0], e.Text...)
	case !s.delta && len(e.Text) > len(s.text) && bytes.HasPrefix([]byte(e.Text), s.text):
		s.whole = s.whole || len(s.text) > 0
		s.text = append(s.text[:0], e.Text...)
	default:
		s.text, s.delta = append(s.text, e.Text...), s.delta || e.Text != ""
	}
}
