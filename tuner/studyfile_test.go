package tuner_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/tuner"
)

var update = flag.Bool("update", false, "rewrite golden files")

// minimal is the smallest valid study; tests add to it.
const minimal = `server: {model: /models/m}
space: {hicache-size: [0, 16]}
workload: {file: prompts.jsonl}
`

func parse(t *testing.T, text string) (*tuner.Study, error) {
	t.Helper()
	dir, err := filepath.Abs("testdata/study")
	if err != nil {
		t.Fatal(err)
	}
	return tuner.ParseStudy("s.yaml", []byte(text), dir)
}

func mustParse(t *testing.T, text string) *tuner.Study {
	t.Helper()
	s, err := parse(t, text)
	if err != nil {
		t.Fatalf("study refused:\n%v", err)
	}
	return s
}

func TestTenMistakes(t *testing.T) {
	t.Parallel()
	_, err := tuner.ReadStudy("testdata/study/ten-mistakes.yaml")
	var problems tuner.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error is %T, want Problems", err)
	}
	got := err.Error() + "\n"
	const golden = "testdata/study/ten-mistakes.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if len(problems) != 10 {
		t.Errorf("%d mistakes, want 10", len(problems))
	}
}

func TestReadStudyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# x\n", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "no.yaml"), "no.yaml: the study file does not exist"},
		{"folder", dir, ": this is a folder"},
		{"large", large, "large.yaml: the file is larger than the"},
		{"endless", "/dev/zero", "/dev/zero: this is a binary file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tuner.ReadStudy(tt.path)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s := mustParse(t, minimal)
	want := &tuner.Study{
		Name: "s", ReadyTimeout: 25 * time.Minute, Quality: "bf16-only", Sampler: "physics", Recover: "reclaim", Seed: 1,
		Server:    sglang.Server{Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "/models/m", Flags: sglang.Config{}, Env: map[string]string{}},
		Baseline:  sglang.Config{},
		Passed:    sglang.Config{"kv-cache-dtype": "bf16"},
		Host:      tuner.HostSpec{Kind: "local", TunerGone: 15 * time.Minute, ReplayFrom: "host", Slurm: tuner.SlurmSpec{Parallel: 1}, Profile: "kimi-8x96", TimeScale: 100, Startup: 15 * time.Minute, Seed: 1, RAMBytes: 449e9},
		Space:     tuner.Space{{Name: "hicache-size", Values: []any{0.0, 16.0}, Kind: tuner.Numeric}},
		Workload:  tuner.WorkloadSpec{File: s.Workload.File, Concurrency: []int{40, 80, 120, 160}, Target: 0.03, Cap: 10 * time.Minute},
		Objective: tuner.Objective{Metric: "output_tok_s"},
		Measure:   tuner.MeasureSpec{Window: time.Minute, Max: 10 * time.Minute, Canary: 90 * time.Second, Fill: 5 * time.Minute},
		Budget:    tuner.Budget{Wall: 9 * time.Hour},
		Finish:    tuner.Finish{Launch: "best"},
		Source:    []byte(minimal),
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if filepath.Base(s.Workload.File) != "prompts.jsonl" || !filepath.IsAbs(s.Workload.File) {
		t.Errorf("workload file %q is not absolute", s.Workload.File)
	}
}

const everything = `study: kimi-overnight
server:
  command: [python3, -m, sglang.launch_server, --port, "{port}"]
  model: /models/Kimi-K2.5
  flags: {tp-size: 8, trust-remote-code: true, port: 30000, cuda-graph-bs-decode: [1, 2, 4]}
  env: {NCCL_IB_DISABLE: "1", HF_TOKEN: very-secret-thing}
  baseline: {mem-fraction-static: 0.85, kv-cache-dtype: fp8_e4m3}
  ready_timeout: 20m
before: [systemctl, stop, sglang]
after: [./start.sh]
host: {kind: simulated, ram_budget: 50GB/rank, profile: kimi-8x96, time_scale: 150, startup: 90s, seed: 3, faults: [prefill_oom, hang], ram: 1TB, tuner_gone: 5m, work_dir: work, replay_from: here}
space:
  mem-fraction-static: {min: 0.80, max: 0.93, step: 0.005}
  hicache-size: {values: [48, 0, 16]}
  schedule-policy: [fcfs, lpm]
  env.NCCL_ALGO: [Ring, Tree]
  max-running-requests: {min: 16, max: 64, step: 16, log: true}
workload:
  file: prompts.jsonl
  load: {concurrency: [160, 40], target: 5%, cap: 4m}
  total: 88000
objective: goodput
slo: {ttft_p95: 30s, tpot_p95: 200ms}
quality: bf16-only
budget: {wall: 9h, until: 7:00, trials: 30}
finish: {notify: [{url: "https://example.org/x"}, {run: [echo, done]}]}
measure: {window: 30s, max: 5m, canary: off, fill: 0s}
confirm: {launches: 4}
sampler: random
seed: 42
`

func TestEverything(t *testing.T) {
	t.Parallel()
	s := mustParse(t, everything)
	dir := filepath.Dir(s.Workload.File)
	want := &tuner.Study{
		Name: "kimi-overnight", ReadyTimeout: 20 * time.Minute, Port: 30000, Quality: "bf16-only", Confirm: 4, Sampler: "random", Recover: "reclaim", Seed: 42, Simulated: true,
		Server: sglang.Server{
			Command: []string{"python3", "-m", "sglang.launch_server", "--port", "{port}"}, Model: "/models/Kimi-K2.5",
			Flags: sglang.Config{"tp-size": 8.0, "trust-remote-code": true, "cuda-graph-bs-decode": []any{1.0, 2.0, 4.0}},
			Env:   map[string]string{"NCCL_IB_DISABLE": "1", "HF_TOKEN": "very-secret-thing"},
		},
		Baseline: sglang.Config{"mem-fraction-static": 0.85, "kv-cache-dtype": "fp8_e4m3"},
		Passed:   sglang.Config{"kv-cache-dtype": "bf16"},
		Before:   []string{"systemctl", "stop", "sglang"}, After: []string{filepath.Join(dir, "start.sh")},
		Host: tuner.HostSpec{
			Kind: "simulated", RAMBudgetText: "50GB/rank", RAMPerRank: 50e9, RAMBudgetBytes: 400e9, TunerGone: 5 * time.Minute, WorkDir: filepath.Join(dir, "work"), ReplayFrom: "here", Slurm: tuner.SlurmSpec{Parallel: 1},
			Profile: "kimi-8x96", TimeScale: 150, Startup: 90 * time.Second, Seed: 3, Faults: []string{"prefill_oom", "hang"}, RAMBytes: 1e12,
		},
		Workload:  tuner.WorkloadSpec{File: filepath.Join(dir, "prompts.jsonl"), Concurrency: []int{40, 160}, Target: 0.05, Cap: 4 * time.Minute, Total: 88000},
		Objective: tuner.Objective{Metric: "goodput", SLO: tuner.SLO{TTFTP95: 30 * time.Second, TPOTP95: 200 * time.Millisecond}},
		Measure:   tuner.MeasureSpec{Window: 30 * time.Second, Max: 4 * time.Minute},
		Budget:    tuner.Budget{Trials: 30, Wall: 9 * time.Hour, Until: "07:00"},
		Finish:    tuner.Finish{Launch: "none", Notify: []tuner.Notify{{URL: "https://example.org/x"}, {Run: []string{"echo", "done"}}}},
		Notes:     []string{"The baseline runs with kv-cache-dtype fp8_e4m3 as you run it; no other trial does (rule quality)."},
	}
	source := string(s.Source)
	space := s.Space
	s.Source, s.Space = nil, nil
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("study (-want +got):\n%s", diff)
	}
	if strings.Contains(source, "very-secret") || !strings.Contains(source, "HF_TOKEN: ***") || !strings.Contains(source, "NCCL_IB_DISABLE: \"1\"") {
		t.Errorf("source is not masked as it should be:\n%s", source)
	}
	if diff := cmp.Diff(tuner.Dimension{Name: "hicache-size", Values: []any{0.0, 16.0, 48.0}, Kind: tuner.Numeric}, space[1]); diff != "" {
		t.Errorf("hicache-size (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tuner.Dimension{Name: "max-running-requests", Values: []any{16.0, 32.0, 48.0, 64.0}, Kind: tuner.Numeric, Log: true}, space[4]); diff != "" {
		t.Errorf("max-running-requests (-want +got):\n%s", diff)
	}
	if space[3].Name != "env.NCCL_ALGO" || space[3].Kind != tuner.Categorical {
		t.Errorf("environment knob read as %+v", space[3])
	}
	base := s.SearchBase()
	if diff := cmp.Diff(sglang.Config{"mem-fraction-static": 0.85, "kv-cache-dtype": "bf16"}, base); diff != "" {
		t.Errorf("search base (-want +got):\n%s", diff)
	}
}

func TestLossyValueIsLeftOut(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "server: {model: m}\nspace:\n  kv-cache-dtype: [bf16, fp8_e4m3]\nworkload: {file: prompts.jsonl}\n")
	if len(s.Excluded) != 1 || s.Excluded[0].Value != "fp8_e4m3" || s.Excluded[0].Rule != "quality" {
		t.Fatalf("excluded %+v, want fp8_e4m3 by quality", s.Excluded)
	}
	if text := s.Excluded[0].Text; !strings.Contains(text, "quality") || !strings.Contains(text, "fp8_e4m3") {
		t.Errorf("text %q names rule and value?", text)
	}
	if diff := cmp.Diff([]any{"bf16"}, s.Space[0].Values); diff != "" {
		t.Errorf("values left (-want +got):\n%s", diff)
	}
	if len(s.Passed) != 0 {
		t.Errorf("passed %v beside the space", s.Passed)
	}
}

func TestFixedKVTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value            string
		flags, base, pas sglang.Config
	}{
		{"bf16", sglang.Config{"kv-cache-dtype": "bf16"}, sglang.Config{}, sglang.Config{}},
		{"fp8_e4m3", sglang.Config{}, sglang.Config{"kv-cache-dtype": "fp8_e4m3"}, sglang.Config{"kv-cache-dtype": "bf16"}},
		{"auto", sglang.Config{}, sglang.Config{"kv-cache-dtype": "auto"}, sglang.Config{"kv-cache-dtype": "bf16"}},
	} {
		t.Run(tt.value, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, "server: {model: m, flags: {kv-cache-dtype: "+tt.value+"}}\nspace: {hicache-size: [0, 16]}\nworkload: {file: prompts.jsonl}\n")
			if diff := cmp.Diff([]sglang.Config{tt.flags, tt.base, tt.pas}, []sglang.Config{s.Server.Flags, s.Baseline, s.Passed}); diff != "" {
				t.Errorf("flags, baseline, passed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJSONStudy(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "{\n\t\"study\": \"j\",\n\t\"server\": {\"model\": \"a \\\"b\\\" \\/c\"},\n\t\"space\": {\"hicache-size\": {\"values\": [0, 16]}},\n\t\"workload\": {\"file\": \"prompts.jsonl\"}\n}\n")
	if s.Name != "j" || s.Server.Model != `a "b" /c` || s.Space.Size() != 2 {
		t.Errorf("read %+v", s)
	}
	_, err := parse(t, "{\n\t\"studdy\": \"j\",\n\t\"server\": {\"model\": \"m\"},\n\t\"space\": {\"hicache-size\": [0]},\n\t\"workload\": {\"file\": \"prompts.jsonl\"}\n}\n")
	if err == nil || err.Error() != "s.yaml:2:2: unknown key `studdy`; did you mean `study`?" {
		t.Errorf("got %v", err)
	}
}

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text string }{
		{"environment", "server: {model: m, env: {A_TOKEN: s3cr3t}}\n"},
		{"short", "server: {model: m, env: {A_TOKEN: s3cr3t, B_KEY: m}}\n"},
		{"quoted", "server:\n  model: m\n  env:\n    MY_PASSWORD: 's3cr3t'\n"},
		{"block", "server:\n  model: m\n  env:\n    MY_SECRET: |\n      s3cr3t\n"},
		{"flag", "server: {model: m, flags: {api-key: s3cr3t}}\n"},
		{"command", "server: {model: m, command: [python3, -m, x, --api-key, s3cr3t]}\n"},
		{"command inline", "server: {model: m, command: [python3, -m, x, --api-key=s3cr3t]}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, tt.text+"space: {hicache-size: [0, 16]}\nworkload: {file: prompts.jsonl}\n")
			if strings.Contains(string(s.Source), "s3cr3t") {
				t.Errorf("source shows it:\n%s", s.Source)
			}
			if all := fmt.Sprint(s.Identity()); strings.Contains(all, "s3cr3t") {
				t.Errorf("identity shows it:\n%s", all)
			}
			report := tuner.Check(s, tuner.CheckInput{})
			if all := fmt.Sprintf("%+v", report); strings.Contains(all, "s3cr3t") {
				t.Errorf("report shows it:\n%s", all)
			}
		})
	}
}

