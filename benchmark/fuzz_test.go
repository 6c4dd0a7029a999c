package benchmark

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func FuzzReadWorkload(f *testing.F) {
	for _, name := range []string{"mooncake.jsonl", "bailian.jsonl", "prompts.jsonl"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"input_length":3,"output_length":1,"hash_ids":[-1,9223372036854775807]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := readWorkload(bytes.NewReader(text), "fuzz.jsonl", ReadOptions{})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("more than a line: %q", err)
			}
			return
		}
		if len(w.Rows) == 0 || w.Reuse < 0 || w.Reuse > 1 {
			t.Fatalf("%+v", w)
		}
		for _, r := range w.Rows {
			if r.OutputTokens < 1 || r.Input() < 1 || (len(r.HashIDs) > 0 && w.BlockTokens < 1) {
				t.Fatalf("%+v", r)
			}
		}
	})
}
