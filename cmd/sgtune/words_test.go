package main

import (
	"strings"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{short(0), "0s"},
		{short(59600 * time.Millisecond), "1m00s"},
		{short(6*time.Minute + 2*time.Second), "6m02s"},
		{short(26*time.Hour + 5*time.Minute), "26h05m"},
		{count(0, "trial"), "0 trials"},
		{count(1, "confirmation launch"), "1 confirmation launch"},
		{count(2, "confirmation launch"), "2 confirmation launches"},
		{count(3, "process"), "3 processes"},
		{shellWord("night-1.db"), "night-1.db"},
		{shellWord("my night.db"), "'my night.db'"},
		{shellWord("it's"), `'it'\''s'`},
		{shellWord("$HOME"), "'$HOME'"},
		{shellWord(""), "''"},
		{some([]string{"a", "b"}), "a; b"},
		{some([]string{strings.Repeat("x", 300), "b", "c"}), strings.Repeat("x", 300) + "; and 2 more"},
		{oneLine("unknown command \"tne\" for \"sgtune\"\n\nDid you mean this?\n\ttune\n\tls\n"), "unknown command \"tne\" for \"sgtune\"; did you mean `tune`, `ls`?"},
		{oneLine("two\nlines"), "two; lines"},
		{printable("a\x1b[2Jb\r\n\tc\u009b"), "a[2Jb  c"},
		{cut("äöüß", 3), "äö…"},
		{cut("äöüß", 4), "äöüß"},
		{cut("any", 0), "any"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
