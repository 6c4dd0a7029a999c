package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sgtune/sglang"
	"sgtune/tuner"
)

// predictOptions are the flags of sgtune predict that are not SGLang's own.
type predictOptions struct {
	model     string
	observed  string
	fractions string
	gpuMem    string
	hostRAM   string
	version   string
	json      bool
}

// sizingFlags are SGLang's own flags that change how memory is laid out, by its own names.
var sizingFlags = []struct{ name, kind, usage string }{
	{"tp-size", "count", "tensor-parallel size"},
	{"pp-size", "count", "pipeline-parallel size"},
	{"dp-size", "count", "data-parallel size"},
	{"attn-dp-size", "count", "data-parallel attention, 0.5.23's name"},
	{"enable-dp-attention", "bool", "data-parallel attention"},
	{"nnodes", "count", "hosts the launch is spread over"},
	{"kv-cache-dtype", "word", "auto, bf16, fp8_e4m3, fp8_e5m2, mxfp8, nvfp4, ..."},
	{"page-size", "count", "tokens of a KV page"},
	{"context-length", "count", "longest prompt plus answer"},
	{"max-total-tokens", "count", "upper limit of the KV pool"},
	{"max-running-requests", "count", "most requests decoded at once"},
	{"chunked-prefill-size", "number", "prompt tokens of one prefill step, -1 for whole prompts"},
	{"cuda-graph-max-bs", "count", "largest decode batch run as a graph"},
	{"enable-hierarchical-cache", "bool", "keep evicted prefixes in host RAM"},
	{"hicache-size", "count", "host KV pool, whole GB (1e9) a rank; 0 is off"},
	{"hicache-ratio", "number", "host KV pool in device pools"},
	{"disable-radix-cache", "bool", "no prefix cache"},
	{"swa-full-tokens-ratio", "number", "sliding-window pool against the full one"},
	{"disable-hybrid-swa-memory", "bool", "no pool of their own for sliding-window layers"},
	{"mamba-full-memory-ratio", "number", "state memory against KV memory"},
	{"max-mamba-cache-size", "count", "state slots"},
	{"mamba-ssm-dtype", "word", "number format of the state"},
	{"speculative-algorithm", "word", "EAGLE, EAGLE3, NEXTN, STANDALONE, NGRAM, ..."},
	{"speculative-draft-model-path", "word", "folder of the draft model"},
	{"speculative-num-steps", "count", "draft steps; no effect on memory here"},
	{"speculative-eagle-topk", "count", "draft branches; no effect on memory here"},
	{"speculative-num-draft-tokens", "count", "tokens verified at once"},
	{"attention-backend", "word", "no effect on memory here"},
	{"dsa-prefill-backend", "word", "sparse attention: trtllm and tilelang keep narrower fp8 rows"},
	{"dsa-decode-backend", "word", "as above"},
	{"nsa-prefill-backend", "word", "the older name"},
	{"nsa-decode-backend", "word", "the older name"},
	{"mm-feature-transport", "word", "multimodal features: cuda_ipc and cuda_vmm keep 1 GiB"},
	{"ep-size", "count", "expert-parallel size; no effect on memory here"},
	{"moe-a2a-backend", "word", "no effect on memory here"},
}