// TestSecretsAreNoKnobs: a configuration is shown everywhere, so no secret may be part of one.
func TestSecretsAreNoKnobs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"server: {model: m}\nspace: {env.HF_TOKEN: [s3cr3t, other]}\n",
		"server: {model: m}\nspace: {api-key: [s3cr3t]}\n",
		"server: {model: m, baseline: {env.WANDB_API_KEY: s3cr3t}}\nspace: {hicache-size: [0, 16]}\n",
		"server: {model: m, baseline: {admin-api-key: s3cr3t}}\nspace: {hicache-size: [0, 16]}\n",
	} {
		_, err := parse(t, text+"workload: {file: prompts.jsonl}\n")
		if err == nil || !strings.Contains(err.Error(), "write it in server.") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s got %v", text, err)
		}
	}
}

func TestUnquotedPort(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "server: {model: m, command: [serve, --port, {port}]}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n")
	if diff := cmp.Diff([]string{"serve", "--port", "{port}"}, s.Server.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}

func TestProblemLinesAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 5000)
	_, err := parse(t, minimal+long+": 1\nobjective: "+long+"\nbefore: "+long+"\nsampler: \"a\\e[31mb\\nc\"\n")
	if err == nil {
		t.Fatal("accepted")
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if len(line) > 400 || !utf8.ValidString(line) || strings.ContainsRune(line, '\x1b') {
			t.Errorf("line of %d bytes: %q", len(line), line)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	old := mustParse(t, everything).Identity()
	for _, tt := range []struct {
		name, from, to string
		want           []string
	}{
		{"budget, finish, confirm and the space are not part of it", "trials: 30", "trials: 31", nil},
		{"secret", "very-secret-thing", "another", nil},
		{"flag", "tp-size: 8", "tp-size: 4", []string{"server.flags.tp-size was 8, is 4"}},
		{"level", "[160, 40]", "[160]", []string{"workload.concurrency was [40 160], is [160]"}},
		{"slo", "ttft_p95: 30s, ", "", []string{"objective.ttft_p95 was 30s, is gone"}},
		{"baseline", "{mem-fraction-static: 0.85,", "{schedule-policy: lpm, mem-fraction-static: 0.85,", []string{"server.baseline.schedule-policy is new: lpm"}},
		{"host seed", "seed: 3,", "seed: 4,", []string{"host.seed was 3, is 4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(everything, tt.from) {
				t.Fatalf("%q is not in the file", tt.from)
			}
			now := mustParse(t, strings.Replace(everything, tt.from, tt.to, 1)).Identity()
			if diff := cmp.Diff(tt.want, tuner.DiffIdentity(old, now)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzReadStudy(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(everything))
	for _, glob := range []string{"testdata/study/*.yaml", "../examples/*.yaml"} {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", glob, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		s, err := tuner.ParseStudy("s.yaml", source, "testdata/study")
		if err == nil {
			s.Identity()
			if s.Name == "" || len(s.Space) == 0 || len(s.Workload.Concurrency) == 0 {
				t.Fatalf("accepted an incomplete study: %+v", s)
			}
			return
		}
		var problems tuner.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("error is %T (%v), want Problems", err, err)
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, "s.yaml:") || len(line) > 400 {
				t.Fatalf("bad line %q", line)
			}
		}
	})
}
