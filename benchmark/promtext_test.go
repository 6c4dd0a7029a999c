package benchmark

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func everything([]byte) bool { return true }

func TestScrapeText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, page string
		want       []promSample
		wrong      string
	}{
		{"plain", "# HELP a b\n# TYPE a gauge\n\na 1\nb 2.5e3\n", []promSample{{"a", nil, 1}, {"b", nil, 2500}}, ""},
		{"no line end, windows", "a 1\r\nb 2", []promSample{{"a", nil, 1}, {"b", nil, 2}}, ""},
		{"labels", `x:y{a="1",b="two words"} 3`, []promSample{{"x:y", []promLabel{{"a", "1"}, {"b", "two words"}}, 3}}, ""},
		{"spaces and a last comma", ` x { a = "1" , } 3 1700000000000`, []promSample{{"x", []promLabel{{"a", "1"}}, 3}}, ""},
		{"escapes", `x{p="C:\\d",q="say \"a\"\nb",r="\t"} 1`, []promSample{{"x", []promLabel{{"p", `C:\d`}, {"q", "say \"a\"\nb"}, {"r", `\t`}}, 1}}, ""},
		{"braces and hashes in a value", `x{p="} # {,"} 1`, []promSample{{"x", []promLabel{{"p", "} # {,"}}, 1}}, ""},
		{"no labels in braces", `x{} 1`, []promSample{{"x", nil, 1}}, ""},
		{"infinite", "a +Inf\nb -Inf\n", []promSample{{"a", nil, math.Inf(1)}, {"b", nil, math.Inf(-1)}}, ""},
		{"exemplar", `x_bucket{le="1"} 3 # {trace_id="z"} 0.5`, []promSample{{"x_bucket", []promLabel{{"le", "1"}}, 3}}, ""},
		{"end mark", "a 1\n# EOF\n", []promSample{{"a", nil, 1}}, ""},
		{"no value", "ok 1\na\n", nil, "line 2"},
		{"a word", "a many\n", nil, `value "many" is no number`},
		{"too much", "a 1 2 3\n", nil, "at most a time stamp"},
		{"no quotes", "a{b=c} 1\n", nil, "not in quotes"},
		{"no end", `a{b="c} 1`, nil, "has no end"},
		{"ends in an escape", `a{b="c\`, nil, "has no end"},
		{"no brace", `a{b="c" 1`, nil, "wanted , or }"},
		{"no name", `a{="c"} 1`, nil, "wanted NAME"},
		{"bad stamp", "a 1 now\n", nil, "time stamp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []promSample
			err := scanMetrics([]byte(c.page), everything, func(s promSample) {
				s.labels = slices.Clone(s.labels)
				got = append(got, s)
			})
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%v, want %q", err, c.wrong)
				}
				return
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(promSample{}, promLabel{}), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

// TestScrapeSkips: what nobody wants is not even read.
func TestScrapeSkips(t *testing.T) {
	t.Parallel()
	n := 0
	err := scanMetrics([]byte("broken{ 1\nwanted 2\n"), func(name []byte) bool { return string(name) == "wanted" }, func(promSample) { n++ })
	if n != 1 || err != nil {
		t.Errorf("%d samples, %v", n, err)
	}
}

// page reads a page of testdata/metrics.
func page(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "metrics", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzScanMetrics(f *testing.F) {
	f.Add(page(f, "sglang-0.4.6.txt"))
	f.Add([]byte(`x{p="C:\\d",q="say \"a\"\nb"} 1 17 # {a="b"} 2`))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := scanMetrics(text, everything, func(s promSample) {
			if s.name == "" {
				t.Error("a sample without a name")
			}
			for _, l := range s.labels {
				if l.name == "" {
					t.Errorf("%s: a label without a name", s.name)
				}
			}
		})
		r, other := readMetrics(text)
		if err == nil && other != nil {
			t.Errorf("all lines are read, fewer are not: %v", other)
		}
		for _, v := range r.series {
			if math.IsNaN(v) {
				t.Error("a counter that is no number")
			}
		}
	})
}
