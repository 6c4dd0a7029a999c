package benchmark

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Why rows are dropped; the names are shown to the user.
const (
	dropBadJSON    = "bad_json"
	dropBadRow     = "bad_row" // JSON, but not a row of this format
	dropZeroInput  = "zero_input_tokens"
	dropZeroOutput = "zero_output_tokens"
	dropNoPrompt   = "empty_prompt"
)

// defaultOutputTokens is what a prompt without a length is answered with, as SGLang's own benchmark does.
const defaultOutputTokens = 256

// format is one kind of workload file with one JSON object per line.
type format struct {
	name    string
	example string
	keys    []string                                 // all of them in the first row: it is this format
	parse   func(line []byte) (row Row, drop string) // drop: reason, "" = use the row
}

// formats is the table detection goes through, in order.
var formats = []format{
	{
		name:    "mooncake",
		example: `{"timestamp":0,"input_length":6758,"output_length":500,"hash_ids":[0,1]}`,
		keys:    []string{"input_length", "output_length"},
		parse:   parseMooncake,
	},
	{
		name:    "prompts",
		example: `{"prompt":"Name a colour.","output_tokens":64}`,
		keys:    []string{"prompt"},
		parse:   parsePrompt,
	},
}

func formatNamed(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
}

func formatNames() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func exampleOf(how *format) string {
	if how != nil {
		return how.example
	}
	return formats[0].example
}

// detect finds the format by the keys of a row. A line that is no JSON object decides nothing (nil,
// nil); an object of no known format is an error.
func detect(line []byte) (*format, error) {
	keys := keysOf(line)
	if keys == nil {
		return nil, nil
	}
	for i := range formats {
		if hasAll(keys, formats[i].keys) {
			return &formats[i], nil
		}
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if plain := strconv.Quote(key); plain != `"`+key+`"` { // the message stays one line whatever the file holds
			key = plain
		}
		found = append(found, key[:min(len(key), 40)])
	}
	if len(found) > 8 {
		found = append(found[:8], "...")
	}
	return nil, fmt.Errorf("no known workload format has the keys %s; a row looks like %s or %s",
		shorten(strings.Join(found, ", "), 120), formats[0].example, formats[1].example)
}

func hasAll(keys map[string]json.RawMessage, wanted []string) bool {
	for _, k := range wanted {
		if _, ok := keys[k]; !ok {
			return false
		}
	}
	return true
}

// parseMooncake reads lengths and prefix block ids. Timestamps play no part in a closed loop.
func parseMooncake(line []byte) (Row, string) {
	var r struct {
		Input   *float64 `json:"input_length"`
		Output  *float64 `json:"output_length"`
		HashIDs []int64  `json:"hash_ids"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return Row{}, jsonProblem(line)
	}
	if r.Input == nil || r.Output == nil || !isCount(*r.Input) || !isCount(*r.Output) {
		return Row{}, dropBadRow
	}
	if *r.Input == 0 {
		return Row{}, dropZeroInput
	}
	if *r.Output == 0 {
		return Row{}, dropZeroOutput
	}
	return Row{InputTokens: int(*r.Input), OutputTokens: int(*r.Output), HashIDs: r.HashIDs}, ""
}

// parsePrompt reads a text and how many tokens to answer.
func parsePrompt(line []byte) (Row, string) {
	var r struct {
		Prompt *string  `json:"prompt"`
		Output *float64 `json:"output_tokens"`
		Max    *float64 `json:"max_tokens"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return Row{}, jsonProblem(line)
	}
	if r.Prompt == nil {
		return Row{}, dropBadRow
	}
	if *r.Prompt == "" {
		return Row{}, dropNoPrompt
	}
	output := float64(defaultOutputTokens)
	if r.Output != nil {
		output = *r.Output
	} else if r.Max != nil {
		output = *r.Max
	}
	if !isCount(output) {
		return Row{}, dropBadRow
	}
	if output == 0 {
		return Row{}, dropZeroOutput
	}
	return Row{OutputTokens: int(output), Text: *r.Prompt}, ""
}

// maxTokens is more than any model's context: a length above it is no length.
const maxTokens = 100_000_000

// isCount reports whether a JSON number is a plausible number of tokens.
func isCount(n float64) bool { return n >= 0 && n <= maxTokens && n == float64(int(n)) }

// jsonProblem tells a broken line from a good one that is no row of the format.
func jsonProblem(line []byte) string {
	if json.Valid(line) {
		return dropBadRow
	}
	return dropBadJSON
}

// shorten cuts a text for a message.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
