package benchmark

import (
	"encoding/json"
	"time"
)

// Row is one entry of a workload: lengths (with prefix block ids), a text, or a conversation. Exactly one
// of InputTokens, Text and Turns says what is sent.
type Row struct {
	Number       int             // position in the file, from 0
	At           time.Duration   // arrival after the workload's first one; 0 where Workload.Timed is false
	InputTokens  int             // wanted; 0 for a text of unknown length
	OutputTokens int             // wanted; of all turns together for a conversation
	HashIDs      []int64         // ids of the prefix blocks, nil when the file has none
	Text         string          // prompt text, "" for rows of lengths and conversations
	Turns        []Turn          // what is asked one after the other, each with the server's answers so far
	Session      string          // the JSON text of the conversation's id (10, "s-a"), "" without one
	Follows      bool            // it is sent when the session's previous row has ended, not at a time of its own
	Pause        time.Duration   // between the end of the previous row of the session and this one
	Path         string          // endpoint the file names (/v1/chat/completions), "" when it names none
	Extra        json.RawMessage // object of further body fields the file wants passed on, nil without
	Open         bool            // the file says no output length (of a conversation: of one of its turns): OutputTokens is our choice
	Err          error           // why the row could not be read again from a file that changed; only Number is set then
}

// Turn is one request of a conversation: the messages that are new since the last answer.
type Turn struct {
	Messages     []json.RawMessage // OpenAI message objects; an assistant's only in a row of one turn that brings its own history
	OutputTokens int               // wanted
	Open         bool              // the file says no output length: OutputTokens is our choice
}

// bytesPerToken estimates the length of a text nobody has tokenized: English prose has about four
// bytes per token in the byte-level BPE vocabularies.
const bytesPerToken = 4

// Input is the row's prompt length in tokens; for a text or a conversation it is an estimate, the latter
// without the answers that come between its turns.
func (r Row) Input() int {
	if r.InputTokens > 0 {
		return r.InputTokens
	}
	bytes := len(r.Text)
	for _, t := range r.Turns {
		for _, m := range t.Messages {
			bytes += len(m)
		}
	}
	if bytes == 0 {
		return 0
	}
	return bytes/bytesPerToken + 1
}

// Requests is how many requests the row becomes: one for each turn.
func (r Row) Requests() int { return max(1, len(r.Turns)) }
