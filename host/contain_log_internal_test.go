package host

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestContainerLogPieces: what each of several readings tells, and what stands in the log afterwards.
func TestContainerLogPieces(t *testing.T) {
	t.Parallel()
	stamp := func(second int) string { return fmt.Sprintf("2026-11-30T10:00:%02d.123456789Z ", second) }
	long := strings.Repeat("x", 9000)
	for _, c := range []struct {
		name     string
		readings []string // standard output of each "logs"
		words    string   // standard error of the first
		want     string
	}{
		{"lines", []string{stamp(1) + "a\n" + stamp(2) + "b c\n"}, "", "a\nb c\n"},
		{"in pieces", []string{stamp(1) + "10%" + stamp(2) + " 20%" + stamp(3) + " 100%\n"}, "", "10% 20% 100%\n"},
		{"long", []string{stamp(1) + long + stamp(1) + long + "\n"}, "", long + long + "\n"},
		{"stamps of the program", []string{stamp(1) + stamp(0) + "INFO it\n"}, "", stamp(0) + "INFO it\n"},
		{"two streams", []string{stamp(1) + "a\n" + stamp(3) + "c\n"}, stamp(2) + "b\n" + stamp(4) + "d\n", "a\nb\nc\nd\n"},
		{"the runtime's own words", []string{stamp(1) + "a\n"}, "Error: daemon went away\n", "a\n"},
		{"read again", []string{stamp(1) + "a\n" + stamp(2) + "b\n", stamp(1) + "a\n" + stamp(2) + "b\n" + stamp(2) + "b\n" + stamp(3) + "c\n"}, "", "a\nb\nb\nc\n"},
		{"cut off in a line", []string{stamp(1) + "a\n" + stamp(2) + "bee" + stamp(3) + "t", stamp(2) + "bee" + stamp(3) + "tle\n"}, "", "a\nbeetle\n"},
		{"a piece of a known line", []string{stamp(1) + "a" + stamp(9) + "b\n", stamp(9) + "b\n" + stamp(9) + "c\n"}, "", "ab\nc\n"},
		{"a rest without an end", []string{stamp(1) + "a\n" + stamp(2) + "rest", stamp(1) + "a\n" + stamp(2) + "rest"}, "", "a\nrest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			told := 0
			g := &containerLog{out: &out, start: func(ctx context.Context, _ bool, _ string) *exec.Cmd {
				words := ""
				if told == 0 {
					words = c.words
				}
				told++
				return exec.CommandContext(ctx, "sh", "-c", `printf %s "$1"; printf %s "$2" >&2`, "sh", c.readings[told-1], words)
			}}
			for i := range c.readings {
				if err := g.read(t.Context(), i < len(c.readings)-1); err != nil {
					t.Fatal(err)
				}
			}
			if out.String() != c.want {
				t.Errorf("got %.200q, want %.200q", out.String(), c.want)
			}
		})
	}
}
