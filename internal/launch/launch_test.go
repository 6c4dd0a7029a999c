package launch_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/internal/launch"
	"sgtune/sglang"
	"sgtune/tuner"
)

var update = flag.Bool("update", false, "rewrite the golden study files")

// outside is the reader's environment in these tests.
func outside(name string) (string, bool) {
	value, ok := map[string]string{"HOME": "/home/op", "SLURM_JOB_ID": "4711"}[name]
	return value, ok
}

func read(t *testing.T, file string) []launch.Launch {
	t.Helper()
	path := filepath.Join("testdata", "launches", file)
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opt := launch.Options{Path: "/srv/llm/" + file, Lookup: outside, ReadFile: func(name string) ([]byte, error) {
		rel, ok := strings.CutPrefix(name, "/srv/llm/")
		if !ok {
			return nil, os.ErrNotExist
		}
		return os.ReadFile(filepath.Join("testdata", "launches", rel))
	}}
	launches, err := launch.Read(file, source, opt)
	if err != nil {
		t.Fatal(err)
	}
	return launches
}

// launchCase is one launch as such files exist, and the arguments SGLang gets from it, by full names
// and without host, port, secrets, and what is the default.
type launchCase struct {
	file    string
	command string
	args    []string
	env     map[string]string
	version string
}

