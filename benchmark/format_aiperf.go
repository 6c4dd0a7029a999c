package benchmark

import "encoding/json"

// matchAIPerf tells Mooncake rows with AIPerf's additions.
func matchAIPerf(s *sample) bool {
	if s.has("body") {
		return false
	}
	if s.has("payload") || s.has("text_input") {
		return true
	}
	sent := s.has("input_length") || s.has("messages")
	return sent && (s.has("session_id") || s.has("delay")) || s.has("messages", "timestamp") || s.has("messages", "output_length")
}

// parseAIPerf reads a Mooncake row that may be a turn of a session (session_id; delay: how long after the
// turn before it has ended), and that has a text, messages or a whole body in place of a length. Exactly
// one of the four must be there.
func parseAIPerf(text []byte, e *entry) string {
	var j struct {
		Session   json.RawMessage   `json:"session_id"`
		Timestamp json.RawMessage   `json:"timestamp"`
		Delay     json.RawMessage   `json:"delay"`
		Input     *float64          `json:"input_length"`
		Output    *float64          `json:"output_length"`
		Text      *string           `json:"text_input"`
		Messages  []json.RawMessage `json:"messages"`
		Payload   json.RawMessage   `json:"payload"`
		HashIDs   []int64           `json:"hash_ids"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return badText(text)
	}
	var payload map[string]json.RawMessage
	if len(j.Payload) > 0 && json.Unmarshal(j.Payload, &payload) != nil {
		return dropBadRow
	}
	sources := 0
	for _, there := range []bool{j.Input != nil, j.Text != nil, j.Messages != nil, payload != nil} {
		if there {
			sources++
		}
	}
	if sources != 1 {
		return dropBadRow
	}
	if drop := e.content(j.Input, j.Text, j.Messages, payload); drop != "" {
		return drop
	}
	if j.Output != nil || payload == nil {
		output, open, drop := outputOf(j.Output)
		if drop != "" {
			return drop
		}
		e.answer(output, open)
	}
	if e.row.InputTokens > 0 {
		e.row.HashIDs = j.HashIDs
	}
	return e.order(j.Session, j.Timestamp, j.Delay)
}

// content takes what is sent.
func (e *entry) content(input *float64, text *string, messages []json.RawMessage, payload map[string]json.RawMessage) string {
	switch {
	case input != nil:
		if !isCount(*input) {
			return dropBadRow
		}
		e.row = Row{InputTokens: int(*input)}
		return lengthsProblem(e.row.InputTokens, 1)
	case text != nil:
		e.row = Row{Text: *text}
		if *text == "" {
			return dropNoPrompt
		}
		return ""
	case messages != nil:
		raw, err := json.Marshal(messages)
		if err != nil {
			return dropBadRow
		}
		return e.request(map[string]json.RawMessage{"messages": raw}, "")
	}
	return e.request(payload, "")
}

// answer sets the wanted output.
func (e *entry) answer(tokens int, open bool) {
	e.row.OutputTokens, e.row.Open = tokens, open
	if len(e.row.Turns) > 0 {
		e.row.Turns[0].OutputTokens, e.row.Turns[0].Open = tokens, open
	}
}

// order takes when the row is sent: at its time, or after the turn before it.
func (e *entry) order(session, timestamp, delay json.RawMessage) string {
	if len(session) > 0 && string(session) != "null" {
		e.row.Session = string(session)
	}
	var bad bool
	if e.at, e.timed, bad = jsonStamp(timestamp); bad {
		return dropBadRow
	}
	pause, delayed, bad := jsonStamp(delay)
	if bad || pause.whole < 0 {
		return dropBadRow
	}
	e.row.Follows = e.row.Session != "" && (delayed || !e.timed) // the first of a session doesn't: the reader sees to that
	e.pause = pause
	return ""
}
