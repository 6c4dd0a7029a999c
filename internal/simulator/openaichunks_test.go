package simulator

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What each version sends, byte by byte (testdata/README.md).
func TestOpenAIShapes(t *testing.T) {
	t.Parallel()
	for _, version := range Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got := shapes(t, version)
			file := filepath.Join("testdata", "openai_"+version+".txt")
			if os.Getenv("SGTUNE_UPDATE") != "" {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// shapes is every form of answer of a version, for a prompt of four ids.
func shapes(t *testing.T, version string) string {
	t.Helper()
	d, err := lookupVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, chat := range []bool{false, true} {
		for _, x := range []struct {
			name           string
			usage, running bool
			report         bool
			natural        bool
			last           progress
		}{
			{"no usage", false, false, false, false, progress{out: 3, done: true}},
			{"usage, aborted", true, false, false, false, progress{out: 1, done: true, aborted: true}},
			{"running usage, cache report, stopped by itself", true, true, true, true, progress{out: 3, cached: 2, done: true}},
		} {
			a := &ask{chat: chat, rid: "r1", model: `"m"`, prompt: NewPrompt(ids(5, 4)), stream: true, usage: x.usage, running: x.running}
			c := newChunks(&Settings{CacheReport: x.report}, d, a, 1795992899)
			c.natural = x.natural
			fmt.Fprintf(&out, "### chat %v, streamed, %s\n%s", chat, x.name, c.events(c.events(nil, progress{out: 1, cached: x.last.cached}), x.last))
			a.stream = false
			c = newChunks(&Settings{CacheReport: x.report}, d, a, 1795992899)
			c.natural = x.natural
			fmt.Fprintf(&out, "### chat %v, whole, %s\n%s\n", chat, x.name, c.whole(nil, x.last))
		}
	}
	return out.String()
}

// The requests a real 0.5.23 server answered get the same answers here, but for words, ids and counts.
func TestOpenAILikeTheRealServer(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/real_openai_0.5.23.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, "--sim-time-scale", "1")
	for block := range strings.SplitSeq(string(b)[len("### "):], "\n### ") {
		head, real, _ := strings.Cut(block, "\n")
		path, body, _ := strings.Cut(head, " ")
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			want := skeleton(real)
			var got []string
			for range 3 { // a busy machine may send all tokens in one event
				_, text := c.post(path, body)
				if got = skeleton(text); slices.Equal(got, want) {
					return
				}
			}
			t.Errorf("%s\n%s", body, cmp.Diff(want, got))
		})
	}
}

var (
	ownWords = regexp.MustCompile(`"(id|text|content)":"[^"]+"`)
	ownCount = regexp.MustCompile(`\d+`)
)

// skeleton is the lines of an answer without what is its own; repeated lines count once.
func skeleton(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, ownCount.ReplaceAllString(ownWords.ReplaceAllString(line, `"$1":"x"`), "0"))
		}
	}
	return slices.Compact(lines)
}
