package benchmark

import "encoding/json"

// promptKeys are the names a prompt's text goes by, the first of a row counts.
var promptKeys = []string{"prompt", "instruction", "question", "text"}

// matchPrompt tells rows with a text under one of the usual names.
func matchPrompt(s *sample) bool {
	for _, key := range promptKeys {
		if s.has(key) {
			return true
		}
	}
	return false
}

// parsePrompt reads a text and how many tokens to answer.
func parsePrompt(text []byte, e *entry) string {
	var r struct {
		Prompt       *string  `json:"prompt"`
		Instruction  *string  `json:"instruction"`
		Question     *string  `json:"question"`
		Text         *string  `json:"text"`
		OutputTokens *float64 `json:"output_tokens"`
		OutputLength *float64 `json:"output_length"`
		OutputCount  *float64 `json:"output_tokens_count"` // guidellm
		MaxTokens    *float64 `json:"max_tokens"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return badText(text)
	}
	prompt := first(r.Prompt, r.Instruction, r.Question, r.Text)
	if prompt == nil {
		return dropBadRow
	}
	if *prompt == "" {
		return dropNoPrompt
	}
	output, open, drop := outputOf(first(r.OutputTokens, r.OutputLength, r.OutputCount, r.MaxTokens))
	e.row = Row{OutputTokens: output, Text: *prompt, Open: open}
	return drop
}

// first is the first that is there, nil without any.
func first[T any](values ...*T) *T {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// outputOf is the wanted output length; open when the file says none.
func outputOf(said *float64) (tokens int, open bool, drop string) {
	switch {
	case said == nil:
		return defaultOutputTokens, true, ""
	case !isCount(*said):
		return 0, false, dropBadRow
	case *said == 0:
		return 0, false, dropZeroOutput
	}
	return int(*said), false, ""
}

// matchTurns tells MT-bench questions.
func matchTurns(s *sample) bool {
	var turns []string
	return s.has("turns") && json.Unmarshal(s.keys["turns"], &turns) == nil
}

// parseTurns reads the user's messages of a conversation.
func parseTurns(text []byte, e *entry) string {
	var r struct {
		Turns []string `json:"turns"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return badText(text)
	}
	for _, t := range r.Turns {
		if t == "" {
			return dropNoPrompt
		}
		content, err := json.Marshal(t)
		if err != nil {
			return dropBadRow
		}
		e.row.Turns = append(e.row.Turns, Turn{
			Messages: []json.RawMessage{messageObject("user", content)}, OutputTokens: defaultOutputTokens, Open: true,
		})
	}
	return e.settleTurns()
}

// settleTurns fills in what the turns say about the row.
func (e *entry) settleTurns() string {
	if len(e.row.Turns) == 0 {
		return dropNoUser
	}
	for _, t := range e.row.Turns {
		e.row.OutputTokens += t.OutputTokens
		e.row.Open = e.row.Open || t.Open
	}
	return ""
}

// messageObject is an OpenAI message; content is JSON.
func messageObject(role string, content json.RawMessage) json.RawMessage {
	m := make(json.RawMessage, 0, len(role)+len(content)+24)
	m = append(m, `{"role":"`...)
	m = append(m, role...)
	m = append(m, `","content":`...)
	m = append(m, content...)
	return append(m, '}')
}
