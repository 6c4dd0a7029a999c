package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// With --stream-interval a stream is told the first token and then whole intervals, up to the end.
func TestStreamed(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		version  string
		interval int
		want     []int // told after 0, 1, 2, ... tokens
	}{
		{"0.5.23", 1, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"0.5.23", 4, []int{0, 1, 1, 1, 1, 5, 5, 5, 5, 9}},
		{"0.4.9", 2, []int{0, 1, 1, 3, 3, 5, 5, 7, 7, 9}},
		{"0.4.6", 4, []int{0, 0, 0, 0, 4, 4, 4, 4, 8, 8}},
	} {
		d, err := lookupVersion(x.version)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int, len(x.want))
		for out := range got {
			got[out] = d.streamed(out, x.interval)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s, interval %d: %v, want %v", x.version, x.interval, got, x.want)
		}
	}
}

// /generate streams as each version does: what is cumulative, what is new, what is there at all.
func TestGenerateStreams(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name                      string
		flags                     []string
		noIDs, deltaIDs, newWords bool
		interval                  int
	}{
		{name: "0.5.23", interval: 1},
		{name: "0.5.23 incremental", flags: []string{"--incremental-streaming-output", "--stream-interval", "8"}, deltaIDs: true, newWords: true, interval: 8},
		{name: "0.5.23 interval", flags: []string{"--stream-interval", "8"}, interval: 8},
		{name: "0.5.10", flags: []string{"--sim-version", "0.5.10"}, interval: 1},
		{name: "0.5.10 incremental by its old name", flags: []string{"--sim-version", "0.5.10", "--stream-output"}, deltaIDs: true, newWords: true, interval: 1},
		{name: "0.5.5", flags: []string{"--sim-version", "0.5.5"}, deltaIDs: true, interval: 1},
		{name: "0.5.5 knows no other way", flags: []string{"--sim-version", "0.5.5", "--stream-output"}, deltaIDs: true, interval: 1},
		{name: "0.4.9", flags: []string{"--sim-version", "0.4.9"}, noIDs: true, interval: 1},
		{name: "0.4.6", flags: []string{"--sim-version", "0.4.6", "--stream-output", "--stream-interval", "8"}, noIDs: true, interval: 8},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, append([]string{"--sim-time-scale", "20"}, x.flags...)...)
			_, text := c.post("/generate", `{"text":" a b c","rid":"r\"1","stream":true,"sampling_params":{"max_new_tokens":61}}`)
			if !strings.HasSuffix(text, "\n\ndata: [DONE]\n\n") {
				t.Fatalf("%s", text)
			}
			var words []string
			var tokens []uint32
			told, events := 0, 0
			for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\ndata: [DONE]\n\n"), "\n\n") {
				e := generated(t, strings.TrimPrefix(event, "data: "))
				n := e.Meta.Completion
				if events++; n <= told || n != 61 && x.interval > 1 && n%8 != map[bool]int{true: 0, false: 1}[x.name == "0.4.6"] {
					t.Errorf("told %d after %d tokens", n, told)
				}
				first := map[bool]int{true: told}
				if got := strings.Fields(e.Text); len(got) != n-first[x.newWords] {
					t.Errorf("%d words after %d of %d tokens", len(got), told, n)
				} else if x.newWords {
					words = append(words, got...)
				} else {
					words = got
				}
				if want := n - first[x.deltaIDs]; x.noIDs && e.IDs != nil || !x.noIDs && len(*e.IDs) != want {
					t.Errorf("ids %v after %d of %d tokens", e.IDs, told, n)
				} else if x.deltaIDs {
					tokens = append(tokens, *e.IDs...)
				} else if !x.noIDs {
					tokens = *e.IDs
				}
				told = n
			}
			if events < 2 || len(words) != 61 || !x.noIDs && len(tokens) != 61 {
				t.Fatalf("%d events, %d words, %d ids", events, len(words), len(tokens))
			}
			for i, id := range tokens {
				if outputWords[id] != " "+words[i] {
					t.Fatalf("id %d is %d, word %q", i, id, words[i])
				}
			}
			_, text = c.post("/generate", `{"input_ids":[1,2,3],"sampling_params":{"max_new_tokens":5}}`)
			if e := generated(t, text); x.noIDs && (e.IDs != nil || len(strings.Fields(e.Text)) != 5) || !x.noIDs && len(*e.IDs) != 5 {
				t.Errorf("not streamed: %s", text)
			}
		})
	}
}

// generation is a result of /generate.
type generation struct {
	Text string
	IDs  *[]uint32 `json:"output_ids"`
	Meta struct {
		ID         string
		Completion int `json:"completion_tokens"`
	} `json:"meta_info"`
}

func generated(t *testing.T, text string) generation {
	t.Helper()
	var g generation
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		t.Fatal(fmt.Errorf("%w in %s", err, text))
	}
	return g
}
