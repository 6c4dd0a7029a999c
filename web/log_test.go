package web_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sgtune/trial"
)

// shownLines are the numbers of the lines of a log that a page shows.
func shownLines(text string) []int {
	var out []int
	for _, m := range regexp.MustCompile(`<li id="L(\d+)"`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		out = append(out, n)
	}
	return out
}

func TestLogOpensWhereItMatters(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	f.write("better", 2, "server.log", "one\ntwo\nthree without an end")
	f.write("better", 3, "server.log", "")
	h := f.handler()
	at := "/studies/better/trials/1"
	tests := []struct {
		name, path  string
		first, last int // lines shown, 0 = none
		want        []string
	}{
		{"at its evidence", at, 2469, 2520, []string{`id="L2481" class="evidence worrying"`, "2,632 lines", "&lt;script&gt;"}},
		{"at a line", at + "?line=1000", 988, 1039, []string{`id="L1000"`}},
		{"at the first line", at + "?line=1", 1, 40, nil},
		{"behind the end", at + "?line=999999", 2620, 2632, nil},
		{"other evidence, less before it because of a long line", at + "?line=2490", 2484, 2529, []string{`id="L2490" class="evidence worrying"`}},
		{"a long line", at + "?line=2483", 2471, 2522, []string{"red", "4.9 kB more"}},
		{"a short one, from its end", "/studies/better/trials/2", 1, 3, []string{"three without an end", "3 lines"}},
		{"an empty one", "/studies/better/trials/3", 0, 0, []string{"The log is empty"}},
		{"a search", at + "?q=LINE+1500", 1500, 1500, nil},
		{"warnings", at + "?warn=1", 500, 2500, []string{`id="L2000"`}},
		{"a rank", at + "?rank=3&q=1203", 1203, 1203, nil},
		{"another rank", at + "?rank=4&q=1203", 0, 0, []string{"No line is like that"}},
		{"no rank", at + "?rank=x", 0, 0, []string{"rank is the number"}},
		{"no line", at + "?line=0", 0, 0, []string{"counted from 1"}},
		{"no place", at + "?at=-1", 0, 0, []string{"counted from 0"}},
		{"far behind", at + "?at=999999999999999999", 2620, 2632, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := get(t, h, tt.path)
			text := w.Body.String()
			if w.Code != http.StatusOK || len(text) > most {
				t.Fatalf("status %d, %d bytes", w.Code, len(text))
			}
			lines := shownLines(text)
			if tt.first == 0 && len(lines) > 0 || tt.first > 0 && (len(lines) == 0 || lines[0] != tt.first || lines[len(lines)-1] != tt.last) {
				t.Errorf("lines %v, want %d to %d", lines, tt.first, tt.last)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, bare(text))
				}
			}
			if strings.Contains(text, "\x1b") || strings.Contains(text, "\xff") || strings.Contains(text, nasty) {
				t.Error("bytes of the log are on the page as they are")
			}
		})
	}
}

// TestLogWays follows the links through a log: up to its start and down to its end, without a gap.
func TestLogWays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	h := f.handler()
	for _, way := range []struct {
		word string
		end  int
	}{{"▴ before", 1}, {"after ▾", 2632}} {
		link, seen := "/studies/better/trials/1?line=1200", map[int]bool{}
		for range 200 {
			text := get(t, h, link).Body.String()
			for _, n := range shownLines(text) {
				if seen[n] = true; !strings.Contains(text, fmt.Sprintf("line %d<", n)) && n < 2480 {
					t.Fatalf("line %d has another number", n)
				}
			}
			m := regexp.MustCompile(`href="([^"]*)#log">` + way.word).FindStringSubmatch(text)
			if m == nil {
				break
			}
			link = strings.ReplaceAll(m[1], "&amp;", "&")
		}
		for n := min(1200, way.end); n <= max(1200, way.end); n++ {
			if !seen[n] {
				t.Fatalf("%s: line %d was passed over", way.word, n)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	f.write("better", 2, "page.html", nasty)
	if err := os.Symlink("/etc/passwd", filepath.Join(f.root.Name(), "better", "2", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.path, filepath.Join(f.root.Name(), "better", "2", "database")); err != nil {
		t.Fatal(err)
	}
	f.write("better", 2, ".hidden", "x")
	h := f.handler()
	at := "/studies/better/trials/2/files/"
	for _, name := range []string{
		"link", "database", ".hidden", "..", ".", "%2e%2e", "..%2f..%2f..%2fsgtune.db", "..%5c..%5csgtune.db", "%2fetc%2fpasswd", "nothing", "server.log%00", strings.Repeat("x", 10_000), "2", "%2e%2e%2f1%2fserver.log",
	} {
		w := get(t, h, at+name)
		if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "root:") || strings.Contains(w.Body.String(), "SQLite") {
			t.Errorf("%.40s: status %d\n%.200s", name, w.Code, w.Body)
		}
	}
	w := get(t, h, at+"page.html")
	if w.Code != http.StatusOK || w.Body.String() != nasty || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("HTML: %d %s %v", w.Code, w.Body, w.Header())
	}
	log := "/studies/better/trials/1/files/server.log"
	whole := get(t, h, log).Body.String()
	w = get(t, h, log, func(r *http.Request) { r.Header.Set("Range", "bytes=100-199") })
	if w.Code != http.StatusPartialContent || w.Body.String() != whole[100:200] {
		t.Errorf("a range: %d, %d bytes", w.Code, w.Body.Len())
	}
	w = get(t, h, log+"?from=100&to=200&download=1")
	if w.Body.String() != whole[100:200] || w.Header().Get("Content-Disposition") != `attachment; filename="better-1-100-200-server.log"` {
		t.Errorf("a part: %d bytes, %v", w.Body.Len(), w.Header())
	}
	for _, query := range []string{"?from=x", "?from=-1", "?from=5&to=4"} {
		if w := get(t, h, log+query); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", query, w.Code)
		}
	}
}

