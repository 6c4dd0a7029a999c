package launch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/internal/launch"
	"sgtune/sglang"
	"sgtune/tuner"
)

func planOf(args []string, env map[string]string) *launch.Plan {
	return launch.NewPlan(launch.Launch{
		Kind: launch.KindScript, Command: []string{"python3", "-m", "sglang.launch_server"}, Args: args, Env: env, Version: "0.5.23",
	}, launch.PlanOptions{From: "serve.sh"})
}

// TestAnyTextSurvivesTheFile: what YAML might take for something else comes back as it was.
func TestAnyTextSurvivesTheFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"yes", "no", "on", "null", "~", "true", "1", "1.10", "1e3", "0x10", "0o7", "012", "1_000", "12:30", "2026-01-01", ".5", "-1", "inf", ".nan", "=", "a=b",
		"a: b", "a:b", "a #b", "#a", "- a", "-", "--a", "a,b", "[a]", "{a}", "a]", "&a", "*a", "!a", "%a", "@a", "`a`", "|", ">", "?", "? a", "'", `"`, `a"b'c`,
		"it's", `back\slash`, "two  blanks", " lead", "trail ", "tab\there", "line\nbreak", "é", "模型", "💥", "$HOME", "a\u00a0b", "a\u2028b", "\x7f", "{{x}}", "<b>&amp;",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if strings.TrimSpace(text) == "" {
				t.Fatal("empty texts are left out")
			}
			p := planOf([]string{"--model-path", "/m/" + text, "--served-model-name=" + text, "--lora-paths=" + text}, map[string]string{"NCCL_X": text})
			study := readBack(t, written(t, p))
			got := []string{study.Server.Model, study.Server.Flags.Text("served-model-name"), study.Server.Flags.Text("lora-paths"), study.Server.Env["NCCL_X"]}
			if diff := cmp.Diff([]string{"/m/" + text, text, text, text}, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, written(t, p))
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"dead knob", "--num-continuous-decode-steps 4", "does nothing"},
		{"gone", "--enable-ep-moe", "--enable-ep-moe"},
		{"renamed", "--cuda-graph-max-bs 64", "--cuda-graph-max-bs-decode took its place"},
		{"deprecated", "--disable-cuda-graph", "deprecated"},
		{"no flag", "--mem-fracton-static 0.9", "did you mean --mem-fraction-static?"},
		{"warm-up", "--skip-server-warmup", "before it has made one token"},
		{"silent log", "--log-level error", "--log-level error is left out"},
		{"several nodes", "--nnodes 2 --node-rank 1", "run sgtune there"},
		{"secret", "--api-key abcdef", "api-key is a secret"},
		{"lossy cache", "--kv-cache-dtype fp8_e5m2", "every other trial with bf16"},
		{"host cache off", "--hicache-size 32", "does nothing without --enable-hierarchical-cache"},
		{"host cache without prefixes", "--enable-hierarchical-cache --disable-radix-cache", "SGLang refuses"},
		{"pages", "--page-size 64 --chunked-prefill-size 1000", "no multiple of page-size"},
		{"half a pair", "--disaggregation-mode prefill", "prefill/decode pair"},
		{"unknown value", "--tp ${TP}", "fill it in"},
		{"impossible value", "--mem-fraction-static 1.5", "between"},
		{"twice", "--tp 2 --tp-size 4", "more than once"},
		{"stray", "--enable-metrics true", "belongs to no flag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := planOf(append([]string{"--model-path", "/m"}, strings.Fields(c.args)...), nil)
			if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, c.want) }) {
				t.Errorf("warnings %q, want %q", p.Warnings, c.want)
			}
			text := written(t, p)
			readBack(t, text)
			if strings.Contains(text, "abcdef") {
				t.Errorf("the secret is in the file:\n%s", text)
			}
		})
	}
}

// TestAQuietLaunchHasNoWarnings: a warning is worth reading only when there is one.
func TestAQuietLaunchHasNoWarnings(t *testing.T) {
	t.Parallel()
	p := planOf(strings.Fields("--model-path /m --tp-size 8 --mem-fraction-static 0.85 --trust-remote-code --host 0.0.0.0 --port 30000"), nil)
	if len(p.Warnings) > 0 {
		t.Errorf("%q", p.Warnings)
	}
}

// TestSpaces holds for every proposed space: today's values are in it, so that the search knows them.
func TestSpaces(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"", "--mem-fraction-static 0.85", "--mem-fraction-static 0.855", "--mem-fraction-static 0.02", "--mem-fraction-static 0.97", "--mem-fraction-static 0.3",
		"--chunked-prefill-size -1", "--chunked-prefill-size 6144 --page-size 64", "--page-size 5000", "--schedule-conservativeness 0.05", "--schedule-conservativeness 1.25",
		"--max-running-requests 1", "--max-running-requests 8", "--cuda-graph-max-bs-decode 1", "--enable-hierarchical-cache --hicache-size 7",
		"--enable-hierarchical-cache --hicache-ratio 2.5", "--enable-dp-attention --dp-size 8 --tp-size 8", "--disable-radix-cache",
		"--kv-cache-dtype fp8_e4m3 --max-total-tokens 200000",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			p := planOf(append([]string{"--model-path", "/m"}, strings.Fields(args)...), nil)
			study := readBack(t, written(t, p))
			for _, d := range study.Space {
				today, set := study.Baseline[d.Name]
				if set && !slices.Contains(d.Values, today) {
					t.Errorf("%s: today's %v is not among %v", d.Name, today, d.Values)
				}
				if !set && study.Server.Flags[d.Name] != nil {
					t.Errorf("%s is searched and fixed", d.Name)
				}
			}
			if len(study.Space) < 3 {
				t.Errorf("only %d knobs", len(study.Space))
			}
			argv := study.Server.Argv(study.Baseline)
			if want := strings.Fields(args); len(want) > 0 && !slices.Contains(argv, want[0]) {
				t.Errorf("%q does not pass %s", argv, want[0])
			}
		})
	}
}

func TestOnlySizedHostCacheIsSearched(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"--tp 2": true, "--enable-hierarchical-cache --hicache-size 32": true,
		"--disable-radix-cache": false, "--enable-hierarchical-cache": false, "--device cpu": false,
	} {
		p := planOf(append([]string{"--model-path", "/m"}, strings.Fields(args)...), nil)
		got := slices.ContainsFunc(readBack(t, written(t, p)).Space, func(d tuner.Dimension) bool { return d.Name == "hicache-size" })
		if got != want {
			t.Errorf("%s: searched %v, want %v", args, got, want)
		}
	}
}

func TestDefaultsOfAnAssumedVersionMustHoldInAll(t *testing.T) {
	t.Parallel()
	l := launch.Launch{Command: []string{"sglang", "serve"}, Args: strings.Fields("--model-path /m --schedule-policy fcfs --hicache-mem-layout page_first --enable-hierarchical-cache")}
	p := launch.NewPlan(l, launch.PlanOptions{})
	if !p.Assumed || !slices.Equal(p.Defaults, []string{"--schedule-policy fcfs"}) {
		t.Errorf("assumed %v, dropped %q: page_first became the default in 0.5.15 only", p.Assumed, p.Defaults)
	}
	v, err := sglang.ParseVersion("0.5.23")
	if err != nil {
		t.Fatal(err)
	}
	p = launch.NewPlan(l, launch.PlanOptions{Version: v})
	if len(p.Defaults) != 2 {
		t.Errorf("dropped %q", p.Defaults)
	}
}
