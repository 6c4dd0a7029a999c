package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"sgtune/export"
	"sgtune/sglang"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var formats = map[string]func(io.Writer, export.Profile) error{"sh": export.WriteShell, "yaml": export.WriteSGLangYAML}

// kimi is the founding case after its confirmation.
func kimi() export.Profile {
	return export.Profile{
		Study: "kimi-overnight", Trial: 12, Confirmed: true, Version: "0.5.23", Date: time.Date(2026, 1, 2, 6, 31, 0, 0, time.UTC),
		Server: sglang.Server{
			Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "/models/Kimi-K2.5",
			Flags: sglang.Config{"tp-size": 8.0, "trust-remote-code": true, "mem-fraction-static": 0.85},
			Env:   map[string]string{"NCCL_IB_DISABLE": "1"},
		},
		Config:  sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0, "chunked-prefill-size": 8192.0, "env.NCCL_ALGO": "Ring"},
		Figures: []string{"2,104 tok/s at 120 clients; 41 ran at once", "better by 14.2%: 95% interval +11.6% to +16.9%, 5 launches each"},
	}
}

// awkward has everything that needs quoting or leaving out.
func awkward() export.Profile {
	return export.Profile{
		Study: "odd", Trial: 3, Simulated: true,
		Server: sglang.Server{
			Command: []string{"/opt/my tools/sgtune", "sim-server", "--sim-profile", "kimi-8x96", "--log-level", "info"},
			Model:   "/models/it's a \"model\"\nof $HOME `two` lines \\ and ünïcode",
			Flags: sglang.Config{
				"api-key": "***", "served-model-name": "no", "json-model-override-args": `{"rope": 1}`, "disable-cuda-graph": true,
				"enable-dp-attention": true, "dp-size": 8.0, "sim-time-scale": 100.0, "lora-paths": []any{"a=/l/a", "b=/l/b c"},
				"enable-mixed-chunk": false, "trust-remote-code": true, "port": "{port}", "enable-tf32-matmul": true,
			},
			Env: map[string]string{"HF_TOKEN": "${HF_TOKEN}", "WANDB_API_KEY": "***", "GREETING": "don't\nbreak"},
		},
		Config: sglang.Config{
			"hicache-size": 0.0, "cuda-graph-bs-decode": []any{1.0, 2.0, 4.0}, "schedule-conservativeness": 1.3,
			"chunked-prefill-size": -1.0, "kv-cache-dtype": "bf16",
		},
		Figures: []string{"a figure\nexec rm -rf /"},
	}
}

func baseline() export.Profile {
	p := kimi()
	p.Trial, p.Baseline, p.Confirmed, p.Config, p.Version, p.Figures = 0, true, false, sglang.Config{"mem-fraction-static": 0.85}, "", nil
	return p
}

func write(t testing.TB, format string, p export.Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := formats[format](&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]export.Profile{"kimi": kimi(), "awkward": awkward(), "baseline": baseline()} {
		for format := range formats {
			t.Run(name+"."+format, func(t *testing.T) {
				t.Parallel()
				got := write(t, format, p)
				file := filepath.Join("testdata", name+"."+format+".golden")
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestCommentsSayWhatIsNotSo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                            string
		baseline, confirmed, simulated  bool
		wantUnconfirmed, wantSimulation bool
	}{
		{"confirmed", false, true, false, false, false},
		{"baseline", true, false, false, false, false},
		{"unconfirmed", false, false, false, true, false},
		{"simulated", false, true, true, false, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := kimi()
			p.Baseline, p.Confirmed, p.Simulated = test.baseline, test.confirmed, test.simulated
			for format := range formats {
				text := write(t, format, p)
				if strings.Contains(text, "UNCONFIRMED") != test.wantUnconfirmed || strings.Contains(text, "SIMULATED") != test.wantSimulation {
					t.Errorf("%s:\n%s", format, text)
				}
			}
		})
	}
}

// TestNoSecretIsShown holds for values that were stored unmasked by mistake, too.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	p := kimi()
	const secret = "s3cr3t"
	p.Server.Command = append(p.Server.Command, "--admin-api-key", secret)
	p.Server.Flags["api-key"] = secret
	p.Server.Env = map[string]string{"HF_TOKEN": secret, "DB_PASSWORD": secret, "A_SECRET": secret, "AWS_KEY": secret}
	for format := range formats {
		text := write(t, format, p)
		if strings.Contains(text, secret) {
			t.Errorf("%s shows a secret:\n%s", format, text)
		}
		for _, want := range []string{"${HF_TOKEN}", "${DB_PASSWORD}", "${A_SECRET}", "${AWS_KEY}", "${SGLANG_API_KEY}", "${SGLANG_ADMIN_API_KEY}"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s:\n%s", format, want, text)
			}
		}
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*export.Profile){
		"NUL in a word":     func(p *export.Profile) { p.Server.Model = "a\x00b" },
		"bytes":             func(p *export.Profile) { p.Config["x"] = "\xff" },
		"bad variable name": func(p *export.Profile) { p.Server.Env["A; rm -rf /"] = "1" },
		"no command":        func(p *export.Profile) { p.Server.Command = nil },
	} {
		p := kimi()
		change(&p)
		for format, f := range formats {
			if err := f(io.Discard, p); err == nil {
				t.Errorf("%s: %s was written", name, format)
			}
		}
	}
}

