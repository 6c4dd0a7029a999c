package sglang_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func helpText(t *testing.T, release string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "help", release+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What --help lists is what the table says of that release: names, choices, which take a value, which are deprecated.
func TestParseHelpOfReleases(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"0.4.9.post6", "0.5.23"} {
		help := sglang.ParseHelp(helpText(t, release))
		table, _ := sglang.FlagsOf(version(t, release))
		delete(help, "help")
		hidden := map[string]bool{"forward-pass-metrics-ipc-name": true, "forward-pass-metrics-worker-id": true}
		for name, want := range table {
			got, ok := help[name]
			if !ok {
				if !hidden[name] {
					t.Errorf("%s: --%s is not found in --help", release, name)
				}
				continue
			}
			slices.Sort(got.Choices)
			choices := slices.Sorted(slices.Values(want.Choices))
			// A deprecation that does not begin the text cannot be seen in --help.
			if got.Canonical != want.Canonical || got.TakesValue != want.TakesValue || got.Deprecated && !want.Deprecated || !slices.Equal(got.Choices, choices) {
				t.Errorf("%s: --%s is %+v in --help, %+v in the table", release, name, got, want)
			}
		}
		for name := range help {
			if !table.Has(name) {
				t.Errorf("%s: --help lists --%s, the table does not", release, name)
			}
		}
	}
}

func TestInferVersion(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"0.4.9.post6", "0.5.23"} {
		got, ok := sglang.InferVersion(sglang.ParseHelp(helpText(t, release)))
		if !ok || got.Version.String() != release || !got.Exact() || got.String() != release {
			t.Errorf("--help of %s is taken for %s (%v)", release, got, ok)
		}
	}
	help := sglang.ParseHelp(helpText(t, "0.5.23"))
	help["brand-new-flag"] = sglang.Flag{Name: "brand-new-flag"}
	help["sim-profile"] = sglang.Flag{Name: "sim-profile"}
	delete(help, "monokernel-backend")
	got, ok := sglang.InferVersion(help)
	if !ok || got.Exact() || got.Extra != 1 || got.Missing != 1 || got.String() != "nearest to 0.5.23 (1 options more, 1 fewer)" {
		t.Errorf("a newer release's --help: %s (%v)", got, ok)
	}
	other := sglang.ParseHelp("usage: other\n\noptions:\n  --port PORT\n  --host HOST\n  --verbose\n")
	if got, ok := sglang.InferVersion(other); ok {
		t.Errorf("another program's --help is taken for SGLang %s", got)
	}
	if got, ok := sglang.InferVersion(sglang.Flags{}); ok {
		t.Errorf("no --help at all is taken for SGLang %s", got)
	}
}

// Every known release is told from its own names alone, also with a tenth of them missing.
func TestInferVersionOfEveryRelease(t *testing.T) {
	t.Parallel()
	for _, v := range sglang.Releases() {
		flags, _ := sglang.FlagsOf(v)
		some := maps.Clone(flags)
		for i, name := range flags.Names() {
			if i%10 == 9 {
				delete(some, name)
			}
		}
		for _, f := range []sglang.Flags{flags, some} {
			if got, ok := sglang.InferVersion(f); !ok || got.Version != v {
				t.Errorf("%d of %d options of %s are taken for %s", len(f), len(flags), v, got)
			}
		}
	}
}

func TestParseHelpEndsAtSecondUsage(t *testing.T) {
	t.Parallel()
	text := "usage: sglang serve\n\noptions:\n  --tp-size N\n  --config FILE\n\nusage: sglang serve (diffusion)\n\noptions:\n  --num-gpus N\n"
	if d := cmp.Diff([]string{"config", "tp-size"}, sglang.ParseHelp(text).Names()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestVersionCommands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command string
		want    []string // each command without its script
	}{
		{"python3 -m sglang.launch_server", []string{"python3 -c"}},
		{"/venv/bin/python3.11 -u -m sglang.launch_server --tp 8", []string{"/venv/bin/python3.11 -c"}},
		{"env LD_LIBRARY_PATH=/x numactl -N0 python -m sglang.launch_server", []string{"env LD_LIBRARY_PATH=/x numactl -N0 python -c"}},
		{"sglang serve", []string{"sh -c", "sglang version"}},
		{"uv run /venv/bin/sglang serve", []string{"uv run sh -c", "uv run /venv/bin/sglang version"}},
		{"./serve.sh", nil},
		{"/opt/serve", nil},
		{"", nil},
	} {
		var got []string
		for _, argv := range sglang.VersionCommands(strings.Fields(tt.command)) {
			var short []string
			for _, w := range argv {
				short = append(short, w)
				if w == "-c" {
					break
				}
			}
			got = append(got, strings.Join(short, " "))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q -want +got:\n%s", tt.command, d)
		}
	}
}

func TestReadVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ output, want, text string }{
		{"sglang version: 0.5.23\ngit revision: abc1234\n", "0.5.23", "0.5.23"},
		{"UserWarning: numpy 1.26\nsglang version: 0.5.24rc1+cu129\n", "0.5.24.dev", "0.5.24rc1+cu129"},
		{"sglang version: 0.0.0.dev0\n", "", "0.0.0.dev0"},
		{"sglang version: unknown\n", "", "unknown"},
		{"No module named sglang 0.5.2\n", "", ""},
		{"", "", ""},
	} {
		v, text, err := sglang.ReadVersion(tt.output)
		if (err == nil) != (tt.want != "") || err == nil && v.String() != tt.want || text != tt.text {
			t.Errorf("ReadVersion(%q) = %s, %q, %v; want %q, %q", tt.output, v, text, err, tt.want, tt.text)
		}
	}
}