// TestHugeLog opens a log of 2 GB at its evidence, searches it and asks for a line, without holding it in memory, and
// without reading it where nobody asks for a line's number. The fast tier has a log that is just too long to be counted.
func TestHugeLog(t *testing.T) { // alone: what the process reads is counted
	size := int64(2 << 30)
	if testing.Short() {
		size = countedWhole + (2 << 20)
	}
	f := newFixture(t, "running")
	offset, line := hugeLog(t, f, size)
	row := &trial.Trial{
		Study: "running", Number: 7, Role: trial.RoleSearch, State: trial.Failed, Dir: "7", CreatedAt: night,
		Verdict: trial.Verdict{Outcome: trial.GPUOOM, Cause: "decode_activation", Text: "GPU 3 ran out of memory", Evidence: evidenceText, Line: line, Offset: offset + 4000},
	}
	if err := f.db.SaveTrial(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	h := f.handler()
	const unhurried = "?q=nothing+is+like+this"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const some = 24 << 20 // bytes: a window, and what the chart of the trial's time takes
	for _, ask := range []struct {
		query string
		most  int64 // bytes read
		want  string
	}{
		{"", some, fmt.Sprintf(`id="L%d" class="evidence`, line)},
		{unhurried, size + some, "search on"},
		{fmt.Sprintf("?line=%d", line+10), size + some, fmt.Sprintf(`id="L%d"`, line+10)},
		{"?line=1", some, `id="L1"`},
	} {
		if testing.Short() && ask.query == unhurried {
			continue
		}
		start := bytesRead(t)
		w := get(t, h, "/studies/running/trials/7"+ask.query)
		if took := bytesRead(t) - start; took > ask.most {
			t.Errorf("%q: %d MB were read, at most %d", ask.query, took>>20, ask.most>>20)
		} else {
			t.Logf("%q: %d kB were read", ask.query, took>>10)
		}
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), ask.want) || w.Body.Len() > most {
			t.Errorf("%q: status %d, %d bytes, wants %s", ask.query, w.Code, w.Body.Len(), ask.want)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 48<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
}

// bytesRead is what this process has read so far, of files and connections.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "rchar: ")
	number, _, _ := strings.Cut(after, "\n")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// countedWhole is the size up to which a log's lines are counted at once.
const countedWhole = 64 << 20

// hugeLog writes a log of about a size whose evidence lies 1 MB before its end.
func hugeLog(t *testing.T, f *fixture, size int64) (offset int64, line int) {
	t.Helper()
	f.write("running", 7, "server.log", "")
	file, err := f.root.OpenFile(filepath.Join("running", "7", "server.log"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	one := "[2026-01-01 22:00:00 TP1] Decode batch, #running-req: 41, #token: 104431, token usage: 0.66, gen throughput (token/s): 1312.4\n"
	block := strings.Repeat(one, (1<<20)/len(one))
	blocks := size / int64(len(block))
	for i := range blocks {
		text := block
		if i == blocks-1 {
			offset, line = i*int64(len(block)), int(i)*strings.Count(block, "\n")+1
			text = "[2026-01-01 22:12:09 TP3] " + evidenceText + "\n" + block
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	return offset, line
}
