package benchmark

import (
	"bytes"
	"encoding/json"
)

// Files of recorded conversations: ShareGPT, SpecForge (EAGLE-3 training data), SGLang's custom and
// agentic ones. What the assistant said is thrown away: the server answers anew, turn by turn.

// message is one message of a recorded conversation.
type message struct {
	role    string          // system, user, tool, assistant
	raw     json.RawMessage // as an OpenAI message
	content json.RawMessage // a string mostly
	bytes   int             // of what was said: text, reasoning and tool calls
}

// roles maps the names that files use to OpenAI's.
var roles = map[string]string{
	"human": "user", "user": "user", "system": "system", "developer": "system", "tool": "tool", "function": "tool", "observation": "tool",
	"gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant", "model": "assistant", "bot": "assistant", "bing": "assistant",
	"bard": "assistant", "claude": "assistant", "function_call": "assistant",
}

// messageFields are the fields of a message that matter here.
type messageFields struct {
	Role      string          `json:"role"`
	From      string          `json:"from"`
	Content   json.RawMessage `json:"content"`
	Value     json.RawMessage `json:"value"`
	Reasoning string          `json:"reasoning_content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// text is what is said, under either of the two keys; empty without any.
func (f *messageFields) text() json.RawMessage {
	if len(f.Content) > 0 {
		return f.Content
	}
	return f.Value
}

// message is the message without its other fields; ok is false when nobody says it, or it says nothing.
func (f *messageFields) message() (m message, ok bool) {
	name := f.Role
	if name == "" {
		name = f.From
	}
	m.content = f.text()
	if m.role, ok = roles[name]; !ok || len(m.content) == 0 && len(f.ToolCalls) == 0 {
		return message{}, false
	}
	if len(m.content) == 0 {
		m.content = json.RawMessage("null")
	}
	m.raw = messageObject(m.role, m.content)
	m.bytes = textBytes(m.content) + len(f.Reasoning) + len(f.ToolCalls)
	return m, true
}

// wholeMessage is a message with all its fields, as far as it is an OpenAI message already.
func wholeMessage(raw json.RawMessage) (m message, ok bool) {
	var f messageFields
	if json.Unmarshal(raw, &f) != nil {
		return message{}, false
	}
	if m, ok = f.message(); ok && f.Role == m.role {
		m.raw = raw
	}
	return m, ok
}

// textBytes is the length of a JSON string's text, near enough for an estimate of tokens: an escape counts
// as one byte. Of another value it is the length of its JSON.
func textBytes(value json.RawMessage) int {
	if len(value) < 2 || value[0] != '"' {
		return len(value)
	}
	n := 0
	for i := 1; i < len(value)-1; i++ {
		if value[i] == '\\' {
			if i++; value[i] == 'u' {
				i += 4
			}
		}
		n++
	}
	return n
}

// tokens estimates the length of what was said.
func (m message) tokens() int { return m.bytes/bytesPerToken + 1 }

// conversationFields reads the messages of a row, under either of the two keys.
func conversationFields(text []byte) (said []messageFields, drop string) {
	var j struct {
		Conversations []messageFields `json:"conversations"`
		Conversation  []messageFields `json:"conversation"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, badText(text)
	}
	if j.Conversations == nil {
		return j.Conversation, ""
	}
	return j.Conversations, ""
}

// conversation reads the messages of a row and who says them.
func conversation(text []byte) (messages []message, drop string) {
	said, drop := conversationFields(text)
	for i := range said {
		m, ok := said[i].message()
		if !ok {
			return nil, dropBadRow
		}
		messages = append(messages, m)
	}
	return messages, drop
}

