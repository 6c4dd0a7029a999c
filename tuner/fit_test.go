package tuner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/tuner"
)

// fitStudy reads a small study; server holds lines of the server section, space those of the space.
func fitStudy(t *testing.T, server, space string) *tuner.Study {
	t.Helper()
	text := "study: fit\nserver:\n  model: m\n" + server + "space:\n" + space + "workload: {file: p.jsonl}\nbudget: {trials: 5}\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.jsonl"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := tuner.ParseStudy("fit.yaml", []byte(text), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func release(t *testing.T, text string) tuner.Installed {
	t.Helper()
	v, err := sglang.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return tuner.Installed{Version: v}
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version string
		server, space string
		argv          string // words of a launch with the first value of each knob; a leading - says not there
		notes         string
		left          string // in the text of what is left out
		problem       string
	}{
		{
			name: "renamed for an old server", version: "0.5.9", space: "  cuda-graph-max-bs-decode: [64, 128]\n",
			argv: "--cuda-graph-max-bs 64", notes: "space: cuda-graph-max-bs-decode is called cuda-graph-max-bs",
		},
		{
			name: "renamed for a new server", version: "0.5.23", space: "  cuda-graph-max-bs: [64, 128]\n",
			argv: "--cuda-graph-max-bs-decode 64", notes: "is called cuda-graph-max-bs-decode",
		},
		{
			name: "a fixed flag became a value", version: "0.5.9", server: "  flags: {enable-deepep-moe: true}\n", space: "  page-size: [1, 64]\n",
			argv: "--moe-a2a-backend deepep", notes: "server.flags: enable-deepep-moe is gone",
		},
		{
			name: "bf16 is passed", version: "0.5.9", space: "  page-size: [1, 64]\n", argv: "--kv-cache-dtype bf16",
		},
		{
			name: "bf16 is not passed to a version without it", version: "0.5.2", space: "  page-size: [1, 64]\n",
			argv: "!--kv-cache-dtype", notes: "SGLang 0.5.2 has no kv-cache-dtype bf16",
		},
		{
			name: "a value it lacks", version: "0.5.2", space: "  schedule-policy: [fcfs, lpm, priority]\n",
			argv: "--schedule-policy fcfs", left: "rule version: schedule-policy priority is left out of the space: SGLang 0.5.2 does not take it; it takes lpm",
		},
		{
			name: "no value left", version: "0.5.2", space: "  schedule-policy: [priority, hrrn]\n", left: "schedule-policy hrrn is left out", problem: "takes none of the values of schedule-policy; it takes lpm",
		},
		{
			name: "a fixed value it lacks", version: "0.5.2", server: "  flags: {schedule-policy: priority}\n", space: "  page-size: [1, 64]\n",
			problem: "server.flags: SGLang 0.5.2 does not take --schedule-policy priority",
		},
		{
			name: "a knob it lacks", version: "0.4.6.post5", space: "  hicache-io-backend: [kernel, direct]\n",
			problem: "space: SGLang 0.4.6.post5 has no flag --hicache-io-backend; it came with SGLang 0.4.9.post6, remove it",
		},
		{
			name: "a fixed flag that is gone", version: "0.5.23", server: "  flags: {torchao-config: int4wo-128}\n", space: "  page-size: [1, 64]\n",
			problem: "server.flags: SGLang 0.5.23 has no flag --torchao-config; remove it",
		},
		{
			name: "the cache off in a version without it is nothing", version: "0.4.6.post5", space: "  hicache-size: [0, 16]\n", argv: "!--hicache-size",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fitStudy(t, tt.server, tt.space)
			before := *s
			problems := strings.Join(s.Misfits(release(t, tt.version)), "\n")
			if d := cmp.Diff(before.Notes, s.Notes); d != "" || len(s.Excluded) != len(before.Excluded) {
				t.Errorf("Misfits changed the study: %s", d)
			}
			if now := strings.Join(s.Fit(release(t, tt.version)), "\n"); now != problems {
				t.Errorf("Fit says %q, Misfits said %q", now, problems)
			}
			if !strings.Contains(problems, tt.problem) || tt.problem == "" && problems != "" {
				t.Errorf("problems %q, want %q", problems, tt.problem)
			}
			if tt.argv != "" {
				words := strings.Join(s.Server.Argv(sglang.Merge(s.SearchBase(), s.Space.At(make([]float64, len(s.Space))))), " ")
				want, not := strings.CutPrefix(tt.argv, "!")
				if strings.Contains(words+" ", want+" ") == not {
					t.Errorf("argv %s, want %s", words, tt.argv)
				}
			}
			if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, tt.notes) {
				t.Errorf("notes %q, want %q", notes, tt.notes)
			}
			var left []string
			for _, e := range s.Excluded {
				left = append(left, e.Text)
			}
			if all := strings.Join(left, "\n"); !strings.Contains(all, tt.left) || tt.left == "" && all != "" {
				t.Errorf("left out %q, want %q", all, tt.left)
			}
		})
	}
}

// A server that says nothing of itself is run as the study is written.
func TestFitWithoutKnowledge(t *testing.T) {
	t.Parallel()
	s := fitStudy(t, "  flags: {torchao-config: int4wo-128}\n", "  cuda-graph-max-bs: [64]\n")
	if problems := s.Fit(tuner.Installed{}); len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	if words := strings.Join(s.Server.Argv(s.Space.At([]float64{0})), " "); !strings.Contains(words, "--cuda-graph-max-bs 64") {
		t.Errorf("argv %s", words)
	}
	if !s.NeedsVersion() {
		t.Error("a renamed knob makes the version matter")
	}
	if fitStudy(t, "", "  page-size: [1, 64]\n").NeedsVersion() {
		t.Error("flags that every release has make the version matter")
	}
}