var launchCases = []launchCase{
	{
		file: "deepseek-two-nodes.sh", command: "/opt/sglang/venv/bin/python3 -m sglang.launch_server",
		args: []string{
			"--model-path /models/DeepSeek-V3-0324", "--tp-size 16", "--nnodes 2", "--dist-init-addr 10.10.0.11:20000", "--trust-remote-code",
			"--enable-dp-attention", "--dp-size 8", "--mem-fraction-static 0.89", "--chunked-prefill-size 65536",
		},
		env: map[string]string{"NCCL_IB_HCA": "mlx5_0,mlx5_1,mlx5_2,mlx5_3", "NCCL_SOCKET_IFNAME": "bond0", "GLOO_SOCKET_IFNAME": "bond0"},
	},
	{
		file: "kimi-docker.sh", command: "python3 -m sglang.launch_server", version: "0.5.9",
		args: []string{
			"--model-path /models/Kimi-K2.5", "--tp-size 8", "--mem-fraction-static 0.88", "--enable-hierarchical-cache", "--hicache-size 48",
			"--tool-call-parser kimi_k2", "--reasoning-parser kimi_k2", "--trust-remote-code",
		},
		env: map[string]string{"NCCL_DEBUG": "WARN", "SGLANG_VLM_CACHE_SIZE_MB": "0"},
	},
	{
		file: "sglang-qwen.service", command: "/srv/sglang/venv/bin/python -u -m sglang.launch_server",
		args: []string{
			"--model-path /models/Qwen3-32B", "--tp-size 4", "--served-model-name Qwen 3 32B", "--chat-template /srv/sglang/templates/qwen3.jinja",
			"--schedule-policy lpm", "--stream-interval 4",
		},
		env: map[string]string{"HF_HOME": "/data/hf cache", "CUDA_VISIBLE_DEVICES": "0,1,2,3", "EXTRA": "--schedule-policy lpm --stream-interval 4"},
	},
	{
		file: "compose.yaml", command: "python3 -m sglang.launch_server", version: "0.5.6.post2",
		args: []string{
			"--model-path /models/Llama-3.3-70B-Instruct", "--tp-size 4", "--context-length 32768", "--mem-fraction-static 0.9", "--cuda-graph-max-bs 128",
			`--json-model-override-args {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}`,
		},
		env: map[string]string{"NCCL_P2P_LEVEL": "NVL", "SGLANG_TORCH_PROFILER_DIR": "/tmp/prof"},
	},
	{
		file: "deployment.yaml", command: "python3 -m sglang.launch_server", version: "0.5.15",
		args: []string{
			"--model-path /models/GLM-4.5-Air", "--tp-size 8", "--ep-size 8", "--attention-backend fa3", "--max-running-requests 96",
			"--speculative-algorithm EAGLE", "--speculative-num-steps 3", "--speculative-eagle-topk 1", "--speculative-num-draft-tokens 4",
		},
		env: map[string]string{"NCCL_IB_DISABLE": "1"},
	},
	{
		file: "mixtral.sbatch", command: "python -m sglang.launch_server", version: "0.5.12",
		args: []string{
			"--model-path /scratch/models/Mixtral-8x22B-Instruct", "--tp-size 4", "--mem-fraction-static 0.87", "--disable-radix-cache",
			"--schedule-conservativeness 0.5",
		},
		env: map[string]string{"OMP_NUM_THREADS": "8"},
	},
	{
		file: "uv-run.sh", command: "uv run --python 3.12 --with sglang[all]==0.5.20 python -m sglang.launch_server", version: "0.5.20",
		args: []string{
			"--model-path /srv/llm/models/gemma-3-27b-it", "--tp-size 2", "--dtype bfloat16", "--cuda-graph-max-bs-decode 64", "--enable-metrics",
			"--random-seed 42", "--swa-full-tokens-ratio 0.5",
		},
		env: map[string]string{"HF_HUB_OFFLINE": "1"},
	},
	{
		file: "nohup-env.sh", command: "numactl --cpunodebind=1 --membind=1 /opt/venv/bin/python3 -m sglang.launch_server",
		args: []string{
			"--model-path /models/Llama 3.1 8B (int8)", "--tp-size 4", "--quantization w8a8_int8", "--num-continuous-decode-steps 4",
			"--page-size 16", "--chunked-prefill-size 4096",
		},
		env: map[string]string{"CUDA_VISIBLE_DEVICES": "4,5,6,7", "SGLANG_TORCH_PROFILER_DIR": "/tmp/my traces", "NCCL_P2P_DISABLE": "1"},
	},
	{
		file: "arrays.sh", command: "python3 -m sglang.launch_server",
		args: []string{
			"--model-path /models/Qwen2.5-VL-72B-Instruct", "--trust-remote-code", "--enable-cache-report", "--mem-fraction-static 0.82",
			"--max-total-tokens 150000", "--lora-paths a=/loras/a b=/loras/b", "--max-loras-per-batch 2", "--cuda-graph-bs-decode 1 2 3 4 8 16 32",
			"--mm-attention-backend fa3", "--tp-size 4", "--served-model-name vl",
		},
	},
	{
		file: "sglang.yaml", command: "python3 -m sglang.launch_server",
		args: []string{
			"--model-path /models/Qwen3-235B-A22B", "--tp-size 8", "--ep-size 8", "--trust-remote-code", "--mem-fraction-static 0.9",
			"--cuda-graph-bs-decode 1 2 4 8 16 32 64", "--kv-cache-dtype fp8_e4m3", `--json-model-override-args {"max_position_embeddings": 131072}`,
		},
	},
	{
		file: "abbreviated.sh", command: "python -m sglang.launch_server",
		args: []string{
			"--model-path meta-llama/Llama-3.1-8B-Instruct", "--tp-size 2", "--dp-size 2", "--mem-fraction-static 0.9", "--max-running-requests 128",
			"--schedule-conservativeness 0.8", "--cuda-graph-max-bs-decode 256", "--enable-mixed-chunk", "--chunked-prefill-size 8192",
			"--attention-backend flashinfer", "--disable-radix-cache",
		},
	},
	{
		file: "sglang-serve.sh", command: "taskset -c 0-31 sglang serve --model-type llm",
		args: []string{"--model-path openai/gpt-oss-120b", "--tp-size 4", "--mem-fraction-static 0.86", "--reasoning-parser gpt-oss", "--stream-interval 2"},
	},
	{
		file: "arguments.txt", command: "python3 -m sglang.launch_server",
		args: []string{"--model-path /models/Mistral-Small-24B", "--mem-fraction-static 0.8", "--chunked-prefill-size -1", "--max-prefill-tokens 32768", "--schedule-policy lpm"},
	},
	{
		file: "podman-shell.sh", command: "python3 -m sglang.launch_server", version: "0.5.18",
		args: []string{
			"--model-path deepseek-ai/DeepSeek-V3.2", "--tp-size 8", "--kv-cache-dtype bf16", "--page-size 64", "--enable-dp-attention", "--dp-size 8",
			"--speculative-algorithm EAGLE", "--hicache-storage-backend file", "--enable-hierarchical-cache", "--hicache-ratio 2.5",
			`--hicache-storage-backend-extra-config {"prefetch_threshold": 256}`, "--watchdog-timeout 1200",
		},
		env: map[string]string{"HF_HUB_ENABLE_HF_TRANSFER": "1"},
	},
	{
		file: "control.sh", command: "/opt/sglang/bin/python -m sglang.launch_server",
		args: []string{
			"--model-path /models/Qwen3-Next-80B", "--tp-size 8", "--mamba-full-memory-ratio 0.7", "--context-length 262144",
			"--max-mamba-cache-size 160", "--watchdog-timeout 900",
		},
	},
	{
		file: "Dockerfile", command: "python3 -m sglang.launch_server", version: "0.5.10.post1",
		args: []string{"--model-path /models/phi 4", "--tp-size 2", "--enable-mixed-chunk", "--max-running-requests 48"},
		env:  map[string]string{"HF_HUB_OFFLINE": "1", "NCCL_NVLS_ENABLE": "0"},
	},
	{
		file: "restart-loop.sh", command: "python3 -m sglang.launch_server",
		args: []string{"--model-path /mnt/models/gemma-3-12b-it", "--tp-size 2", "--schedule-policy lpm", "--enable-metrics", "--mem-fraction-static 0.84"},
		env:  map[string]string{"NCCL_DEBUG": "INFO"},
	},
	{
		file: "simulated.sh", command: "sgtune sim-server", version: "0.5.9",
		args: []string{"--model-path /models/Kimi-K2.5", "--tp-size 8", "--mem-fraction-static 0.85", "--sim-version 0.5.9", "--sim-time-scale 200", "--sim-profile kimi-8x96"},
	},
}

