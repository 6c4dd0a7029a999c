package sglang

import "bytes"

// clock is the length of the time a line begins with, without a space behind it: ISO 8601 with its
// zone, "2026-11-29 14:08:17,123" (logging, loguru, ts), "14:08:17" (ts -s, foreman), seconds since
// 1970 or since boot with a fraction. 0 when the line begins with none.
func clock(line []byte) int {
	switch {
	case shaped(line, "0000-00-00T00:00:00"), shaped(line, "0000-00-00 00:00:00"):
		n := len("0000-00-00T00:00:00")
		n += fraction(line[n:])
		return n + zone(line[n:])
	case shaped(line, "00:00:00"):
		n := len("00:00:00")
		n += fraction(line[n:])
		if n < len(line) && line[n] != ' ' {
			return 0
		}
		return n
	}
	n := 0
	for n < len(line) && isDigit(line[n]) {
		n++
	}
	const shortest = 4 // digits of a fraction: microseconds, not the "12.5 GB" of a sentence
	if f := fraction(line[n:]); n > 0 && f >= shortest && n+f < len(line) && line[n+f] == ' ' {
		return n + f
	}
	if f := fraction(line[n:]); n > 0 && f >= shortest && n+f == len(line) {
		return n + f // the inside of brackets
	}
	return 0
}

// fraction is the length of ".123" or ",123".
func fraction(text []byte) int {
	if len(text) < 2 || text[0] != '.' && text[0] != ',' || !isDigit(text[1]) {
		return 0
	}
	n := 2
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

// zone is the length of "Z", "+0100" or "+01:00".
func zone(text []byte) int {
	switch {
	case len(text) > 0 && text[0] == 'Z':
		return 1
	case len(text) > 0 && (text[0] == '+' || text[0] == '-'):
		if shaped(text[1:], "00:00") {
			return len("+00:00")
		}
		if shaped(text[1:], "0000") {
			return len("+0000")
		}
	}
	return 0
}

// syslogTime is the length of "Nov 29 14:08:17.123 " (journald, ts), "Sat 2026-11-29 14:08:17 UTC "
// (journald's short-full) or "Sat Nov 29 14:08:17 2026" (mpirun), with the space behind it.
func syslogTime(line []byte) int {
	n := 0
	if isWeekday(line) {
		n = len("Sat ")
	}
	rest := line[n:]
	if d := clock(rest); d > 0 {
		rest = rest[d:]
		if len(rest) > 5 && rest[0] == ' ' && rest[4] == ' ' { // a zone of three letters
			d += 4
		}
		return min(n+d+1, len(line))
	}
	if !isMonth(rest) || len(rest) < len("Nov 29 14:08:17") {
		return 0
	}
	day := rest[len("Nov "):]
	if !isDigit(day[1]) || day[0] != ' ' && !isDigit(day[0]) || day[2] != ' ' || !shaped(day[3:], "00:00:00") {
		return 0
	}
	n += len("Nov 29 14:08:17")
	n += fraction(line[n:])
	if shaped(line[n:], " 0000[") {
		return n + len(" 2026")
	}
	if n < len(line) && line[n] == ' ' {
		n++
	}
	return n
}

// syslogName is the length of "host program[123]: " behind a time, or of the kernel's "host kernel: ".
func syslogName(line []byte) int {
	const farthest = 128
	head := line[:min(len(line), farthest)]
	host := bytes.IndexByte(head, ' ')
	if host <= 0 {
		return 0
	}
	program := head[host+1:]
	end := bytes.Index(program, []byte(":"))
	if end <= 0 || bytes.IndexByte(program[:end], ' ') >= 0 {
		return 0
	}
	name := program[:end]
	if name[end-1] != ']' && string(name) != "kernel" || name[0] == '[' {
		return 0
	}
	return host + 1 + end + colonSpace(program[end:])
}

func isMonth(line []byte) bool { return threeLetters(line, "JanFebMarAprMayJunJulAugSepOctNovDec") }

func isWeekday(line []byte) bool { return threeLetters(line, "MonTueWedThuFriSatSun") }

// threeLetters reports whether line begins with one of the names and a space.
func threeLetters(line []byte, names string) bool {
	if len(line) < 5 || line[3] != ' ' {
		return false
	}
	for i := 0; i < len(names); i += 3 {
		if string(line[:3]) == names[i:i+3] {
			return true
		}
	}
	return false
}
