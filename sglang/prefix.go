package sglang

import (
	"strconv"
	"strings"
	"time"
)

// frame is a log line taken out of its frame: what printed it, when, and the message itself.
type frame struct {
	prefixed bool // the "[time ranks] " of SGLang's logger was there
	at       time.Time
	rank     int // TP rank, -1 when none is named
	msg      string
}

const stampLayout = "2006-01-02 15:04:05"

// parseFrame strips ANSI colours, what a container runtime or compose puts before a line, a
// progress bar that the line is glued to, and SGLang's own "[2026-11-29 14:08:17 TP3] " or
// "[2026-11-29 14:08:17.123 DP1 PP0 TP3 EP3] ".
func parseFrame(line string) frame {
	line = stripANSI(line)
	at := findStamp(line)
	if at < 0 {
		return frame{rank: -1, msg: stripStamp(line)}
	}
	end := strings.IndexByte(line[at:], ']')
	if end < 0 {
		return frame{rank: -1, msg: line}
	}
	inside := line[at+1 : at+end]
	f := frame{prefixed: true, rank: -1, msg: strings.TrimPrefix(line[at+end+1:], " ")}
	f.at, _ = time.Parse(stampLayout, inside[:len(stampLayout)]) // accepts a fraction that is not there
	for _, word := range strings.Fields(inside[len(stampLayout):]) {
		if n, ok := strings.CutPrefix(word, "TP"); ok {
			if rank, err := strconv.Atoi(n); err == nil {
				f.rank = rank
			}
		}
	}
	return f
}

// findStamp returns the offset of SGLang's "[YYYY-mm-dd HH:MM:SS", or -1. It may stand at the
// start, behind a container's prefix, or at the end of a progress bar; anywhere else it would be
// text that some line quotes.
func findStamp(line string) int {
	const farthestPrefix = 64
	for from := 0; ; {
		i := strings.Index(line[from:], "[20")
		if i < 0 {
			return -1
		}
		i += from
		if isStamp(line[i:]) {
			if i <= farthestPrefix && !strings.ContainsAny(line[:i], `'"(=`) || isBar(line[:i]) {
				return i
			}
			return -1
		}
		from = i + 1
	}
}

// isStamp reports whether s starts with "[dddd-dd-dd dd:dd:dd".
func isStamp(s string) bool {
	const shape = "[0000-00-00 00:00:00"
	if len(s) < len(shape) {
		return false
	}
	for i := range len(shape) {
		if shape[i] == '0' && (s[i] < '0' || s[i] > '9') || shape[i] != '0' && s[i] != shape[i] {
			return false
		}
	}
	return true
}

// stripStamp takes a container's own time off a line without SGLang's frame:
// "[2025-02-27T16:16:31.317Z] text", "2025-02-27T16:16:31Z text".
func stripStamp(line string) string {
	word, rest, found := strings.Cut(line, " ")
	word = strings.TrimPrefix(word, "[")
	if !found || len(word) < len("2006-01-02T15:04:05") || word[0] != '2' || word[4] != '-' || word[10] != 'T' || word[13] != ':' {
		return line
	}
	return rest
}

// isBar reports whether s is (or ends in) a tqdm progress bar.
func isBar(s string) bool {
	return strings.Contains(s, "%|") || strings.Contains(s, "% Completed |") || strings.Contains(s, "it/s]") || strings.Contains(s, "s/it]")
}

// stripANSI removes terminal colour and cursor sequences.
func stripANSI(s string) string {
	if strings.IndexByte(s, '\x1b') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\x1b' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '[' {
			i += 2
			for i < len(s) && (s[i] < '@' || s[i] > '~') {
				i++
			}
		}
	}
	return b.String()
}