// TestBaselineIsWhatRunsToday goes the whole way: the source is read, a study is written, the tuner
// reads it, and trial 0 would be launched with the same arguments as today.
func TestBaselineIsWhatRunsToday(t *testing.T) {
	t.Parallel()
	for _, c := range launchCases {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			launches := read(t, c.file)
			if len(launches) != 1 {
				t.Fatalf("%d launches: %v", len(launches), launches)
			}
			if launches[0].Version != c.version {
				t.Errorf("version %q, want %q", launches[0].Version, c.version)
			}
			plan := launch.NewPlan(launches[0], launch.PlanOptions{From: c.file})
			text := written(t, plan)
			golden(t, c.file+".study.yaml", text)
			study := readBack(t, text)
			if got := strings.Join(study.Server.Command, " "); got != c.command {
				t.Errorf("command %q, want %q", got, c.command)
			}
			argv := study.Server.Argv(study.Baseline)
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.args)), canonical(argv[len(study.Server.Command):])); diff != "" {
				t.Errorf("arguments of the baseline (-want +got):\n%s", diff)
			}
			want := c.env
			if want == nil {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, study.Server.Env); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

// canonical groups argv words by flag, sorted.
func canonical(words []string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, "--") || len(out) == 0 {
			out = append(out, w)
			continue
		}
		out[len(out)-1] += " " + w
	}
	slices.Sort(out)
	return out
}

func written(t *testing.T, plan *launch.Plan) string {
	t.Helper()
	var b strings.Builder
	if err := plan.WriteStudy(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readBack reads a study as the tuner does, a workload filled in.
func readBack(t *testing.T, text string) *tuner.Study {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "FILL-IN.jsonl"), []byte("{\"prompt\": \"a\", \"output_tokens\": 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	study, err := tuner.ParseStudy("study.yaml", []byte(text), dir)
	if err != nil {
		t.Fatalf("the tuner refuses the file: %v\n%s", err, text)
	}
	return study
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", "study", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got; rewrite with -update):\n%s", path, diff)
	}
}

func TestEverySecretStaysOut(t *testing.T) {
	t.Parallel()
	for file, secret := range map[string]string{
		"deepseek-two-nodes.sh": "hf_Zk3sQp0aB9xYv7LtRw2e", "kimi-docker.sh": "hf_qW8rTz1mNcVb5XkLp0Js", "sglang-qwen.service": "sk-9f8e7d6c5b4a3210",
	} {
		l := read(t, file)[0]
		if !strings.Contains(fmt.Sprint(l), secret) {
			t.Errorf("%s: the test is blind: the launch does not hold the secret", file)
		}
		plan := launch.NewPlan(l, launch.PlanOptions{})
		if text := written(t, plan); strings.Contains(text, secret) {
			t.Errorf("%s: the study holds the secret:\n%s", file, text)
		}
		for _, w := range plan.Warnings {
			if strings.Contains(plan.Hide(sglang.Mask(w)), secret) {
				t.Errorf("%s: a warning holds the secret: %s", file, w)
			}
		}
	}
}

func TestSeveralLaunchesAreTold(t *testing.T) {
	t.Parallel()
	launches := read(t, "four-replicas.sh")
	var got []string
	for _, l := range launches {
		got = append(got, l.Env["CUDA_VISIBLE_DEVICES"]+" "+strings.Join(l.Args[len(l.Args)-1:], " "))
	}
	if diff := cmp.Diff([]string{"0 30000", "1 30001", "2 30002", "3 30003"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATemplateIsAStudy(t *testing.T) {
	t.Parallel()
	study := readBack(t, written(t, launch.Template(launch.PlanOptions{})))
	if got := slices.Sorted(maps.Keys(study.Baseline)); !slices.Equal(got, []string{"mem-fraction-static"}) {
		t.Errorf("baseline %v", got)
	}
}
