package benchmark

import (
	"encoding/json"
	"strings"
)

// Why rows are dropped; the names are shown to the user.
const (
	dropBadJSON     = "bad_json"
	dropBadRow      = "bad_row" // JSON, but not a row of this format
	dropZeroInput   = "zero_input_tokens"
	dropZeroOutput  = "zero_output_tokens"
	dropNoPrompt    = "empty_prompt"
	dropFewMessages = "fewer_than_2_messages"
	dropAssistant   = "starts_with_assistant"
	dropNoUser      = "no_user_message"
)

// defaultOutputTokens is what a prompt without a length is answered with, as SGLang's own benchmark does.
const defaultOutputTokens = 256

// Units of the times in a file.
const (
	unitSeconds = "s"
	unitMillis  = "ms"
	unitGuess   = "guess" // told by the values
	unitDate    = "date"  // wall time
)

// entry is what a format's parser finds in one row, in the file's own units.
type entry struct {
	row   Row
	at    stamp
	timed bool
	pause stamp // before the row, where it follows another
	chat  chatLink
	room  []int64 // where the ids may go, nil for a place of their own
}

// chatLink is a Bailian row's place in its conversation: a chain of rows, each naming the one before it.
type chatLink struct {
	id, parent int64
	set        bool
}

// parser reads one row. drop is why it can't be used, "" when it can. The text is not kept.
type parser func(text []byte, e *entry) (drop string)

// format is one kind of workload file.
type format struct {
	name     string
	example  string
	unit     string // of its times, "" without any
	block    int    // tokens a hash id usually stands for
	outputs  bool   // wanted outputs are estimated from recorded answers
	sessions bool   // rows may wait for the row before them in their session
	csv      bool   // rows of comma-separated values under a header; otherwise JSON objects
	match    func(s *sample) bool
	parse    parser // JSON formats
}

// formats is the table detection goes through, in order.
func formats() []format {
	return []format{
		{
			name:    "openai-batch",
			example: `{"custom_id":"r-1","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"Name a colour."}],"max_tokens":16}}`,
			match:   matchBatch, parse: parseBatch,
		},
		{
			name: "mtbench", example: `{"question_id":1,"turns":["Name a colour.","Another?"]}`,
			match: matchTurns, parse: parseTurns,
		},
		{
			name: "agentic", example: `{"conversations":[[{"messages":[{"role":"user","content":"List files."}]}]]}`,
			match: func(s *sample) bool { return s.arrays }, parse: parseAgentic,
		},
		{
			name: "specforge", example: `{"id":"p-1","conversations":[{"role":"user","content":"Name a colour."}]}`,
			outputs: true, match: matchSpecForge, parse: parseSpecForge,
		},
		{
			name: "sharegpt", example: `[{"id":"a","conversations":[{"from":"human","value":"Name a colour."},{"from":"gpt","value":"Blue."}]}]`,
			outputs: true, match: matchShareGPT, parse: parseShareGPT,
		},
		{
			name: "sglang-custom", example: `{"conversations":[{"role":"user","content":"Name a colour."},{"role":"assistant","content":"Blue."}]}`,
			outputs: true, match: matchConversation, parse: parseCustom,
		},
		{
			name: "aiperf", example: `{"session_id":"s1","timestamp":0,"input_length":300,"output_length":40}`, unit: unitMillis, block: defaultBlockTokens,
			sessions: true, match: matchAIPerf, parse: parseAIPerf,
		},
		{
			name: "openai", example: `{"messages":[{"role":"user","content":"Name a colour."}],"max_tokens":16}`,
			match: func(s *sample) bool { return s.has("messages") }, parse: parseOpenAI,
		},
		{
			name: "bailian", example: `{"chat_id":1,"parent_chat_id":-1,"timestamp":0.5,"input_length":521,"output_length":132,"turn":1,"hash_ids":[0,1]}`,
			unit: unitSeconds, block: bailianBlockTokens,
			match: func(s *sample) bool { return s.has("chat_id", "input_length", "output_length") }, parse: parseTrace,
		},
		{
			name: "mooncake", example: `{"timestamp":0,"input_length":6758,"output_length":500,"hash_ids":[0,1]}`, unit: unitMillis, block: defaultBlockTokens,
			match: func(s *sample) bool { return s.has("input_length", "output_length", "hash_ids") }, parse: parseTrace,
		},
		{
			name: "trace", example: `{"timestamp":0,"input_length":100,"output_length":10}`, unit: unitGuess, block: defaultBlockTokens,
			match: matchTrace, parse: parseTrace,
		},
		{
			name: "prompts", example: `{"prompt":"Name a colour.","output_tokens":64}`,
			match: matchPrompt, parse: parsePrompt,
		},
		{name: "azure", csv: true, example: "TIMESTAMP,ContextTokens,GeneratedTokens", unit: unitDate},
		{name: "burstgpt", csv: true, example: "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", unit: unitSeconds},
		{name: "vidur", csv: true, example: "arrived_at,num_prefill_tokens,num_decode_tokens", unit: unitSeconds},
		{name: "trace", csv: true, example: "timestamp,input_length,output_length", unit: unitGuess},
	}
}

func formatNames() string {
	var names []string
	for _, f := range formats() {
		if !f.csv || f.name != "trace" {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

// maxTokens is more than any model's context: a length above it is no length.
const maxTokens = 100_000_000

// isCount reports whether a JSON number is a plausible number of tokens.
func isCount(n float64) bool { return n >= 0 && n <= maxTokens && n == float64(int(n)) }

// badText tells a broken row from a good one that is no row of the format.
func badText(text []byte) string {
	if json.Valid(text) {
		return dropBadRow
	}
	return dropBadJSON
}

// lengthsProblem is why lengths can't be used, "" when they can.
func lengthsProblem(input, output int) string {
	switch {
	case input == 0:
		return dropZeroInput
	case output == 0:
		return dropZeroOutput
	}
	return ""
}

// shorten cuts a text for a message.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
