package benchmark

import (
	"encoding/json"
	"strings"
)

// Endpoints a body belongs to.
const (
	chatPath        = "/v1/chat/completions"
	completionsPath = "/v1/completions"
)

// parseOpenAI reads a chat request: its messages, how much may be answered, and what else is passed on.
func parseOpenAI(text []byte, e *entry) string {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(text, &body); err != nil {
		return badText(text)
	}
	return e.request(body, "")
}

// matchBatch tells the lines of an OpenAI batch file; some providers leave method and url out.
func matchBatch(s *sample) bool {
	return s.has("body") && (s.has("custom_id") || s.has("url") || s.has("method"))
}

// parseBatch reads a line of an OpenAI batch file. Without a url its body tells the endpoint.
func parseBatch(text []byte, e *entry) string {
	var j struct {
		URL  string                     `json:"url"`
		Body map[string]json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return badText(text)
	}
	if j.Body == nil {
		return dropBadRow
	}
	if drop := e.request(j.Body, j.URL); drop != "" {
		return drop
	}
	if e.row.Path == "" {
		if e.row.Text != "" {
			e.row.Path = completionsPath
		} else {
			e.row.Path = chatPath
		}
	}
	return ""
}

// request reads the body of a chat or completions request.
func (e *entry) request(body map[string]json.RawMessage, path string) string {
	e.row = Row{Path: path}
	if drop := e.prompt(body); drop != "" {
		return drop
	}
	var said *float64
	for _, key := range []string{"max_completion_tokens", "max_tokens", "max_new_tokens"} {
		if raw, ok := body[key]; ok && said == nil && json.Unmarshal(raw, &said) != nil {
			return dropBadRow
		}
	}
	output, open, drop := outputOf(said)
	if drop != "" {
		return drop
	}
	e.row.OutputTokens, e.row.Open = output, open
	if len(e.row.Turns) > 0 {
		e.row.Turns[0].OutputTokens, e.row.Turns[0].Open = output, open
	}
	for key := range body {
		if key == "messages" || key == "prompt" || key == "model" || key == "stream" || key == "stream_options" || strings.HasPrefix(key, "max_") {
			delete(body, key)
		}
	}
	if len(body) > 0 {
		extra, err := json.Marshal(body)
		if err != nil {
			return dropBadRow
		}
		e.row.Extra = extra
	}
	return ""
}

// prompt takes the messages of a chat, or the text of a completion.
func (e *entry) prompt(body map[string]json.RawMessage) string {
	if raw, ok := body["messages"]; ok {
		var messages []json.RawMessage
		if json.Unmarshal(raw, &messages) != nil {
			return dropBadRow
		}
		if len(messages) == 0 {
			return dropNoPrompt
		}
		for _, m := range messages {
			var j struct {
				Role string `json:"role"`
			}
			if json.Unmarshal(m, &j) != nil || j.Role == "" {
				return dropBadRow
			}
		}
		e.row.Turns = []Turn{{Messages: messages}}
		return ""
	}
	var text *string
	if json.Unmarshal(body["prompt"], &text) != nil || text == nil {
		return dropBadRow
	}
	if *text == "" {
		return dropNoPrompt
	}
	e.row.Text = *text
	return ""
}
