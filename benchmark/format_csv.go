package benchmark

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// csvColumns names the columns of a CSV format; they are found by name, never by position.
type csvColumns struct {
	format, time, input, output, session string
	timeOptional                         bool
}

var csvFormats = []csvColumns{
	{format: "azure", time: "TIMESTAMP", input: "ContextTokens", output: "GeneratedTokens"},
	{format: "burstgpt", time: "Timestamp", input: "Request tokens", output: "Response tokens", session: "Session ID"},
	{format: "vidur", time: "arrived_at", input: "num_prefill_tokens", output: "num_decode_tokens", timeOptional: true},
	{format: "trace", time: "timestamp", input: "input_length", output: "output_length", timeOptional: true},
	// The same under the names that rows of JSON may have too, and guidellm's.
	{format: "trace", time: "timestamp", input: "input_tokens", output: "output_tokens", timeOptional: true},
	{format: "trace", time: "timestamp", input: "prompt_tokens", output: "completion_tokens", timeOptional: true},
	{format: "trace", time: "timestamp", input: "prompt_tokens", output: "output_tokens", timeOptional: true},
	{format: "trace", time: "timestamp", input: "prompt_tokens_count", output: "output_tokens_count", timeOptional: true},
}

// csvParser reads the rows under a header.
type csvParser struct {
	time, input, output, session int // columns, -1 for one that isn't there
	date                         bool
}

// csvHeader finds the format whose columns a header has; "" for any format.
func csvHeader(header []byte, format string) (name string, parse parser, ok bool) {
	names := splitCSV(header, nil)
	for i, n := range names {
		names[i] = bytes.TrimSpace(n)
	}
	for _, c := range csvFormats {
		p := csvParser{
			time: column(names, c.time), input: column(names, c.input), output: column(names, c.output), session: column(names, c.session),
			date: c.format == "azure",
		}
		if (format == "" || format == c.format) && p.input >= 0 && p.output >= 0 && (p.time >= 0 || c.timeOptional) {
			return c.format, p.parse, true
		}
	}
	return "", nil, false
}

func column(names [][]byte, name string) int {
	if name == "" {
		return -1
	}
	return slices.IndexFunc(names, func(n []byte) bool { return strings.EqualFold(string(n), name) })
}

func (p csvParser) parse(text []byte, e *entry) string {
	var room [16][]byte
	fields := splitCSV(text, room[:0])
	get := func(i int) []byte {
		if i < 0 || i >= len(fields) {
			return nil
		}
		return bytes.TrimSpace(fields[i])
	}
	input, okIn := countOf(get(p.input))
	output, okOut := countOf(get(p.output))
	if !okIn || !okOut {
		return dropBadRow
	}
	if drop := lengthsProblem(input, output); drop != "" {
		return drop
	}
	e.row = Row{InputTokens: input, OutputTokens: output}
	if p.time >= 0 {
		if p.date {
			e.at, e.timed = parseDate(get(p.time))
		} else {
			e.at, e.timed = parseStamp(get(p.time))
		}
		if !e.timed {
			return dropBadRow
		}
	}
	if session := get(p.session); len(session) > 0 {
		text, err := json.Marshal(string(session))
		if err != nil {
			return dropBadRow
		}
		e.row.Session = string(text)
	}
	return ""
}

// splitCSV splits a line at its commas; a quoted field may hold commas. The fields are valid as long as
// the line.
func splitCSV(line []byte, fields [][]byte) [][]byte {
	fields = fields[:0]
	if bytes.IndexByte(line, '"') >= 0 {
		record, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			return nil
		}
		for _, f := range record {
			fields = append(fields, []byte(f))
		}
		return fields
	}
	for {
		i := bytes.IndexByte(line, ',')
		if i < 0 {
			return append(fields, line)
		}
		fields = append(fields, line[:i])
		line = line[i+1:]
	}
}

// csvProblem says what a header is not.
func csvProblem(header []byte) error {
	return fmt.Errorf("neither JSON nor a known CSV header: %q; a header looks like %s, or has the columns of burstgpt, vidur or timestamp,input_length,output_length",
		shorten(string(header), 80), csvLayout("azure", nil).format.example)
}