// TestShellCheck runs the linter that the contract names.
func TestShellCheck(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("shellcheck")
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("shellcheck is not installed; CI has it")
		}
		t.Fatal(err)
	}
	odd := awkward()
	odd.Server.Model = "/models/\u2018curly\u2019 \u201cquotes\u201d\u00a0and\rmore '\\'"
	for name, p := range map[string]export.Profile{"kimi": kimi(), "awkward": awkward(), "baseline": baseline(), "odd": odd} {
		file := filepath.Join(t.TempDir(), name+".sh")
		if err := os.WriteFile(file, []byte(write(t, "sh", p)), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), tool, "--severity=warning", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// runShell runs an exported script whose command prints its own words and returns them.
func runShell(t testing.TB, script string, env ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nscript:\n%s", err, out, script)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// printer is a command that prints the words after it.
var printer = []string{"printf", `%s\000`}

func TestShellStartsTheSameWords(t *testing.T) {
	t.Parallel()
	p := awkward()
	p.Server.Command = printer
	delete(p.Server.Flags, "api-key")
	p.Server.Flags["port"] = 30000.0
	want := p.Server.Argv(p.Config)[len(printer):]
	got := runShell(t, write(t, "sh", p), "HF_TOKEN=a", "WANDB_API_KEY=b")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestShellSetsTheEnvironment(t *testing.T) {
	t.Parallel()
	p := awkward()
	p.Server.Command = []string{"sh", "-c", `printf '%s|%s|%s|%s' "$GREETING" "$HF_TOKEN" "$WANDB_API_KEY" "$NCCL_ALGO"`}
	p.Config["env.NCCL_ALGO"] = "Ring"
	got := runShell(t, write(t, "sh", p), "HF_TOKEN=a b", "WANDB_API_KEY=w", "SGLANG_API_KEY=k")
	if want := "don't\nbreak|a b|w|Ring"; got[0] != want {
		t.Errorf("got %q, want %q", got[0], want)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", write(t, "sh", p))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "HF_TOKEN") {
		t.Errorf("without the secret: %v, %s", err, out)
	}
}

// readYAML turns a --config file into words as SGLang's ConfigArgumentMerger does, all booleans
// being store_true flags.
func readYAML(t testing.TB, text string) map[string][]string {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out := map[string][]string{}
	for key, value := range file {
		switch v := value.(type) {
		case bool:
			out["--"+key] = nil
		case []any:
			for _, x := range v {
				out["--"+key] = append(out["--"+key], plain(t, x))
			}
		default:
			out["--"+key] = []string{plain(t, v)}
		}
	}
	return out
}

func plain(t testing.TB, v any) string {
	t.Helper()
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// byFlag groups a command line by flag.
func byFlag(words []string) map[string][]string {
	out := map[string][]string{}
	flag := ""
	for _, w := range words {
		if strings.HasPrefix(w, "--") {
			flag = w
			out[flag] = nil
			continue
		}
		out[flag] = append(out[flag], w)
	}
	return out
}

func TestYAMLSaysTheSame(t *testing.T) {
	t.Parallel()
	p := kimi()
	p.Server.Flags["served-model-name"] = "no"
	p.Server.Flags["revision"] = "1e3"
	p.Server.Flags["cuda-graph-bs-decode"] = []any{1.0, 2.0}
	p.Server.Model = "/models/it's: a #\n\"model\" \\ ü\x7f"
	want := byFlag(p.Server.Argv(p.Config)[len(p.Server.Command):])
	if diff := cmp.Diff(want, readYAML(t, write(t, "yaml", p))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestYAMLKeepsTheParsersRules(t *testing.T) {
	t.Parallel()
	text := write(t, "yaml", awkward())
	got := readYAML(t, text)
	for _, refused := range []string{
		"--disable-cuda-graph", "--enable-dp-attention", "--lora-paths", "--enable-tf32-matmul", "--api-key", "--dp-size",
		"--hicache-size", "--enable-hierarchical-cache", "--enable-mixed-chunk",
	} {
		if _, found := got[refused]; found {
			t.Errorf("%s is in the file:\n%s", refused, text)
		}
	}
	want := map[string][]string{
		"--attn-dp-size": {"8"}, "--disable-decode-cuda-graph": nil, "--disable-prefill-cuda-graph": nil, "--chunked-prefill-size": {"-1"},
		"--served-model-name": {"no"}, "--port": {"30000"},
	}
	for flag, values := range want {
		if diff := cmp.Diff(values, got[flag]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flag, diff)
		}
	}
	for _, beside := range []string{"--lora-paths a=/l/a 'b=/l/b c'", "--enable-tf32-matmul", `--api-key "${SGLANG_API_KEY}"`, "--config odd.sglang.yaml"} {
		if !strings.Contains(text, beside) {
			t.Errorf("the command has no %s:\n%s", beside, text)
		}
	}
	for _, not := range []string{"--sim-", "sim-time-scale", "null"} {
		if strings.Contains(text, not) {
			t.Errorf("%s is in the file:\n%s", not, text)
		}
	}
}

func FuzzShellQuoting(f *testing.F) {
	for _, seed := range []string{"/models/Kimi-K2.5", "it's", `a "b" \ c`, "$HOME `id` $(id)", "a\nb\r\tc", "", "~", "*?[]", "-n", "é\u2028", "!x", "#x", "a=b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) || strings.HasPrefix(text, "--") || strings.Contains(text, "{port}") {
			t.Skip("cannot be a value")
		}
		p := export.Profile{Study: "f", Server: sglang.Server{Command: printer, Flags: sglang.Config{"a": text, "b": []any{text, text}}}}
		want := p.Server.Argv(nil)[len(printer):]
		if strings.HasPrefix(text, "${") {
			t.Skip("a reference")
		}
		if diff := cmp.Diff(want, runShell(t, write(t, "sh", p))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.Server.Flags = sglang.Config{"a": text}
		if got := readYAML(t, write(t, "yaml", p))["--a"]; len(got) != 1 || got[0] != text {
			t.Errorf("yaml: got %q, want %q", got, text)
		}
	})
}

// TestContainer: the script runs the runtime with the image and the user's arguments; the yaml names the image and says
// how the file gets into the container.
func TestContainer(t *testing.T) {
	t.Parallel()
	p := kimi()
	p.Server.Env["HF_TOKEN"] = "${HF_TOKEN}"
	p.Server.Container = &sglang.Container{Runtime: "docker", Image: "lmsysorg/sglang:v0.5.5", Args: []string{"--gpus", "all", "-v", "/my models:/models"}}
	var script, file bytes.Buffer
	if err := errors.Join(export.WriteShell(&script, p), export.WriteSGLangYAML(&file, p)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"exec docker run \\\n  --rm \\\n  --network host \\\n  --gpus all -v '/my models:/models' -e HF_TOKEN -e NCCL_ALGO -e NCCL_IB_DISABLE lmsysorg/sglang:v0.5.5 python3 -m sglang.launch_server",
		"export NCCL_ALGO=Ring", `export HF_TOKEN="${HF_TOKEN}"`, "# measured in a docker container of the image lmsysorg/sglang:v0.5.5",
	} {
		if !strings.Contains(script.String(), want) {
			t.Errorf("the script lacks %q:\n%s", want, script.String())
		}
	}
	if _, err := exec.LookPath("shellcheck"); err == nil {
		cmd := exec.CommandContext(t.Context(), "shellcheck", "-")
		cmd.Stdin = &script
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("shellcheck: %v\n%s", err, out)
		}
	}
	want := `docker run --rm --network host --gpus all -v '/my models:/models' -e HF_TOKEN -e NCCL_ALGO -e NCCL_IB_DISABLE -v "$PWD/kimi-overnight.sglang.yaml:/kimi-overnight.sglang.yaml:ro" ` +
		"lmsysorg/sglang:v0.5.5 python3 -m sglang.launch_server --config /kimi-overnight.sglang.yaml"
	if !strings.Contains(file.String(), want) {
		t.Errorf("the yaml lacks %q:\n%s", want, file.String())
	}
}
