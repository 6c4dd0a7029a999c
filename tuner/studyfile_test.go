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

func TestMistakes(t *testing.T) {
	t.Parallel()
	with := func(lines string) string { return minimal + lines }
	for _, tt := range []struct{ name, file, want string }{
		{"unknown key", with("bugdet: {trials: 3}\n"), "s.yaml:4:1: unknown key `bugdet`; did you mean `budget`?"},
		{"unknown key far from all", with("zzzzzz: 3\n"), "s.yaml:4:1: unknown key `zzzzzz`; remove it; known keys: after, before,"},
		{"unknown nested key", with("measure: {windw: 3s}\n"), "s.yaml:4:11: unknown key `measure.windw`; did you mean `window`?"},
		{"second budget", with("budget: {trials: 3}\nbudget: {wall: 9h}\n"), "s.yaml:5:1: `budget` is given twice, first on line 4; keep one of them"},
		{"negative budget", with("budget: {trials: -3}\n"), "s.yaml:4:18: `budget.trials` is negative"},
		{"negative wall", with("budget: {wall: -9h}\n"), "s.yaml:4:16: budget.wall: `-9h` is negative"},
		{"empty budget", with("budget: {}\n"), "`budget` is empty; write trials, wall or until"},
		{"budget no mapping", with("budget: 30\n"), "s.yaml:4:9: `budget` must be a mapping"},
		{"broken until", with("budget: {until: 25:00}\n"), "budget.until: `25:00` is not a time of day"},
		{"duration without unit", with("measure: {window: 60}\n"), "s.yaml:4:19: measure.window: `60` has no unit; write 60s, 60m or 60h"},
		{"size without unit", with("host: {ram_budget: 400}\n"), "s.yaml:4:20: host.ram_budget: `400` has no unit; write 400GB"},
		{"target above 1", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl, load: {target: 3}}\n", "s.yaml:3:48: workload.load.target: `3` is not between 0 and 1"},
		{"fraction above 1", "server: {model: m}\nspace: {mem-fraction-static: [0.8, 1.5]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:36: mem-fraction-static must be between"},
		{"missing model", "server: {flags: {tp-size: 8}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "s.yaml: `server.model` is missing; add"},
		{"missing space", "server: {model: m}\nworkload: {file: prompts.jsonl}\n", "s.yaml: `space` is missing; add"},
		{"missing workload", "server: {model: m}\nspace: {hicache-size: [0]}\n", "s.yaml: `workload` is missing; add"},
		{"missing workload file", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {load: {concurrency: 4}}\n", "s.yaml: `workload.file` is missing; add"},
		{"workload not there", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: nowhere.jsonl}\n", "s.yaml:3:18: `workload.file` `nowhere.jsonl` does not exist"},
		{"workload is a folder", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: .}\n", "`workload.file` `.` is a folder"},
		{"ssh", with("host: {kind: ssh, address: gpu-box}\n"), "s.yaml:4:14: `host.kind` ssh is not in this version, which has local and simulated"},
		{"slurm", with("host: {kind: slurm, partition: gpu}\n"), "s.yaml:4:14: `host.kind` slurm is not in this version"},
		{"bad kind", with("host: {kind: simulatd}\n"), "`host.kind` cannot be `simulatd`; did you mean `simulated`?"},
		{"simulated key on a local host", with("host: {kind: local, profile: kimi-8x96}\n"), "s.yaml:4:21: `host.profile` is for simulated hosts"},
		{"gate", with("quality: {gate: {}}\n"), "`quality` with a gate is not in this version"},
		{"rate", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl, load: {rate: [1]}}\n", "`workload.load.rate` is not in this version, which has concurrency"},
		{"container", "server: {model: m, container: {image: x}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.container` is not in this version"},
		{"study name", with("study: a/b\n"), "s.yaml:4:8: `study` cannot be `a/b`"},
		{"long study name", with("study: " + strings.Repeat("x", 129) + "\n"), "`study` has 129 characters"},
		{"docker", "server: {model: m, command: [docker, run, x]}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:1:29: `server.command` starts with docker: sgtune could not stop"},
		{"docker as text", "server: {model: m, command: docker run x}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` starts with docker"},
		{"sudo docker", "server: {model: m, command: [sudo, /usr/bin/docker, run, x]}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` starts with docker"},
		{"ampersand", "server: {model: m, command: [python3, x.py, '&']}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` ends in &"},
		{"command as text", "server: {model: m, command: python3 -m sglang.launch_server}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` must be a list of words"},
		{"after and launch", with("after: [systemctl, start, x]\nfinish: {launch: best}\n"), "s.yaml:5:18: `finish.launch` and `after` would both start a server"},
		{"dead knob", "server: {model: m}\nspace: {num-continuous-decode-steps: [1, 2]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:9: `space.num-continuous-decode-steps` does nothing"},
		{"unknown knob", "server: {model: m}\nspace: {mem-fraction-statc: [0.8]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:9: unknown knob `space.mem-fraction-statc`; did you mean `mem-fraction-static`?"},
		{"underscores", "server: {model: m}\nspace: {mem_fraction_static: [0.8]}\nworkload: {file: prompts.jsonl}\n", "did you mean `mem-fraction-static`?"},
		{"alias", "server: {model: m, flags: {tensor-parallel-size: 2, tp-size: 2}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.flags.tp-size` is given twice under two names"},
		{"dashes", "server: {model: m, flags: {--tp-size: 8}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "has dashes; did you mean `tp-size`?"},
		{"broken hicache", "server: {model: m}\nspace: {hicache-size: [0, 48.5]}\nworkload: {file: prompts.jsonl}\n", "hicache-size takes a whole number, not 48.5"},
		{"duplicate value", "server: {model: m}\nspace: {hicache-size: [0, 16, 0]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:31: `space.hicache-size` holds `0` twice"},
		{"no values", "server: {model: m}\nspace: {hicache-size: []}\nworkload: {file: prompts.jsonl}\n", "`space.hicache-size` has no values"},
		{"min above max", "server: {model: m}\nspace: {hicache-size: {min: 9, max: 1, step: 1}}\nworkload: {file: prompts.jsonl}\n", "min 9 is above max 1"},
		{"step 0", "server: {model: m}\nspace: {hicache-size: {min: 0, max: 1, step: 0}}\nworkload: {file: prompts.jsonl}\n", "step 0 is not above 0"},
		{"no step", "server: {model: m}\nspace: {hicache-size: {min: 0, max: 1}}\nworkload: {file: prompts.jsonl}\n", "`space.hicache-size` has no `step`"},
		{"huge range", "server: {model: m}\nspace: {schedule-conservativeness: {min: 0, max: 1, step: 0.0000001}}\nworkload: {file: prompts.jsonl}\n", "has 10000001 values, more than 10000"},
		{"nothing but lossy values", "server: {model: m}\nspace: {kv-cache-dtype: [fp8_e4m3]}\nworkload: {file: prompts.jsonl}\n", "`space.kv-cache-dtype` holds only values that the rule quality"},
		{"one knob twice", "server: {model: m}\nspace: {tp: [1], tp-size: [2]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:18: `space.tp-size` is given twice under two names"},
		{"fixed and searched", "server: {model: m, flags: {hicache-size: 16}}\nspace: {hicache-size: [0, 16]}\nworkload: {file: prompts.jsonl}\n", "`hicache-size` is both a fixed flag and a knob of the space"},
		{"objective needs slo", with("objective: goodput\n"), "`objective` goodput counts what meets the slo"},
		{"confirm", with("confirm: {launches: 9}\n"), "`confirm.launches` cannot be `9`"},
		{"sampler", with("sampler: tpee\n"), "`sampler` cannot be `tpee`; did you mean `tpe`?"},
		{"notify not there", with("finish: {notify: [./nowhere.sh]}\n"), "`finish.notify` runs `./nowhere.sh`, which is not a file"},
		{"not YAML", "server: [a\nspace: b\n", "not readable as YAML"},
		{"anchors", with("x: &a 1\n"), "YAML anchors and aliases are not read"},
		{"second document", "a: 1\n---\nb: 2\n", "a second document starts here"},
		{"only text", "hello", "the study file must be a mapping of keys"},
		{"empty", " \n", "s.yaml: the file is empty"},
		{"comment only", "# x\n", "s.yaml: the file is empty"},
		{"binary", "\x00\x01\x02", "s.yaml: this is a binary file"},
		{"nested too deep", strings.Repeat("[", 5000), "nested too deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, tt.file)
			if err == nil {
				t.Fatal("accepted")
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != 1 || !strings.Contains(lines[0], tt.want) {
				t.Errorf("got:\n%v\nwant one line with:\n%s", err, tt.want)
			}
		})
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
		Name: "s", ReadyTimeout: 25 * time.Minute, Quality: "bf16-only", Sampler: "tpe", Seed: 1,
		Server:    sglang.Server{Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "/models/m", Flags: sglang.Config{}, Env: map[string]string{}},
		Baseline:  sglang.Config{},
		Passed:    sglang.Config{"kv-cache-dtype": "bf16"},
		Host:      tuner.HostSpec{Kind: "local", TunerGone: 15 * time.Minute, ReplayFrom: "host", Profile: "kimi-8x96", TimeScale: 100, Startup: 15 * time.Minute, Seed: 1, RAMBytes: 449e9},
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
		Name: "kimi-overnight", ReadyTimeout: 20 * time.Minute, Port: 30000, Quality: "bf16-only", Confirm: 4, Sampler: "random", Seed: 42, Simulated: true,
		Server: sglang.Server{
			Command: []string{"python3", "-m", "sglang.launch_server", "--port", "{port}"}, Model: "/models/Kimi-K2.5",
			Flags: sglang.Config{"tp-size": 8.0, "trust-remote-code": true, "cuda-graph-bs-decode": []any{1.0, 2.0, 4.0}},
			Env:   map[string]string{"NCCL_IB_DISABLE": "1", "HF_TOKEN": "very-secret-thing"},
		},
		Baseline: sglang.Config{"mem-fraction-static": 0.85, "kv-cache-dtype": "fp8_e4m3"},
		Passed:   sglang.Config{"kv-cache-dtype": "bf16"},
		Before:   []string{"systemctl", "stop", "sglang"}, After: []string{filepath.Join(dir, "start.sh")},
		Host: tuner.HostSpec{
			Kind: "simulated", RAMBudgetText: "50GB/rank", RAMPerRank: 50e9, RAMBudgetBytes: 400e9, TunerGone: 5 * time.Minute, WorkDir: filepath.Join(dir, "work"), ReplayFrom: "here",
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
