package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateReplay = flag.Bool("update", false, "rewrite the golden files of testdata/replay")

// TestDryRunGolden shows what --dry-run says of workloads of many kinds, for a person and for a program.
func TestDryRunGolden(t *testing.T) {
	t.Parallel()
	const formats = "../../benchmark/testdata/workloads/formats/"
	for _, test := range []struct {
		name string
		args []string
	}{
		{"mooncake", []string{"--workload=" + formats + "mooncake.jsonl"}},
		{"bailian", []string{"--workload=" + formats + "bailian.jsonl"}},
		{"azure", []string{"--workload=" + formats + "azure.csv"}},
		{"burstgpt", []string{"--workload=" + formats + "burstgpt_8col.csv"}},
		{"specforge", []string{"--workload=" + formats + "specforge_conversations.jsonl"}},
		{"batch", []string{"--workload=" + formats + "openai_batch.jsonl"}},
		{"lengths", []string{"--workload=" + formats + "vidur_lengths.csv", "--output-tokens=7"}},
		{"milliseconds", []string{"--workload=" + formats + "trace_minimal.jsonl", "--time-unit=ms"}},
		{"random", []string{"--workload=random-ids", "--requests=3", "--random-input-len=16", "--random-output-len=512", "--random-range-ratio=1"}},
		{"groups", []string{"--workload=generated-shared-prefix", "--gsp-num-groups=2", "--gsp-prompts-per-group=3", "--gsp-question-len=52"}},
	} {
		for kind, more := range map[string]string{"txt": "--dry-run", "json": "--dry-run|--json"} {
			t.Run(test.name+"."+kind, func(t *testing.T) {
				t.Parallel()
				o, given := replayFlags(t, append(strings.Split(more, "|"), test.args...)...)
				var stdout, stderr strings.Builder
				if err := o.replay(t.Context(), given, &stdout, &stderr); err != nil {
					t.Fatal(err)
				}
				if stderr.String() != "" {
					t.Errorf("stderr: %s", stderr.String())
				}
				path := filepath.Join("testdata", "replay", test.name+"."+kind)
				if *updateReplay {
					if err := os.WriteFile(path, []byte(stdout.String()), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), stdout.String()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestReplayWorkloadMistakes are found before anything is sent.
func TestReplayWorkloadMistakes(t *testing.T) {
	t.Parallel()
	const formats = "../../benchmark/testdata/workloads/formats/"
	odd := filepath.Join(t.TempDir(), "odd.jsonl")
	if err := os.WriteFile(odd, []byte("\n{\"colour\": \"red\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fast := filepath.Join(t.TempDir(), "fast.jsonl")
	if err := os.WriteFile(fast, []byte(strings.Repeat(`{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}`+"\n", 99)+`{"timestamp":10,"input_length":1,"output_length":1,"hash_ids":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"an absurd rate", []string{"--workload=" + fast, "--as-recorded"}, "9900 requests/s when read as milliseconds"},
		{"the same without a load", []string{"--workload=" + fast}, "9900 requests/s when read as milliseconds"},
		{"a faster one", []string{"--workload=" + fast, "--as-recorded", "--speed=2"}, "9900 requests/s when read as milliseconds"},
		{"no file", []string{"--workload=nowhere.jsonl"}, "nowhere.jsonl: the workload does not exist"},
		{"no set", []string{"--workload=ramdom"}, "generated sets are random, "},
		{"another format", []string{"--workload=" + odd}, odd + ":2:1: "},
		{"a folder", []string{"--workload=testdata"}, "folder"},
		{"a download", []string{"--workload=sharegpt"}, "download"},
		{"images", []string{"--workload=mmmu"}, "images"},
		{"no times", []string{"--workload=" + formats + "vidur_lengths.csv", "--as-recorded"}, "no arrival times"},
		{"a set's flag", []string{"--workload=" + formats + "azure.csv", "--gsp-num-groups=4"}, "--gsp-num-groups belongs to a generated set"},
		{"a file's flag", []string{"--workload=random", "--time-unit=ms"}, "--time-unit belongs to workload files"},
		{"a ratio", []string{"--workload=random", "--random-range-ratio=1.5"}, "--random-range-ratio 1.5"},
		{"a format", []string{"--workload=" + formats + "azure.csv", "--format=azur"}, "azur"},
		{"times of a set", []string{"--workload=random", "--as-recorded"}, "no arrival times"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o, given := replayFlags(t, append([]string{"--dry-run"}, test.args...)...)
			var stdout, stderr strings.Builder
			err := o.replay(t.Context(), given, &stdout, &stderr)
			if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q and exit code 2", err, test.want)
			}
			if stdout.String()+stderr.String() != "" {
				t.Errorf("printed %q %q", stdout.String(), stderr.String())
			}
		})
	}
}