// wholeConversation reads the messages of a row with all their fields, and its tools.
func wholeConversation(text []byte) (messages []message, tools json.RawMessage, drop string) {
	var j struct {
		Conversations []json.RawMessage `json:"conversations"`
		Conversation  []json.RawMessage `json:"conversation"`
		Tools         json.RawMessage   `json:"tools"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, nil, badText(text)
	}
	if j.Conversations == nil {
		j.Conversations = j.Conversation
	}
	for _, raw := range j.Conversations {
		m, ok := wholeMessage(raw)
		if !ok {
			return nil, nil, dropBadRow
		}
		messages = append(messages, m)
	}
	return messages, j.Tools, ""
}

// turnsOf cuts a conversation before each answer: a turn is what was said since the last one.
func turnsOf(messages []message) []Turn {
	var turns []Turn
	var said []json.RawMessage
	asked := false // somebody waits for an answer
	for _, m := range messages {
		if m.role != "assistant" {
			said = append(said, m.raw)
			asked = asked || m.role != "system"
		} else if asked {
			turns = append(turns, Turn{Messages: said, OutputTokens: m.tokens()})
			said, asked = nil, false
		}
	}
	if asked {
		turns = append(turns, Turn{Messages: said, OutputTokens: defaultOutputTokens, Open: true})
	}
	return turns
}

// parseShareGPT reads a conversation of at least two messages, as every reader of this format wants.
// What the assistant says before anybody asked is left out.
func parseShareGPT(text []byte, e *entry) string {
	messages, drop := conversation(text)
	if drop != "" {
		return drop
	}
	if len(messages) < 2 {
		return dropFewMessages
	}
	e.row = Row{Turns: turnsOf(messages)}
	return e.settleTurns()
}

// parseSpecForge reads a conversation with its tools. One that begins with an answer is an error of the
// file, to the jobs that read this format too.
func parseSpecForge(text []byte, e *entry) string {
	messages, tools, drop := wholeConversation(text)
	if drop != "" {
		return drop
	}
	for _, m := range messages {
		if m.role == "assistant" {
			return dropAssistant
		}
		if m.role != "system" {
			break
		}
	}
	e.row = Row{Turns: turnsOf(messages)}
	if len(tools) > 0 && !bytes.Equal(tools, []byte("null")) {
		extra := append(json.RawMessage(`{"tools":`), tools...)
		e.row.Extra = append(extra, '}')
	}
	return e.settleTurns()
}

// parseCustom reads SGLang's custom rows: message 0 is the prompt, message 1 tells how long the answer is. Who
// says them does not matter, and need not be there.
func parseCustom(text []byte, e *entry) string {
	said, drop := conversationFields(text)
	if drop != "" {
		return drop
	}
	if len(said) < 2 {
		return dropFewMessages
	}
	var prompt string
	if json.Unmarshal(said[0].text(), &prompt) != nil || len(said[1].text()) == 0 {
		return dropBadRow
	}
	if prompt == "" {
		return dropNoPrompt
	}
	e.row = Row{Text: prompt, OutputTokens: message{bytes: textBytes(said[1].text())}.tokens()}
	return ""
}

// agenticOutputTokens is what SGLang's benchmark asks for in a turn of an agentic trace.
const agenticOutputTokens = 220

// parseAgentic reads a conversation of an agentic trace: a list of turns with the messages that are new.
func parseAgentic(text []byte, e *entry) string {
	var j []struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return badText(text)
	}
	e.row = Row{}
	for _, t := range j {
		turn := Turn{OutputTokens: agenticOutputTokens, Open: true}
		for _, raw := range t.Messages {
			m, ok := wholeMessage(raw)
			if !ok {
				return dropBadRow
			}
			if m.role != "assistant" {
				turn.Messages = append(turn.Messages, m.raw)
			}
		}
		if len(turn.Messages) > 0 {
			e.row.Turns = append(e.row.Turns, turn)
		}
	}
	return e.settleTurns()
}

// matchConversation tells rows with a list of messages under the keys of recorded conversations.
func matchConversation(s *sample) bool { return s.has("conversations") || s.has("conversation") }

// matchSpecForge and matchShareGPT tell rows that have an id or stand in an array; SGLang's custom rows
// have neither.
func matchSpecForge(s *sample) bool {
	return matchConversation(s) && (s.has("id") || s.array) && s.speaks("role")
}

func matchShareGPT(s *sample) bool {
	return matchConversation(s) && (s.has("id") || s.array) && s.speaks("from")
}

// speaks reports whether the sample's first conversation names its speakers under the key.
func (s *sample) speaks(key string) bool {
	list := s.keys["conversations"]
	if list == nil {
		list = s.keys["conversation"]
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(list, &messages) != nil || len(messages) == 0 {
		return false
	}
	return messages[0][key] != nil
}
