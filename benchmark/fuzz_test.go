package benchmark

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// textFile is a workload file in memory.
func textFile(text []byte) *fileBytes {
	return &fileBytes{path: "fuzz", at: bytes.NewReader(text), size: int64(len(text))}
}

// FuzzReadWorkload reads any text as any format, once with the rows in memory and once with the rows left in
// the file: both must find the same.
func FuzzReadWorkload(f *testing.F) {
	var names []string
	for _, how := range formats() {
		names = append(names, how.name)
	}
	seeds, err := filepath.Glob("testdata/workloads/formats/*.*")
	if err != nil || len(seeds) < 15 {
		f.Fatal(err, seeds)
	}
	for _, path := range append(seeds, "testdata/mooncake.jsonl", "testdata/bailian.jsonl", "testdata/prompts.jsonl") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, byte(255), byte(0))
		f.Add(text, byte(len(text)), byte(1))
	}
	f.Add([]byte(`{"input_length":3,"output_length":1,"hash_ids":[-1,9223372036854775807]}`), byte(255), byte(2))
	f.Add([]byte(`[{"prompt":"a"},,"b"}:]`), byte(255), byte(2))
	f.Fuzz(func(t *testing.T, text []byte, format, unit byte) {
		opts := ReadOptions{TimeUnit: []string{"", "s", "ms"}[unit%3], BlockTokens: int(unit) / 3}
		if int(format) < len(names) {
			opts.Format = names[format]
		}
		w, err := readWorkload(textFile(text), opts, keepBytes)
		onDisk, err2 := readWorkload(textFile(text), opts, 0)
		if (err == nil) != (err2 == nil) {
			if err2 == nil || !strings.Contains(err2.Error(), "sort the file by time first") {
				t.Fatalf("in memory: %v; on disk: %v", err, err2)
			}
			return
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("more than a line: %q", err)
			}
			return
		}
		checkWorkload(t, w)
		checkWorkload(t, onDisk)
		sw, sd := w.Summary(), onDisk.Summary()
		sw.Notes, sd.Notes, sw.Arrivals, sd.Arrivals = nil, nil, nil, nil // times on disk are not rounded to nanoseconds
		if a, b := asJSON(t, sw), asJSON(t, sd); a != b && !strings.Contains(a, "prefix") {
			t.Fatalf("in memory %s\non disk   %s", a, b)
		}
	})
}

func checkWorkload(t *testing.T, w *Workload) {
	t.Helper()
	if w.Len() == 0 || w.Reuse < 0 || w.Reuse > 1 {
		t.Fatalf("%+v", w)
	}
	_ = w.CheckArrivals()
	for i, r := range w.All() {
		if r.Err != nil || r.OutputTokens < 1 || r.Input() < 1 || (len(r.HashIDs) > 0 && w.BlockTokens < 1) || r.At < 0 || r.Pause < 0 || r.Requests() < 1 {
			t.Fatalf("%+v", r)
		}
		if len(r.Extra) > 0 && !json.Valid(r.Extra) {
			t.Fatalf("extra %q", r.Extra)
		}
		if j, ok := w.Follow(i); ok && (j <= i || !w.Row(j).Follows) {
			t.Fatalf("row %d follows %d", j, i)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
