package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"sgtune/benchmark"
)

// TestReportIsDocumented finds keys of the report, of --dry-run and of --csv that docs/report.md leaves out.
func TestReportIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for i, part := range strings.Split(string(text), "`") {
		if i%2 == 0 {
			continue // outside of backquotes
		}
		for _, word := range strings.FieldsFunc(part, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			words[word] = true
		}
	}
	keys := jsonKeys(reflect.TypeFor[benchmark.Report](), map[reflect.Type]bool{})
	keys = append(keys, csvHead...)
	if len(keys) < 80 {
		t.Fatalf("only %d keys were found", len(keys))
	}
	for _, key := range keys {
		if !words[key] {
			t.Errorf("docs/report.md does not have `%s`", key)
		}
	}
}

// jsonKeys are the keys of a type's JSON form and of what it holds.
func jsonKeys(of reflect.Type, seen map[reflect.Type]bool) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] {
		return nil
	}
	seen[of] = true
	var keys []string
	for field := range of.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		keys = append(keys, key)
		keys = append(keys, jsonKeys(field.Type, seen)...)
	}
	return keys
}
