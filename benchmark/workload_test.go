package benchmark_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
)

func read(t testing.TB, path string) *benchmark.Workload {
	t.Helper()
	w, err := benchmark.ReadWorkload(path)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadWorkload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file    string
		format  string
		block   int
		inputs  []int
		outputs []int
		reuse   float64 // leading ids seen before over all input tokens
	}{
		{"testdata/mooncake.jsonl", "mooncake", 512, []int{1100, 1024, 1500, 513}, []int{8, 4, 1, 2}, (1024.0 + 512) / 4137},
		{"testdata/bailian.jsonl", "bailian", 16, []int{40, 64, 16}, []int{12, 5, 7}, 32.0 / 120},
		{"testdata/prompts.jsonl", "prompts", 0, []int{0, 0}, []int{256, 10}, 0},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			w := read(t, c.file)
			var inputs, outputs []int
			for i, r := range w.All() {
				if r.Number != i {
					t.Errorf("row %d has the number %d", i, r.Number)
				}
				inputs, outputs = append(inputs, r.InputTokens), append(outputs, r.OutputTokens)
			}
			if diff := cmp.Diff([]any{c.format, c.block, c.inputs, c.outputs}, []any{w.Format, w.BlockTokens, inputs, outputs}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if math.Abs(w.Reuse-c.reuse) > 1e-12 || len(w.Notes) > 0 || len(w.Dropped) > 0 {
				t.Errorf("reuse %g, want %g; notes %q, dropped %v", w.Reuse, c.reuse, w.Notes, w.Dropped)
			}
		})
	}
}

// The figures were counted by another program.
func TestReadQuickstart(t *testing.T) {
	t.Parallel()
	w := read(t, "../examples/quickstart.jsonl")
	if w.Len() != 1200 || w.BlockTokens != 64 || w.PromptTokens() != 2_106_612 || w.MaxTokens() != 15_363 || w.InputQuantile(0.99) != 12_419 {
		t.Errorf("%d rows, block %d, %d prompt tokens, most %d, p99 %d", w.Len(), w.BlockTokens, w.PromptTokens(), w.MaxTokens(), w.InputQuantile(0.99))
	}
	near(t, "reuse", w.Reuse, 0.2317299056, 1e-9)
	near(t, "mean input", w.MeanInput(), 1755.51, 1e-9)
	near(t, "mean output", w.MeanOutput(), 43.5133333, 1e-6)
	for _, r := range w.All() {
		if len(r.HashIDs) != (r.InputTokens+63)/64 {
			t.Fatalf("row %d: %d ids for %d tokens", r.Number, len(r.HashIDs), r.InputTokens)
		}
	}
	longest := w.Longest(0.99)
	if n := longest.Len(); n < 12 || n > 14 || longest.Row(0).InputTokens < 12_419 {
		t.Errorf("%d rows in the longest hundredth", n)
	}
}

func TestReadWorkloadDropsAndCounts(t *testing.T) {
	t.Parallel()
	w := read(t, write(t, "\xef\xbb\xbf"+`{"input_length":10,"output_length":3}

not json
{"input_length":0,"output_length":0}
{"input_length":10,"output_length":0}
{"input_length":-4,"output_length":1}
{"input_length":"ten","output_length":1}
{"output_length":1}
{"input_length":2.5,"output_length":1}
{"input_length":1e300,"output_length":1}
{"input_length":10.0,"output_length":4}`))
	want := map[string]int{"bad_json": 1, "zero_input_tokens": 1, "zero_output_tokens": 1, "bad_row": 5}
	if diff := cmp.Diff(want, w.Dropped); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.Len() != 2 || w.Row(1).Number != 9 || w.BlockTokens != 0 {
		t.Errorf("row 1 = %+v", w.Row(1))
	}
	w = read(t, write(t, `{"prompt":"a","max_tokens":5}
{"prompt":"","output_tokens":1}
{"prompt":"b","output_tokens":0}
{"prompt":7}
{"prompts":"a"}`))
	want = map[string]int{"empty_prompt": 1, "zero_output_tokens": 1, "bad_row": 2}
	if diff := cmp.Diff(want, w.Dropped); diff != "" || w.Len() != 1 || w.Row(0).OutputTokens != 5 {
		t.Errorf("%d rows (-want +got):\n%s", w.Len(), diff)
	}
	if w := read(t, write(t, `{"prompt":"a","output_tokens_count":7}`)); w.Row(0).OutputTokens != 7 || w.Row(0).Open {
		t.Errorf("guidellm's count is not read: %+v", w.Row(0))
	}
	if w := read(t, write(t, `{"conversation":[{"content":"a b"},{"value":"12345678"}]}`)); w.Row(0).Text != "a b" || w.Row(0).OutputTokens != 3 {
		t.Errorf("a custom row without roles: %+v", w.Row(0))
	}
}

func TestReadWorkloadGuessesTheBlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rows  [][2]int // tokens, ids
		want  int
		notes string
	}{
		{"one id each", [][2]int{{100, 1}, {512, 1}}, 512, ""},
		{"longer than 512 with one id", [][2]int{{700, 1}}, 1024, ""},
		{"exactly 64", [][2]int{{64, 1}, {65, 2}, {130, 3}}, 64, ""},
		{"no power of two fits", [][2]int{{100, 1}, {101, 2}}, 100, ""},
		{"nothing fits", [][2]int{{100, 1}, {50, 2}}, 512, "no block size fits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			for _, r := range c.rows {
				fmt.Fprintf(&text, `{"input_length":%d,"output_length":1,"hash_ids":[%s0]}`+"\n", r[0], strings.Repeat("1,", r[1]-1))
			}
			path := write(t, text.String())
			w := read(t, path)
			if notes := strings.Join(w.Notes, "; "); w.BlockTokens != c.want || !strings.HasPrefix(notes, c.notes) || (notes != "") != (c.notes != "") {
				t.Errorf("block %d, want %d; notes %q", w.BlockTokens, c.want, notes)
			}
			w, err := benchmark.ReadWorkloadAs(path, benchmark.ReadOptions{BlockTokens: 17})
			if err != nil || w.BlockTokens != 17 {
				t.Errorf("forced block: %v", err)
			}
		})
	}
}

func TestReadWorkloadErrors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, c := range []struct{ name, path, format, want string }{
		{"missing", filepath.Join(folder, "none.jsonl"), "", "none.jsonl: cannot be opened"},
		{"folder", folder, "", "is a folder"},
		{"empty", write(t, ""), "", "is empty"},
		{"blank lines", write(t, "\n \n"), "", "is empty"},
		{"text", write(t, "\nonce\nupon\n"), "", "w.jsonl:2: no usable row: bad_json 2; a row looks like {"},
		{"another CSV", write(t, "\na,b\n1,2\n"), "", `w.jsonl:2: neither JSON nor a known CSV header: "a,b"; a header looks like`},
		{"array", write(t, "[1, 2]\n"), "", "no usable row: bad_row 2"},
		{"another array", write(t, "[\n{\"a\":1}]\n"), "", "w.jsonl:2: no known workload format has the keys a;"},
		{"another format", write(t, "\n{\"message\":[],\"id\":1}\n"), "", "w.jsonl:2: no known workload format has the keys id, message; a row looks like"},
		{"header alone", write(t, "arrived_at,num_prefill_tokens,num_decode_tokens\n"), "", "has no row; a row looks like"},
		{"JSON as CSV", write(t, "{\"a\":1}\n"), "azure", "w.jsonl:1: is JSON, and azure files are not"},
		{"CSV as JSON", write(t, "arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,3\n"), "azure", "w.jsonl:1: neither JSON nor a known CSV header"},
		{"empty gzip", write(t, "\x1f\x8b"), "", "is damaged gzip"},
		{"all dropped", write(t, `{"prompt":""}`), "", "empty_prompt 1"},
		{"unknown name", write(t, `{"prompt":"a"}`), "csv", `no workload format is called "csv"; known are openai-batch, `},
		{"forced wrongly", write(t, `{"prompt":"a"}`), "mooncake", "bad_row 1"},
	} {
		_, err := benchmark.ReadWorkloadAs(c.path, benchmark.ReadOptions{Format: c.format})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("%s: %v; want one line with %q", c.name, err, c.want)
		}
	}
}
