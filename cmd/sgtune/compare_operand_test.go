package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompareMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	text := reportText(t, 1000, nil)
	files := map[string]string{
		"good.json": string(text), "twin.json": string(text) + "\n", "cut.json": string(text[:200]), "array.json": "[1, 2]", "null.json": "null", "other.json": `{"a": 1}`,
		"empty.json": " \n", "text.txt": "hello\nworld", "nolevel.json": `{"levels": []}`, "type.json": `{"output_tok_s": "fast"}`,
		"below.json": `{"output_tok_s": -1}`, "endless.json": `{"output_tok_s": 1, "ttft_ms": {"p95": 1e300}}`, "lie.json": `{"output_tok_s": 1, "requests": {"sent": 5, "ok": 4}}`, "deep.json": strings.Repeat("[", 100_000),
		"esc.json": "\x1b[31m", "2,3.json": string(reportText(t, 1001, nil)), "levels.json": `{"levels": {"a": 1}}`,
	}
	for name, text := range files {
		writeReport(t, filepath.Join(dir, name), []byte(text))
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	huge, err := os.Create(filepath.Join(dir, "huge.json"))
	if err == nil {
		err = huge.Truncate(mostReportBytes + 1)
	}
	if err != nil || huge.Close() != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string // names of files are within dir
		want string   // a line of stderr holds it
	}{
		{"missing", []string{"none.json"}, "none.json: does not exist; name a report"},
		{"cut off", []string{"cut.json"}, "cut.json:1:200: ends in the middle"},
		{"array", []string{"array.json"}, "array.json: is JSON, but no report of sgtune replay (array at the top)"},
		{"null", []string{"null.json"}, `no "output_tok_s" in it`},
		{"other JSON", []string{"other.json"}, `other.json: is JSON, but no report`},
		{"empty", []string{"empty.json"}, "empty.json: is empty"},
		{"text", []string{"text.txt"}, "text.txt:1:1: is no JSON"},
		{"no level", []string{"nolevel.json"}, "nolevel.json: has no load level in it"},
		{"levels is no list", []string{"levels.json"}, `"levels" is object there`},
		{"wrong type", []string{"type.json"}, `"output_tok_s" is string there`},
		{"below zero", []string{"below.json"}, "output_tok_s is -1, which no replay writes"},
		{"beyond belief", []string{"endless.json"}, "ttft_ms.p95 is 1e+300, which no replay writes"},
		{"sums that lie", []string{"lie.json"}, "of 5 requests sent 4 are ok and 0 failed"},
		{"nested without end", []string{"deep.json"}, "deep.json:"},
		{"escape", []string{"esc.json"}, "esc.json:1:1: is no JSON"},
		{"empty folder", []string{"folder"}, "folder: is a folder without a .json file"},
		{"huge", []string{"huge.json"}, "huge.json: is larger than 64 MiB"},
		{"twice", []string{"good.json,twin.json"}, "twin.json: is the same report as"},
		{"stray comma", []string{"good.json,"}, "has a comma without a name beside it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			word := filepath.Join(dir, tt.args[0])
			if first, second, ok := strings.Cut(tt.args[0], ","); ok {
				word = filepath.Join(dir, first) + ","
				if second != "" {
					word += filepath.Join(dir, second)
				}
			}
			code, out, errs := call(t, "compare", word, good)
			if code != 2 || out != "" || strings.Count(errs, "\n") != 1 || len(errs) > 400 || !strings.Contains(errs, tt.want) || strings.Contains(errs, "\x1b") {
				t.Errorf("exit %d, stdout %q, stderr %q, want %q", code, out, errs, tt.want)
			}
		})
	}
	t.Run("both sides at once", func(t *testing.T) {
		t.Parallel()
		if code, _, errs := call(t, "compare", filepath.Join(dir, "none.json"), filepath.Join(dir, "cut.json")); code != 2 || strings.Count(errs, "\n") != 2 {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
	t.Run("a comma in a name", func(t *testing.T) {
		t.Parallel()
		if code, out, errs := call(t, "compare", filepath.Join(dir, "2,3.json"), good); code != 1 || errs != "" {
			t.Errorf("exit %d: %s%s", code, out, errs)
		}
	})
}

func TestCompareUsage(t *testing.T) {
	t.Parallel()
	dir := reportFolder(t, nil, 1000, 1001)
	one, two := filepath.Join(dir, "1.json"), filepath.Join(dir, "2.json")
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"one side", []string{one}, 2, "two sides are needed"},
		{"three", []string{one, two, one}, 2, "put -- between them"},
		{"nothing behind the dash", []string{one, "--"}, 2, "two sides are needed"},
		{"two sides with a dash", []string{one, "--", two}, 1, ""},
		{"a dash before both", []string{"--", one, two}, 1, ""},
		{"flags behind the dash", []string{one, "--", two, "--json"}, 2, "--json: is no file; flags stand before `--`"},
		{"metric", []string{one, two, "--metric", "ttft95"}, 2, `--metric "ttft95" is not known`},
		{"level", []string{one, two, "--level", "-4"}, 2, "--level -4 is no load"},
		{"a number alone", []string{"12", two, "--db", filepath.Join(dir, "none.db")}, 2, "none.db"},
		{"a wrong trial", []string{"night:last", two}, 2, "`last` should be a number, baseline or best"},
		{"no database", []string{"night:1", two, "--db", filepath.Join(dir, "none.db")}, 2, "none.db"},
		{"nothing", []string{"", two}, 2, "an operand is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := call(t, append([]string{"compare"}, tt.args...)...)
			if code != tt.code || !strings.Contains(errs, tt.want) || (code == 2) != (out == "") || code == 2 && (strings.Count(errs, "\n") != 1 || len(errs) > 400) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
			}
		})
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"output_tok_s": 1, "valid": true, "requests": {"sent": 1, "ok": 1}, "ttft_ms": {"p50": 3}}`))
	f.Add([]byte(`{"levels": [{"setup": {"load": "1e400 clients"}}, null]}`))
	f.Add([]byte(`{"output_tok_s": 1e-300, "client": {"cpu_share": 1e308}, "requests": {"sent": 1e300}}`))
	f.Add([]byte(`{"output_tok_s": 1`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "r.json")
		writeReport(t, path, text)
		l, err := readReport(path)
		if err != nil {
			if line := err.Error(); strings.Contains(line, "\n") || len(line) > 400 || exitCode(err) != exitUsage {
				t.Errorf("exit %d: %q", exitCode(err), line)
			}
			return
		}
		s := &side{role: "base", name: "x", noun: "report", launches: []*comparedLaunch{l}}
		if err := s.pick(rateMetrics[0], 0); err != nil {
			t.Fatal(err)
		}
		c := &comparison{sides: [2]*side{s, s}, metric: rateMetrics[0]}
		c.conclude()
		if err := c.print(&strings.Builder{}); err != nil {
			t.Error(err)
		}
		if _, err := json.Marshal(c.result); err != nil {
			t.Error(err)
		}
	})
}
