package hosttest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostNotApplicable is how many cells of all kinds together may be n/a.
const mostNotApplicable = 10

// columns are those of the first table of docs/reliability.md: the kind, and the test that runs its cells.
var columns = []struct{ title, kind, test string }{
	{"local", "local", "host.TestLocalConforms"},
	{"simulated", "simulated", "host.TestSimulatedConforms"},
	{"remote", "remote", "host.TestRemoteConforms"},
	{"ssh", "gpu-host", "test/hosts.TestDirectConforms"},
	{"jump", "gpu-via-jump", "test/hosts.TestJumpConforms"},
	{"Slurm", "slurm", "test/slurm.TestConforms"},
}

var (
	seconds  = regexp.MustCompile(`^(-|\d+(\.\d+)?)$`)
	testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestReliabilityDoc: the page tells of each fault and each kind of host what the code says of them, and names tests that exist.
func TestReliabilityDoc(t *testing.T) {
	b, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := tablesOf(string(b))
	if len(tables) != 2 {
		t.Fatalf("%d tables, want 2", len(tables))
	}
	tests := everyTest(t)
	faultTable(t, tables[0], tests)
	names := map[string]bool{}
	for _, row := range tables[1][1:] {
		if len(row) != 5 || slices.Contains(row, "") {
			t.Errorf("%q: want fault, what happens, what is kept, seconds, test", row)
			continue
		}
		name := strings.Trim(row[4], "`")
		if !tests[name] || names[name] {
			t.Errorf("%s: the test %s is not there, or stands for two faults", row[0], name)
		}
		names[name] = true
	}
}

func faultTable(t *testing.T, table [][]string, tests map[string]bool) {
	t.Helper()
	head := []string{"fault", "what happens", "what is kept"}
	for _, c := range columns {
		head = append(head, c.title)
		if !tests[c.test] {
			t.Errorf("%s: there is no %s", c.title, c.test)
		}
	}
	if !slices.Equal(table[0], head) {
		t.Fatalf("the head is %q, want %q", table[0], head)
	}
	if len(table)-1 != len(faults) {
		t.Fatalf("%d rows, want %d", len(table)-1, len(faults))
	}
	for i, row := range table[1:] {
		if row[0] != faults[i].name || row[1] == "" || row[2] == "" {
			t.Errorf("row %d is %q, want fault %q", i+1, row, faults[i].name)
		}
		for j, c := range columns {
			why, na := notApplicable[c.kind][row[0]]
			if got := row[3+j]; na && got != "n/a: "+why || !na && !seconds.MatchString(got) {
				t.Errorf("%s on %s: %q; n/a %q", row[0], c.title, got, why)
			}
		}
	}
}

// What is not applicable is a cell of a kind that exists, and there is not much of it.
func TestNotApplicable(t *testing.T) {
	cells := map[string]bool{}
	for _, c := range slices.Concat(faults, details) {
		if cells[c.name] {
			t.Errorf("two cells are called %q", c.name)
		}
		cells[c.name] = true
	}
	n := 0
	for kind, list := range notApplicable {
		if !slices.ContainsFunc(columns, func(c struct{ title, kind, test string }) bool { return c.kind == kind }) {
			t.Errorf("there is no kind %q", kind)
		}
		for name, why := range list {
			n++
			if !cells[name] || why == "" {
				t.Errorf("%s: n/a %q: %q", kind, name, why)
			}
		}
	}
	if n > mostNotApplicable {
		t.Errorf("%d cells are n/a, at most %d may be: %v", n, mostNotApplicable, slices.Sorted(maps.Keys(notApplicable)))
	}
	b, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{elsewhere, fmt.Sprintf("%d cells are n/a in all", n)} {
		if !strings.Contains(string(b), want) {
			t.Errorf("docs/reliability.md lacks %q", want)
		}
	}
}

// tablesOf are the tables of a Markdown text as rows of cells, without the lines below their heads.
func tablesOf(text string) [][][]string {
	var tables [][][]string
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		row, ok := strings.CutPrefix(line, "|")
		if !ok {
			inside = false
			continue
		}
		if !inside {
			inside, tables = true, append(tables, nil)
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(row), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if strings.Trim(strings.Join(cells, ""), "-: ") != "" {
			tables[len(tables)-1] = append(tables[len(tables)-1], cells)
		}
	}
	return tables
}

// everyTest lists the tests of the tree as FOLDER.NAME.
func everyTest(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testName.FindAllSubmatch(b, -1) {
				tests[path.Dir(strings.TrimPrefix(filepath.ToSlash(file), "../../"))+"."+string(m[1])] = true
			}
		}
	}
	return tests
}
