package sglang

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// batchField is one number of a batch line.
type batchField uint8

const (
	fieldNewSeq batchField = iota
	fieldNewToken
	fieldCachedToken
	fieldUsage // of the full-attention pool where there are several
	fieldSWAUsage
	fieldMambaUsage
	fieldRunning
	fieldQueue
	fieldTokens
	fieldInTokS
	fieldGenTokS
	fieldAcceptLen
	fieldCount
)

// batchNames are the names of the numbers in Event.Values.
var batchNames = [fieldCount]string{
	"new_seq", "new_token", "cached_token", "token_usage", "swa_token_usage", "mamba_usage", "running", "queue", "tokens",
	"input_tok_s", "gen_tok_s", "accept_len",
}

// batch is one "Prefill batch" or "Decode batch" line taken apart. A busy server prints millions of
// them and nothing else, so they are read by hand, without the table and without memory of their
// own; what does not have exactly this shape goes through the table like any other line.
//
// The lines, from scheduler.py (0.4.6), scheduler_metrics_mixin.py (0.5.2) and metrics_reporter.py
// (0.5.15): "Decode batch" or "Prefill batch", an optional " [iteration]", "." or ",", then
// "name: value" pairs joined by ", ", sometimes with a comma at the end. Which pairs there are
// depends on the version, the model (hybrid pools), speculation and disaggregation.
type batch struct {
	decode bool
	has    uint16 // bit per field
	value  [fieldCount]float64
}

func (b *batch) kind() string {
	if b.decode {
		return "decode_batch"
	}
	return "prefill_batch"
}

func (b *batch) there(f batchField) bool { return b.has&(1<<f) != 0 }

// probe reports whether this is the one-token batch of a health check.
func (b *batch) probe() bool {
	return !b.decode && b.value[fieldNewToken]+b.value[fieldCachedToken] <= 1
}

// parse reads a whole message. It reports false, leaving rubbish in b, for anything else: a line cut
// in the middle, one that another process wrote into, another message.
func (b *batch) parse(msg []byte) bool {
	const prefill, decode = "Prefill batch", "Decode batch"
	var rest []byte
	switch {
	case len(msg) > len(decode) && string(msg[:len(decode)]) == decode:
		*b = batch{decode: true}
		rest = msg[len(decode):]
	case len(msg) > len(prefill) && string(msg[:len(prefill)]) == prefill:
		*b = batch{}
		rest = msg[len(prefill):]
	default:
		return false
	}
	for len(rest) > 0 && rest[len(rest)-1] >= utf8.RuneSelf { // what a broken pipe or a bad copy left
		rest = rest[:len(rest)-1]
	}
	if len(rest) > 2 && rest[0] == ' ' && rest[1] == '[' {
		end := 2
		for end < len(rest) && isDigit(rest[end]) {
			end++
		}
		if end == len(rest) || rest[end] != ']' {
			return false
		}
		rest = rest[end+1:]
	}
	if len(rest) < 2 || rest[0] != '.' && rest[0] != ',' || rest[1] != ' ' {
		return false
	}
	return b.pairs(rest[2:]) && b.complete()
}

// pairs reads "name: value, name: value".
func (b *batch) pairs(rest []byte) bool {
	for len(rest) > 0 {
		colon := bytes.IndexByte(rest, ':')
		if colon < 0 {
			return len(bytes.TrimLeft(rest, " ")) == 0
		}
		name, value := rest[:colon], rest[colon+1:]
		if end := bytes.IndexByte(value, ','); end >= 0 {
			value, rest = value[:end], value[end+1:]
			if len(rest) > 0 && rest[0] == ' ' {
				rest = rest[1:]
			}
		} else {
			rest = nil
		}
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		field := batchFieldOf(name)
		if field == fieldCount {
			if !isPlain(name) || !isPlain(value) {
				return false // another line begins in here, or a colour
			}
			continue
		}
		number, ok := decimal(value)
		if !ok {
			return false
		}
		if !b.there(field) {
			b.has |= 1 << field
			b.value[field] = number
		}
	}
	return true
}

// isPlain reports whether text is printable and opens no bracket.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '[' {
			return false
		}
	}
	return true
}

// complete reports whether the pairs that make the line worth something are there.
func (b *batch) complete() bool {
	need := uint16(1<<fieldNewSeq | 1<<fieldNewToken | 1<<fieldCachedToken | 1<<fieldQueue)
	if b.decode {
		need = 1<<fieldRunning | 1<<fieldGenTokS | 1<<fieldQueue
	}
	return b.has&need == need
}

func batchFieldOf(name []byte) batchField {
	switch string(name) { // does not allocate
	case "#new-seq":
		return fieldNewSeq
	case "#new-token":
		return fieldNewToken
	case "#cached-token":
		return fieldCachedToken
	case "token usage", "full token usage":
		return fieldUsage
	case "swa token usage":
		return fieldSWAUsage
	case "mamba usage":
		return fieldMambaUsage
	case "#running-req":
		return fieldRunning
	case "#queue-req":
		return fieldQueue
	case "#token", "#full token":
		return fieldTokens
	case "input throughput (token/s)":
		return fieldInTokS
	case "gen throughput (token/s)":
		return fieldGenTokS
	case "accept len":
		return fieldAcceptLen
	}
	return fieldCount
}

// event is the line as an Event without the Reader's part.
func (b *batch) event(f *frame) Event {
	ev := Event{Kind: b.kind(), Rank: f.rank, DP: f.dp, PP: f.pp, At: f.at(), Text: shortText(f.msg)}
	ev.Values = make(map[string]float64, 8)
	for field := range fieldCount {
		if b.there(field) {
			ev.Values[batchNames[field]] = b.value[field]
		}
	}
	return ev
}

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// decimal reads "12" or "0.87", as exactly as strconv: a mantissa below 2^53 and a power of ten up
// to 22 are both exact, so one division rounds right.
func decimal(text []byte) (float64, bool) {
	for len(text) > 0 && text[len(text)-1] == ' ' {
		text = text[:len(text)-1]
	}
	const exactDigits = 15
	if len(text) == 0 || len(text) > exactDigits+1 {
		return slowDecimal(text)
	}
	mantissa, point := uint64(0), -1
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			mantissa = mantissa*10 + uint64(c-'0')
		case c == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
	}
	switch {
	case point < 0 && len(text) > exactDigits:
		return slowDecimal(text)
	case point < 0:
		return float64(mantissa), true
	case len(text) == 1:
		return 0, false
	}
	return float64(mantissa) / powersOfTen[len(text)-1-point], true
}

// slowDecimal is decimal for figures of absurd length.
func slowDecimal(text []byte) (float64, bool) {
	for _, c := range text {
		if c != '.' && (c < '0' || c > '9') {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil && !math.IsInf(v, 0)
}
