package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		args           []string
		stdin          string
		code           int
		stdout, stderr string // what each contains; "" = nothing at all
	}{
		{"version", []string{"version"}, "", exitDone, " protocol 2 ", ""},
		{"help", []string{"--help"}, "", exitDone, "Example:", ""},
		{"no word", nil, "", exitUsage, "", "one of replay, serve FOLDER, pipe PORT, version or help"},
		{"unknown word", []string{"guard"}, "", exitUsage, "", "one of replay, serve FOLDER, pipe PORT, version or help"},
		{"a word too much", []string{"replay", "job.json"}, "", exitUsage, "", "one of replay, serve FOLDER, pipe PORT, version or help"},
		{"no folder", []string{"serve"}, "", exitUsage, "", "one of replay, serve FOLDER"},
		{"relative folder", []string{"serve", "work"}, "", exitUsage, "", `"work" is not an absolute path`},
		{"serve", []string{"serve", t.TempDir()}, `{"id":1,"op":"ping"}`, exitDone, `{"program":"sgtune-agent serve","protocol":1,`, ""},
		{"answers", []string{"serve", t.TempDir()}, `{"id":7,"op":"dance"}`, exitDone, `{"id":7,"error":{"text":"the agent knows no \"dance\""}}`, ""},
		{"no request", []string{"serve", t.TempDir()}, "hello\n", exitFailed, `"protocol":1`, `"hello" is no request`},
		{"nothing to keep", []string{"keep", t.TempDir() + "/none"}, "", exitFailed, "", "no such file"},
		{"caller gone at once", []string{"replay"}, "", exitFailed, `{"hello":{"program":"sgtune-agent","protocol":2,`, "the caller is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), c.args, strings.NewReader(c.stdin), &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for name, got := range map[string][2]string{"stdout": {stdout.String(), c.stdout}, "stderr": {stderr.String(), c.stderr}} {
				if !strings.Contains(got[0], got[1]) || got[1] == "" && got[0] != "" {
					t.Errorf("%s %q, want %q", name, got[0], got[1])
				}
			}
		})
	}
}