func TestFitLabelsAnFP8Checkpoint(t *testing.T) {
	t.Parallel()
	const fp8 = `{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}`
	for _, tt := range []struct {
		name, version, file, text, server string
		want                              string
	}{
		{name: "says FP8", version: "0.5.23", file: "hf_quant_config.json", text: fp8, want: "names an FP8 KV cache (hf_quant_config.json)"},
		{name: "before SGLang followed it", version: "0.5.5.post3", file: "hf_quant_config.json", text: fp8},
		{name: "the user chose", version: "0.5.23", file: "hf_quant_config.json", text: fp8, server: "  flags: {kv-cache-dtype: bf16}\n"},
		{name: "auto is no choice", version: "0.5.23", file: "config.json", text: fp8, server: "  flags: {kv-cache-dtype: auto}\n", want: "names an FP8 KV cache (config.json)"},
		{name: "no quantization", version: "0.5.23", file: "config.json", text: `{"model_type": "llama"}`},
		{name: "broken", version: "0.5.23", file: "config.json", text: `{"model_type": `, want: "could not be read (unexpected EOF)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fitStudy(t, tt.server, "  page-size: [1, 64]\n")
			s.Server.Model = t.TempDir()
			if err := os.WriteFile(filepath.Join(s.Server.Model, tt.file), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.Fit(release(t, tt.version))
			all := strings.Join(s.Notes, "\n")
			if !strings.Contains(all, tt.want) || tt.want == "" && strings.Contains(all, "FP8") {
				t.Errorf("notes %q, want %q", all, tt.want)
			}
		})
	}
}

// A build with more flags than its release is believed.
func TestFitBelievesHelp(t *testing.T) {
	t.Parallel()
	flags := sglang.Flags{}
	table, _ := sglang.FlagsOf(sglang.Version{})
	for name, f := range table {
		flags[name] = f
	}
	flags["torchao-config"] = sglang.Flag{Name: "torchao-config", Canonical: "torchao-config", TakesValue: true}
	s := fitStudy(t, "  flags: {torchao-config: int4wo-128}\n", "  page-size: [1, 64]\n")
	in := release(t, "0.5.23")
	in.Flags = flags
	if problems := s.Fit(in); len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
}

func TestCombinationRule(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, server, space string
		c                   sglang.Config
		want                string // "" = admitted
	}{
		{
			name: "refused by SGLang", space: "  hicache-size: [0, 16]\n  disable-radix-cache: [true, false]\n",
			c: sglang.Config{"hicache-size": 16.0, "disable-radix-cache": true}, want: "exclude each other",
		},
		{
			name: "fine", space: "  hicache-size: [0, 16]\n  disable-radix-cache: [true, false]\n",
			c: sglang.Config{"hicache-size": 16.0, "disable-radix-cache": false},
		},
		{
			name: "with a fixed flag", server: "  flags: {nnodes: 2}\n", space: "  dp-size: [1, 2]\n  tp-size: [8, 16]\n",
			c: sglang.Config{"dp-size": 2.0, "tp-size": 8.0}, want: "several nodes",
		},
		{
			name: "the same server as another point", server: "  flags: {attention-backend: flashmla}\n", space: "  page-size: [16, 64]\n",
			c: sglang.Config{"page-size": 16.0}, want: "with page-size 64 it is a configuration of its own",
		},
		{
			name: "rewritten, but to none of the space", server: "  flags: {attention-backend: flashmla}\n", space: "  page-size: [1, 16]\n",
			c: sglang.Config{"page-size": 16.0},
		},
		{
			name: "what runs today is believed", server: "  flags: {enable-torch-compile: true, disable-cuda-graph-padding: true}\n", space: "  page-size: [1, 16]\n",
			c: sglang.Config{"page-size": 16.0},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fitStudy(t, tt.server, tt.space)
			err := tuner.NewAdmission(s, nil, tuner.HostFacts{MemAvailable: -1, CgroupHeadroom: -1}, nil).Admit(sglang.Merge(s.SearchBase(), tt.c))
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), tuner.RuleCombination)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckSaysWhatSGLangMakesOfTheBaseline(t *testing.T) {
	t.Parallel()
	s := fitStudy(t, "  flags: {enable-torch-compile: true, disable-cuda-graph-padding: true, attention-backend: flashmla, page-size: 16}\n", "  max-running-requests: [64, 128]\n")
	r := tuner.Check(s, tuner.CheckInput{Facts: tuner.HostFacts{MemAvailable: -1, CgroupHeadroom: -1}, Server: "SGLang 0.5.23, as it says itself"})
	if against := strings.Join(r.Against, "\n"); !strings.Contains(against, "the baseline would not start: enable-torch-compile") {
		t.Errorf("against %q", against)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "sets it to 64") {
		t.Errorf("notes %q", notes)
	}
	if row := r.Understood[0].Rows[1]; row.Name != "installed" || row.Text != "SGLang 0.5.23, as it says itself" {
		t.Errorf("row %v, want the installed SGLang", row)
	}
}
