package sglang

import (
	"bytes"
	"time"
)

// frame is a log line taken out of what stands around it: who printed it, when, and the message.
type frame struct {
	prefixed     bool   // the "[time ranks] " of SGLang's logger was there
	stamp        []byte // its "2026-11-29 14:08:17"
	rank, dp, pp int    // -1 when not named
	source       uint32 // tells apart writers whose lines are mixed (see wrap); 0 when not known
	msg          []byte
}

const stampShape = "[0000-00-00 00:00:00"

// at is the time in the frame: the server's clock, without a zone and a fraction.
func (f *frame) at() time.Time {
	s := f.stamp
	if len(s) < len(stampShape)-1 {
		return time.Time{}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	year, month, day, hour, minute, second := two(0)*100+two(2), two(5), two(8), two(11), two(14), two(17)
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if t.Day() != day || t.Month() != time.Month(month) || t.Hour() != hour || t.Minute() != minute || t.Second() != second {
		return time.Time{} // no such date
	}
	return t
}

// open takes SGLang's own "[2026-11-29 14:08:17 TP3] " or "[2026-11-29 14:08:17.123 DP1 PP0 TP3 EP3] "
// off a line (srt/utils/common.py, configure_logger). It reports false when the line has none.
func (f *frame) open(line []byte) bool {
	if !isStamp(line) {
		return false
	}
	const farthest = 96 // a stamp and the ranks of every kind of parallelism
	head := line[:min(len(line), farthest)]
	end := bytes.IndexByte(head, ']')
	if end < 0 {
		return false
	}
	f.prefixed, f.stamp = true, line[1:len(stampShape)]
	f.ranks(line[len(stampShape):end])
	f.msg = line[end+1:]
	if len(f.msg) > 0 && f.msg[0] == ' ' {
		f.msg = f.msg[1:]
	}
	return true
}

// ranks reads " DP1 PP0 TP3 EP3".
func (f *frame) ranks(text []byte) {
	for i := 0; i+2 < len(text); i++ {
		if text[i] != ' ' {
			continue
		}
		var to *int
		switch string(text[i+1 : i+3]) {
		case "TP":
			to = &f.rank
		case "DP":
			to = &f.dp
		case "PP":
			to = &f.pp
		default:
			continue
		}
		if n, ok := leadingInt(text[i+3:]); ok {
			*to = n
		}
	}
}

// leadingInt reads the digits at the start of text; it refuses what no rank or pid can be.
func leadingInt(text []byte) (int, bool) {
	n, digits := 0, 0
	for digits < len(text) && isDigit(text[digits]) {
		n = n*10 + int(text[digits]-'0')
		if digits++; digits > 9 {
			return 0, false
		}
	}
	return n, digits > 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isStamp reports whether line starts with "[dddd-dd-dd dd:dd:dd".
func isStamp(line []byte) bool {
	return len(line) >= len(stampShape) && line[0] == '[' && shaped(line, stampShape)
}

// shaped reports whether text starts like shape, in which 0 stands for any digit.
func shaped[T string | []byte](text T, shape string) bool {
	if len(text) < len(shape) {
		return false
	}
	for i := range len(shape) {
		if c := text[i]; shape[i] == '0' {
			if c < '0' || c > '9' {
				return false
			}
		} else if c != shape[i] {
			return false
		}
	}
	return true
}

// isDirty reports whether a line holds terminal sequences, or the NUL bytes of a log that was
// truncated while it was written.
func isDirty(line []byte) bool {
	return bytes.IndexByte(line, '\x1b') >= 0 || bytes.IndexByte(line, 0) >= 0
}

// appendClean appends line to into without terminal sequences and NUL bytes.
func appendClean(into, line []byte) []byte {
	for len(line) > 0 {
		switch line[0] {
		case 0:
			line = line[1:]
		case '\x1b':
			line = line[sequenceLen(line):]
		default:
			into = append(into, line[0])
			line = line[1:]
		}
	}
	return into
}

// sequenceLen is the length of the terminal sequence at the start of text: a colour or a cursor
// movement, a window title, a choice of characters, or a lone escape byte.
func sequenceLen(text []byte) int {
	if len(text) < 2 {
		return 1
	}
	switch text[1] {
	case '[': // ends with a letter or the like
		for i := 2; i < len(text); i++ {
			if text[i] >= '@' && text[i] <= '~' {
				return i + 1
			}
		}
		return len(text)
	case ']': // ends with BEL or ESC \
		const longest = 256
		head := text[:min(len(text), longest)]
		if end := bytes.IndexByte(head, '\a'); end > 0 {
			return end + 1
		}
		if end := bytes.Index(head, []byte("\x1b\\")); end > 0 {
			return end + 2
		}
	case '(', ')':
		return min(3, len(text))
	case '7', '8', '=', '>', 'M', 'c':
		return 2
	}
	return 1
}
