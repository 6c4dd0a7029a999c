package benchmark

import (
	"encoding/json"
	"strings"
)

// assistant is the role whose answers the server gives.
const assistant = "assistant"

// RenderText writes a conversation as plain text, for an endpoint that takes no messages: each message on
// lines of its own as "role: content", and "assistant:" at the end, for the model to go on from. The text
// of a later turn begins with the text of the one before and the answer to it, so that the server's prefix
// cache holds it. Content in parts is joined; what is no text (images, calls of tools) is left out.
func RenderText(messages []json.RawMessage) string {
	var b strings.Builder
	last := ""
	for _, m := range messages {
		role, content := readMessage(m)
		b.WriteString(role)
		b.WriteByte(':')
		if role != assistant { // an answer stands right behind the colon, as the model wrote it
			b.WriteByte(' ')
		}
		b.WriteString(content)
		b.WriteByte('\n')
		last = role
	}
	if last != assistant {
		b.WriteString(assistant + ":")
	}
	return b.String()
}

// readMessage returns role and text of an OpenAI message. What is no message at all is taken for a user's words.
func readMessage(m json.RawMessage) (role, content string) {
	var fields struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(m, &fields) != nil {
		return "user", strings.TrimSpace(string(m))
	}
	if fields.Role == "" {
		fields.Role = "user"
	}
	return fields.Role, contentText(fields.Content)
}

// contentText is the text of a message's content: a string, or a list of parts.
func contentText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, raw := range parts {
		var part struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &text) == nil {
			b.WriteString(text)
		} else if json.Unmarshal(raw, &part) == nil {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// chatMessage is an OpenAI message object.
func chatMessage(role, content string) json.RawMessage {
	text, _ := json.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, content}) // two strings always have a JSON form
	return text
}

// chatStart stands before the words of a chat message. Some chat templates trim a message, and a word
// without the space before it is another token, or several; behind this it stays what it is. It is one more
// of the constant tokens that Calibration learns.
const chatStart = "."

// withHead puts a head before the content of the first message, so that nothing of the conversation is
// what was sent before. Messages it cannot be put into get it as a message of their own.
func withHead(messages []json.RawMessage, head string) []json.RawMessage {
	if len(messages) > 0 {
		if first, ok := headed(messages[0], head); ok {
			return append([]json.RawMessage{first}, messages[1:]...)
		}
	}
	return append([]json.RawMessage{chatMessage("user", head)}, messages...)
}

// headed is a message with a head before its content; all other fields stay.
func headed(m json.RawMessage, head string) (out json.RawMessage, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(m, &fields) != nil || fields == nil {
		return nil, false
	}
	var text string
	var parts []json.RawMessage
	var content any
	switch raw := fields["content"]; {
	case raw == nil:
		content = head
	case json.Unmarshal(raw, &text) == nil: // null too: the head alone
		content = head + "\n" + text
	case json.Unmarshal(raw, &parts) == nil:
		first, _ := json.Marshal(map[string]string{"type": "text", "text": head + "\n"}) // strings always have a JSON form
		content = append([]json.RawMessage{first}, parts...)
	default:
		return nil, false
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, false
	}
	fields["content"] = encoded
	out, err = json.Marshal(fields)
	return out, err == nil
}