func newPredictCommand() *cobra.Command {
	var o predictOptions
	cmd := &cobra.Command{
		Use:   "predict (--model DIR|config.json | --observed LOG)",
		Short: "Say how many KV tokens a launch will have, before launching it",
		Long: "predict does SGLang's own memory arithmetic: KV tokens, full-length requests, free GPU memory after\n" +
			"the CUDA graphs and host RAM, for each --mem-fraction-static. No GPU is needed.\n\n" +
			"With --observed, a start-up log of the same model on the same host and with the same sizes, the\n" +
			"figures are exact to some tokens; --model makes them exact for another KV dtype too. A log that\n" +
			"died before its KV pool is enough when --model is given. Without a log they are estimates with a\n" +
			"range, from --model and --gpu-mem. Flags of the launch have SGLang's own names; those not given\n" +
			"are as in the log.",
		Example: "  sgtune predict --observed server.log\n" +
			"  sgtune predict --model /models/Kimi-K2.5 --observed server.log --mem-fraction-static 0.88,0.90 --kv-cache-dtype fp8_e4m3\n" +
			"  sgtune predict --model config.json --gpu-mem 80GB --tp-size 8 --hicache-size 48 --host-ram 440GB",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags, err := launchFlags(cmd.Flags())
			if err != nil {
				return err
			}
			in, err := readPredictInput(o, flags, cmd.InOrStdin())
			if err != nil {
				return err
			}
			result, err := in.predict()
			if err != nil {
				return err
			}
			if o.json {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
			}
			return result.print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "the model's folder (its weight files give their size) or its config.json")
	f.StringVar(&o.observed, "observed", "", "start-up log of the same launch with another fraction, also .gz or .zst")
	f.StringVar(&o.fractions, "mem-fraction-static", "", "fractions to predict, 0.85 or 0.85,0.88 (default: the workable ones)")
	f.StringVar(&o.gpuMem, "gpu-mem", "", "memory of one GPU where there is no log: 97871MiB or 95.6GiB as nvidia-smi says it, 80GB as its maker does")
	f.StringVar(&o.hostRAM, "host-ram", "", "available host RAM, like 440GB")
	f.StringVar(&o.version, "sglang-version", "", "SGLang's version (default: the newest known)")
	f.BoolVar(&o.json, "json", false, "print JSON")
	for _, flag := range sizingFlags {
		if flag.kind == "bool" {
			f.Bool(flag.name, false, flag.usage)
		} else {
			f.String(flag.name, "", flag.usage)
		}
	}
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if other, ok := otherNames[name]; ok {
			name = other
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

// otherNames are further names that SGLang has for its flags.
var otherNames = map[string]string{
	"tensor-parallel-size": "tp-size", "pipeline-parallel-size": "pp-size", "data-parallel-size": "dp-size", "model-path": "model",
	"cuda-graph-max-bs-decode": "cuda-graph-max-bs", "enable-hicache": "enable-hierarchical-cache", "speculative-draft-model": "speculative-draft-model-path",
}

// launchFlags are SGLang's flags as they were given.
func launchFlags(set *pflag.FlagSet) (sglang.Config, error) {
	cfg := sglang.Config{}
	for _, flag := range sizingFlags {
		given := set.Lookup(flag.name)
		if !given.Changed {
			continue
		}
		text := given.Value.String()
		switch flag.kind {
		case "bool":
			cfg[flag.name] = text == "true"
		case "word":
			cfg[flag.name] = text
		default:
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, usagef("--%s %q is not a number; see sgtune predict --help", flag.name, text)
			}
			least := map[bool]float64{true: 0, false: 1}[flag.name == "hicache-size"]
			if flag.kind == "count" && (v != math.Trunc(v) || v < least) {
				return nil, usagef("--%s %s must be a whole number of at least %.0f, as in SGLang; see sgtune predict --help", flag.name, text, least)
			}
			cfg[flag.name] = v
		}
	}
	if word, ok := cfg["kv-cache-dtype"].(string); ok && word != "auto" {
		if _, known := sglang.DtypeBytes(word); !known {
			return nil, usagef("--kv-cache-dtype %q is not one of auto, bf16, bfloat16, fp8_e4m3, fp8_e5m2, mxfp8, nvfp4, fp4_mx_block16", word)
		}
	}
	return cfg, nil
}

// parseFractions reads a list like 0.85,0.88.
func parseFractions(text string) ([]float64, error) {
	var out []float64
	for word := range strings.SplitSeq(text, ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || !(f > 0 && f < 1) {
			return nil, usagef("--mem-fraction-static %q must be a number between 0 and 1, or a list like 0.85,0.88", strings.TrimSpace(word))
		}
		if len(out) == maxFractions {
			return nil, usagef("--mem-fraction-static has more than %d values", maxFractions)
		}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out, nil
}

const maxFractions = 200

// parseGPUMem reads the memory of a GPU in GiB. GB is GiB here: makers and SGLang write it so.
func parseGPUMem(text string) (float64, error) {
	gib := strings.TrimSpace(text)
	if n, ok := strings.CutSuffix(gib, "GB"); ok {
		gib = n + "GiB"
	}
	bytes, err := tuner.ParseSize(gib)
	if err != nil {
		return 0, usagef("--gpu-mem: %w", err)
	}
	if g := bytes / sglang.GiB; g >= 1 && g <= 4096 {
		return g, nil
	}
	return 0, usagef("--gpu-mem %s is no GPU's memory; write it as nvidia-smi does, like 81559MiB", fmt.Sprintf("%.20q", text))
}
