package benchmark

import (
	"encoding/json"
)

// bailianBlockTokens is what one hash id of a Qwen-Bailian trace stands for.
const bailianBlockTokens = 16

// traceRow is a row of lengths: Mooncake, Qwen-Bailian, and the keys that other tools use for the same.
type traceRow struct {
	at             stamp
	input, output  int // -1: not there
	ids, room      []int64
	chat           chatLink
	timed, badTime bool
}

// parseTrace reads lengths, arrival time and prefix block ids.
func parseTrace(text []byte, e *entry) string {
	r := traceRow{input: -1, output: -1, room: e.room}
	if !scanObject(text, r.field) {
		if drop := r.decode(text); drop != "" {
			return drop
		}
	}
	if r.input < 0 || r.output < 0 || r.badTime {
		return dropBadRow
	}
	if drop := lengthsProblem(r.input, r.output); drop != "" {
		return drop
	}
	e.row = Row{InputTokens: r.input, OutputTokens: r.output, HashIDs: r.ids}
	e.at, e.timed, e.chat = r.at, r.timed, r.chat
	return ""
}

// field takes one field of a flat row.
func (r *traceRow) field(key, value []byte) (ok bool) {
	switch string(key) {
	case "timestamp":
		r.at, ok = parseStamp(value)
		r.timed = ok
		return ok
	case "input_length", "input_tokens", "prompt_tokens":
		r.input, ok = countOf(value)
		return ok
	case "output_length", "output_tokens", "completion_tokens":
		r.output, ok = countOf(value)
		return ok
	case "hash_ids":
		r.ids, ok = integersOf(value, r.room)
		return ok
	case "chat_id":
		r.chat.id, r.chat.set = integerOf(value)
		return r.chat.set
	case "parent_chat_id":
		r.chat.parent, ok = integerOf(value)
		return ok
	}
	return value[0] != '['
}

// decode reads the row in the ordinary way, for what is not flat or not right.
func (r *traceRow) decode(text []byte) (drop string) {
	var j struct {
		Timestamp        json.RawMessage `json:"timestamp"`
		InputLength      *float64        `json:"input_length"`
		InputTokens      *float64        `json:"input_tokens"`
		PromptTokens     *float64        `json:"prompt_tokens"`
		OutputLength     *float64        `json:"output_length"`
		OutputTokens     *float64        `json:"output_tokens"`
		CompletionTokens *float64        `json:"completion_tokens"`
		HashIDs          []int64         `json:"hash_ids"`
		Chat             *int64          `json:"chat_id"`
		Parent           int64           `json:"parent_chat_id"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return badText(text)
	}
	*r = traceRow{input: -1, output: -1, ids: j.HashIDs}
	for _, n := range []*float64{j.InputLength, j.InputTokens, j.PromptTokens} {
		if n != nil && isCount(*n) {
			r.input = int(*n)
			break
		}
	}
	for _, n := range []*float64{j.OutputLength, j.OutputTokens, j.CompletionTokens} {
		if n != nil && isCount(*n) {
			r.output = int(*n)
			break
		}
	}
	r.at, r.timed, r.badTime = jsonStamp(j.Timestamp)
	if j.Chat != nil {
		r.chat = chatLink{id: *j.Chat, parent: j.Parent, set: true}
	}
	return ""
}

// jsonStamp reads an optional time.
func jsonStamp(text json.RawMessage) (s stamp, timed, bad bool) {
	if len(text) == 0 || string(text) == "null" {
		return stamp{}, false, false
	}
	s, timed = parseStamp(text)
	return s, timed, !timed
}

// matchTrace tells rows of lengths. The short names of other tools count only where no text stands
// beside them.
func matchTrace(s *sample) bool {
	if s.has("input_length", "output_length") {
		return true
	}
	return !matchPrompt(s) && (s.has("input_tokens", "output_tokens") || s.has("prompt_tokens", "completion_tokens") || s.has("prompt_tokens", "output_tokens"))
}
