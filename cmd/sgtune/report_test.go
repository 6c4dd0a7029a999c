package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/store"
	"sgtune/test/webbed"
)

func TestReportCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "sgtune.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := webbed.Fill(t.Context(), db, webbed.Make("night", 25, 7)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		args  []string
		code  int
		file  string // that is written, "" = standard output
		want  string
		error string
	}{
		{"html", []string{"-o", "r.html"}, 0, "r.html", "<!doctype html>", ""},
		{"again", []string{"-o", "r.html"}, 0, "r.html", "<!doctype html>", ""},
		{"markdown", []string{"-o", "r.md"}, 0, "r.md", "# night\n", ""},
		{"format wins", []string{"-o", "r.txt", "--format", "markdown"}, 0, "r.txt", "# night\n", ""},
		{"standard output", []string{"--format", "html"}, 0, "", "<!doctype html>", ""},
		{"no format", []string{"-o", "r.pdf"}, 2, "", "", "end it in .html or .md"},
		{"wrong format", []string{"--format", "pdf"}, 2, "", "", "is not one of html, markdown"},
		{"the database", []string{"-o", "sgtune.db", "--format", "html"}, 2, "", "", "is the database itself"},
		{"a folder", []string{"-o", ".", "--format", "html"}, 2, "", "", "is a folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"report", "night", "--db", path}, tt.args...)
			for i, word := range args {
				if i > 0 && args[i-1] == "-o" {
					args[i] = filepath.Join(dir, word)
				}
			}
			var out, errs strings.Builder
			if code := run(t.Context(), args, &out, &errs); code != tt.code || !strings.Contains(errs.String(), tt.error) {
				t.Fatalf("exit %d: %s", code, errs.String())
			}
			text := out.String()
			if tt.file != "" {
				written, err := os.ReadFile(filepath.Join(dir, tt.file))
				if err != nil || text != "" {
					t.Fatalf("%v, on standard output: %q", err, text)
				}
				text = string(written)
			}
			if !strings.HasPrefix(strings.TrimSpace(text), strings.TrimSpace(tt.want)) {
				t.Errorf("%.200s", text)
			}
		})
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the database was changed: %v", err)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"report", "nobody", "--db", path, "-o", filepath.Join(dir, "x.html")}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "night") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "x.html")); err == nil {
		t.Error("a report on nobody")
	}
}
