package benchmark

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// scanObject goes through the fields of a flat JSON object: its values are numbers, words, plain strings
// and arrays of numbers. It is several times faster than decoding into a struct, which is what reading a
// trace of gigabytes spends its time on. false means that the text is something else, or that field said
// so: decode it in the ordinary way. Arrays are not checked, that is up to field.
func scanObject(text []byte, field func(key, value []byte) bool) bool {
	i := skipSpace(text, 0)
	if i >= len(text) || text[i] != '{' {
		return false
	}
	i = skipSpace(text, i+1)
	if i < len(text) && text[i] == '}' {
		return skipSpace(text, i+1) == len(text)
	}
	for {
		end := plainString(text, i)
		if end < 0 {
			return false
		}
		key := text[i+1 : end]
		if i = skipSpace(text, end+1); i >= len(text) || text[i] != ':' {
			return false
		}
		i = skipSpace(text, i+1)
		if end = flatValue(text, i); end < 0 || !field(key, text[i:end]) {
			return false
		}
		if i = skipSpace(text, end); i >= len(text) {
			return false
		}
		switch text[i] {
		case ',':
			i = skipSpace(text, i+1)
		case '}':
			return skipSpace(text, i+1) == len(text)
		default:
			return false
		}
	}
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// plainString is the index of the quote that ends the string at i, -1 when there is none or the string
// has escapes.
func plainString(text []byte, i int) int {
	if i >= len(text) || text[i] != '"' {
		return -1
	}
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i
		case c == '\\' || c < ' ':
			return -1
		}
	}
	return -1
}

// flatValue is the end of the value at i, -1 when it is not a flat one.
func flatValue(text []byte, i int) int {
	if i >= len(text) {
		return -1
	}
	switch text[i] {
	case '"':
		if end := plainString(text, i); end >= 0 {
			return end + 1
		}
		return -1
	case '[':
		if end := bytes.IndexByte(text[i:], ']'); end >= 0 {
			return i + end + 1
		}
		return -1
	}
	end := i
	for end < len(text) && text[end] != ',' && text[end] != '}' && text[end] != ' ' && text[end] != '\t' {
		end++
	}
	if plainDigits(text[i:end]) || json.Valid(text[i:end]) && text[i] != '{' {
		return end
	}
	return -1
}

// plainDigits reports whether the text is a JSON number without sign, decimals and exponent.
func plainDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) == 1 || len(text) > 1 && text[0] != '0'
}

// countOf reads a number of tokens.
func countOf(text []byte) (n int, ok bool) {
	if plainDigits(text) && len(text) <= 9 {
		for _, c := range text {
			n = n*10 + int(c-'0')
		}
		return n, n <= maxTokens
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !isCount(f) {
		return 0, false
	}
	return int(f), true
}

// integerOf reads an integer of 64 bits.
func integerOf(text []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// integersOf reads a JSON array of integers that are not negative, into room where that is big enough.
func integersOf(text []byte, room []int64) (list []int64, ok bool) {
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return nil, false
	}
	text = bytes.TrimSpace(text[1 : len(text)-1])
	if len(text) == 0 {
		return nil, true
	}
	list = room[:0]
	if cap(list) == 0 {
		list = make([]int64, 0, bytes.Count(text, []byte(","))+1)
	}
	for i := 0; ; i++ {
		for i < len(text) && text[i] == ' ' {
			i++
		}
		start, n := i, int64(0)
		for ; i < len(text); i++ {
			digit := text[i] - '0'
			if digit > 9 {
				break
			}
			n = n*10 + int64(digit)
		}
		if i-start < 1 || i-start > 18 || text[start] == '0' && i-start > 1 {
			return nil, false
		}
		list = append(list, n)
		if i == len(text) {
			return list, true
		}
		if text[i] != ',' {
			if i = skipSpace(text, i); i >= len(text) || text[i] != ',' {
				return nil, false
			}
		}
	}
}
