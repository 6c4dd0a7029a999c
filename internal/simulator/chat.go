package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

// The simulated model's chat template. A prompt is the start token, then for each message an opening of three
// tokens (begin, role, middle), its words and one closing token, then the opening of the answer: so a chat of k
// messages costs chatFixed + k·chatMessage tokens more than its words. Tools come first as a message of their own.
const (
	chatBegin  = 9
	chatMiddle = 10
	chatEnd    = 11 // what the model ends an answer with
	chatTools  = 12

	chatFixed   = 4 // start token and opening of the answer
	chatMessage = 4 // opening and closing of a message
)

// bytesPerToken is how much JSON (tools, tool calls) one token stands for.
const bytesPerToken = 4

// parseChat reads a body of /v1/chat/completions. What tools and messages say is read after the rest, they may
// come in either order.
func parseChat(a *asker) error {
	a.chat = true
	var messages, tools []byte
	var limit, oldLimit int
	err := a.wholeBody(func(key []byte) (err error) {
		switch string(key) {
		case "messages":
			messages, err = a.raw()
		case "tools":
			tools, err = a.raw()
		case "max_completion_tokens":
			limit, err = a.integer("max_completion_tokens")
		case "max_tokens":
			oldLimit, err = a.integer("max_tokens")
		default:
			var known bool
			if known, err = a.common(key); !known {
				err = a.skip()
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if a.maxNew = limit; limit == 0 {
		a.maxNew = oldLimit
	}
	if a.maxNew < 0 {
		return badRequest("max_new_tokens must be at least 0, got %d.", a.maxNew)
	}
	if messages == nil {
		return a.missing("messages")
	}
	x := newHasher(len(messages) / 5)
	if err := renderChat(&x, messages, tools, a.vocab); err != nil {
		return err
	}
	a.prompt = x.prompt()
	return nil
}

// renderChat writes the tokens of a chat that asks for an answer.
func renderChat(out sink, messages, tools []byte, vocab int) error {
	out.add(bosID)
	if len(tools) > 0 && string(tools) != "null" && string(tools) != "[]" {
		openMessage(out, "tool_declare", vocab)
		out.add(chatTools)
		spellJSON(out, tools, vocab)
		out.add(chatEnd)
	}
	s := scanner{b: messages}
	if s.peek() != '[' {
		return &fieldError{kind: "list_type", loc: "'messages'", msg: "Input should be a valid list", input: messages}
	}
	n := 0
	err := s.array(func() error {
		n++
		return s.message(out, vocab)
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return badRequest("Messages cannot be empty.")
	}
	openMessage(out, "assistant", vocab)
	return nil
}

func openMessage(out sink, role string, vocab int) {
	out.add(chatBegin)
	out.add(wordID(role, vocab))
	out.add(chatMiddle)
}

// message writes one message; its role may come after its content.
func (s *scanner) message(out sink, vocab int) error {
	from := s.i
	var role string
	var content, calls []byte
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "role":
			role, err = s.text()
		case "content":
			content, err = s.raw()
		case "tool_calls":
			calls, err = s.raw()
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if missing := map[bool]string{role == "": "role", role == "user" && content == nil: "content"}[true]; missing != "" {
		return &fieldError{kind: "missing", loc: "'messages', '" + missing + "'", msg: "Field required", input: s.b[from:s.i]}
	}
	openMessage(out, strings.ToLower(role), vocab)
	if err := spellContent(out, content, vocab); err != nil {
		return err
	}
	if string(calls) != "null" {
		spellJSON(out, calls, vocab)
	}
	out.add(chatEnd)
	return nil
}

// spellContent writes a message's content: a text, a list of parts of which only texts are simulated, or nothing.
func spellContent(out sink, content []byte, vocab int) error {
	s := scanner{b: content}
	switch s.peek() {
	case 0, 'n':
		return nil
	case '"':
		text, err := s.text()
		spell(out, text, vocab)
		return err
	case '[':
	default:
		return &fieldError{kind: "string_type", loc: "'messages', 'content', 'str'", msg: "Input should be a valid string", input: content}
	}
	return s.array(func() error {
		return s.object(func(key []byte) error {
			switch string(key) {
			case "text":
				text, err := s.text()
				spell(out, text, vocab)
				return err
			case "image_url", "video_url", "audio_url", "input_audio":
				return badRequest("%s parts are not simulated: send texts", key)
			}
			return s.skip()
		})
	})
}

// spellJSON writes a value the template prints as JSON.
func spellJSON(out sink, text []byte, vocab int) {
	for len(text) > 0 {
		n := min(bytesPerToken, len(text))
		out.add(wordID("{"+string(text[:n]), vocab)) // the brace keeps "one " from being an answer's word
		text = text[n:]
	}
}

// tokenize is /tokenize: a text, several, or in 0.5.23 the messages of a chat.
func (s *server) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r, nil)
	if err != nil {
		replyError(w, http.StatusBadRequest, err.Error())
		return
	}
	var ask struct {
		Prompt   json.RawMessage `json:"prompt"`
		Messages json.RawMessage `json:"messages"`
		Tools    json.RawMessage `json:"tools"`
		Special  *bool           `json:"add_special_tokens"`
	}
	if err := json.Unmarshal(body, &ask); err != nil {
		replyError(w, http.StatusBadRequest, "invalid JSON body")
		return
	}
	limit := s.l.b.contextLen
	if s.l.d.release >= r0523 {
		if (ask.Prompt == nil) == (ask.Messages == nil) {
			const text = "Exactly one of 'prompt' or 'messages' must be provided."
			s.refuse(w, r, 0, &fieldError{kind: "value_error", msg: "Value error, " + text, input: body, ctx: `ValueError("` + text + `")`})
			return
		}
		if ask.Messages != nil {
			var ids idList
			if err := renderChat(&ids, ask.Messages, ask.Tools, s.l.p.Vocab); err != nil {
				s.refuse(w, r, 0, err)
				return
			}
			reply(w, http.StatusOK, tokensResponse(ids, limit))
			return
		}
	}
	texts, single := []string{""}, true
	if json.Unmarshal(ask.Prompt, &texts[0]) != nil {
		if single = false; json.Unmarshal(ask.Prompt, &texts) != nil {
			replyError(w, http.StatusBadRequest, "prompt must be a string or a list of strings")
			return
		}
	}
	reply(w, http.StatusOK, tokenizeResponse(texts, single, ask.Special == nil || *ask.Special, s.l.p.Vocab, limit))
}
