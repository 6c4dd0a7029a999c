package sglang

import "strings"

// maskWords masks the words that were captured from a line. A value alone does not show that it is a secret:
// its name stands beside it in the line, so what the masked line does not hold is none to show.
func maskWords(ev *Event, msg []byte) {
	if len(ev.Words) == 0 || secretRules.match(msg) == 0 {
		return
	}
	line := Mask(string(msg))
	for name, word := range ev.Words {
		hidden := Mask(word)
		if !strings.Contains(line, hidden) {
			hidden = masked
		}
		ev.Words[name] = hidden
	}
}
