package sglang

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonLogStart begins every line of Docker's json-file driver:
// {"log":"text\n","stream":"stderr","time":"2026-11-29T14:08:17.123Z"}. Tools that write it again put
// spaces in.
const jsonLogStart = `{"log":`

// jsonRecord is what such a line holds.
type jsonRecord struct {
	text    []byte
	stream  int  // 0 stdout, 1 stderr
	partial bool // the line goes on in the next record of the stream: Docker cuts at 16 KiB
}

// jsonLog takes the text out of a record and appends it to into.
func jsonLog(line, into []byte) (jsonRecord, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(jsonLogStart))
	if !ok {
		return jsonRecord{}, false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte(`"`)); !ok {
		return jsonRecord{}, false
	}
	record := jsonRecord{text: into}
	for i := 0; i < len(rest); {
		switch c := rest[i]; c {
		case '"':
			text, whole := bytes.CutSuffix(record.text, []byte("\n"))
			record.text, record.partial = text, !whole
			if bytes.Contains(rest[i:], []byte(`"stderr"`)) {
				record.stream = 1
			}
			return record, true
		case '\\':
			n := 0
			if record.text, n = unescape(rest[i:], record.text); n == 0 {
				return record, true // cut in the middle of an escape
			}
			i += n
		default:
			record.text = append(record.text, c)
			i++
		}
	}
	return record, true // the record has no end; what there is of it counts
}

// unescape reads one escape sequence of JSON and returns its length, 0 when it is broken.
func unescape(text, into []byte) ([]byte, int) {
	if len(text) < 2 {
		return into, 0
	}
	const plain, meaning = `nrtbf"\/`, "\n\r\t\b\f\"\\/"
	if i := bytes.IndexByte([]byte(plain), text[1]); i >= 0 {
		return append(into, meaning[i]), 2
	}
	const long = len(`\u0000`)
	r, ok := hexRune(text)
	if !ok {
		return into, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := hexRune(text[long:]); ok {
			return utf8.AppendRune(into, utf16.DecodeRune(r, low)), 2 * long
		}
	}
	return utf8.AppendRune(into, r), long
}

// hexRune reads `\u001b`.
func hexRune(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(v), err == nil
}
