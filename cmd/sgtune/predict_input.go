package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner"
)

// predictInput is everything a prediction rests on.
type predictInput struct {
	flags     sglang.Config // of the launch to predict: as given, laid over the log's
	given     sglang.Config // as given
	logged    sglang.Config // of the observed launch
	version   sglang.Version
	fractions []float64
	model     *sglang.ModelConfig
	draft     int     // layers of the draft model, 0 when not known
	weights   float64 // bytes of the weight files, 0 when not known
	log       *sglang.LogFacts
	gpuGiB    float64
	hostRAM   float64 // bytes, 0 when not given
	notes     []string
}

func readPredictInput(o predictOptions, flags sglang.Config, stdin io.Reader) (*predictInput, error) {
	in := &predictInput{given: flags}
	if o.model == "" && o.observed == "" {
		return nil, usagef("predict needs --model (a folder or config.json), --observed (a start-up log), or both; see sgtune predict --help")
	}
	var err error
	if o.fractions != "" {
		if in.fractions, err = parseFractions(o.fractions); err != nil {
			return nil, err
		}
	}
	if o.version != "" {
		if in.version, err = sglang.ParseVersion(o.version); err != nil {
			return nil, usagef("--sglang-version: %w", err)
		}
	}
	if o.hostRAM != "" {
		if in.hostRAM, err = tuner.ParseSize(o.hostRAM); err != nil {
			return nil, usagef("--host-ram: %w", err)
		}
		if in.hostRAM <= 0 {
			return nil, usagef("--host-ram must be more than 0, like 440GB")
		}
	}
	if o.gpuMem != "" {
		if in.gpuGiB, err = parseGPUMem(o.gpuMem); err != nil {
			return nil, err
		}
	}
	if o.model != "" {
		if err := in.readModel(o.model); err != nil {
			return nil, err
		}
	}
	if o.observed != "" {
		if err := in.readLog(o.observed, stdin); err != nil {
			return nil, err
		}
	} else if in.gpuGiB == 0 {
		return nil, usagef("--gpu-mem is missing: without a start-up log (--observed) the memory of a GPU must be given, like 80GB")
	}
	in.lay()
	return in, in.readDraft()
}

// readModel reads config.json and the size of the weight files beside it.
func (in *predictInput) readModel(path string) error {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, "config.json")
		in.weights = weightBytes(path)
	}
	data, err := readModelFile(file)
	wrong := func(text string) error { return tuner.Problems{{File: file, Text: text}} }
	switch {
	case errors.Is(err, fs.ErrNotExist) && file != path:
		return wrong("the folder has no config.json; give the model's own folder")
	case errors.Is(err, fs.ErrNotExist):
		return wrong("does not exist; give the model's folder or its config.json")
	case err != nil:
		return wrong("cannot be read: " + reason(err) + "; give the model's folder or its config.json")
	}
	if file != path {
		data = withQuantFile(data, filepath.Join(path, "hf_quant_config.json"))
	}
	model, err := sglang.ParseModelConfig(data)
	if err != nil {
		return wrong(strings.TrimPrefix(err.Error(), "config.json: "))
	}
	in.model = &model
	return nil
}

// readModelFile reads one of a model's JSON files, at most 64 MiB of it.
func readModelFile(path string) ([]byte, error) {
	const most = 64 << 20
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, most))
}

// withQuantFile adds NVIDIA ModelOpt's separate file to a configuration that says nothing of
// quantization itself. What cannot be read is left out: the configuration is usable without.
func withQuantFile(config []byte, path string) []byte {
	extra, err := readModelFile(path)
	if err != nil {
		return config
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(config, &top) != nil || top["quantization_config"] != nil || !json.Valid(extra) {
		return config
	}
	top["quantization_config"] = extra
	if merged, err := json.Marshal(top); err == nil {
		return merged
	}
	return config
}

// weightBytes is the size of a checkpoint: its index's total, else the sum of its weight files; 0
// when there are none (pointers of Git LFS do not count).
func weightBytes(dir string) float64 {
	for _, name := range []string{"model.safetensors.index.json", "pytorch_model.bin.index.json"} {
		data, err := readModelFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		var index struct {
			Metadata struct {
				Total float64 `json:"total_size"`
			} `json:"metadata"`
		}
		if json.Unmarshal(data, &index) == nil && index.Metadata.Total >= 1<<20 && index.Metadata.Total < 1e15 {
			return index.Metadata.Total
		}
	}
	var sum float64
	for _, pattern := range []string{"*.safetensors", "*.bin", "*.gguf"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			continue
		}
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Size() > 1<<20 {
				sum += float64(info.Size())
			}
		}
		if sum > 0 {
			return sum
		}
	}
	return 0
}

// readDraft takes the draft model's layers from its configuration, where it is a folder here.
func (in *predictInput) readDraft() error {
	path, _ := in.flags["speculative-draft-model-path"].(string)
	if path == "" {
		return nil
	}
	data, err := readModelFile(filepath.Join(path, "config.json"))
	if err != nil {
		in.notes = append(in.notes, "the draft model's config.json is not here; its layers are assumed")
		return nil //nolint:nilerr // said in the notes
	}
	draft, err := sglang.ParseModelConfig(data)
	if err != nil {
		return tuner.Problems{{File: filepath.Join(path, "config.json"), Text: strings.TrimPrefix(err.Error(), "config.json: ")}}
	}
	in.draft = draft.Layers
	if draft.NextN > 0 {
		in.draft = draft.NextN
	}
	return nil
}

// readLog reads the observed start-up and the flags it was launched with.
func (in *predictInput) readLog(path string, stdin io.Reader) error {
	log, err := openLog([]string{path}, stdin)
	if err != nil {
		return err
	}
	defer log.close()
	reader := sglang.NewReader()
	err = log.read(func(piece []byte) error {
		reader.Feed(piece)
		return nil
	})
	if err != nil {
		return err
	}
	facts := reader.Facts()
	in.log = &facts
	in.logged = loggedFlags(facts)
	if len(in.logged) == 0 {
		return tuner.Problems{{File: path, Text: "there is no server_args line; give the whole log, from the server's first line on"}}
	}
	for _, name := range []string{"tp-size", "pp-size", "dp-size", "attn-dp-size", "nnodes"} {
		was, inLog := in.logged.Float(name)
		if now, ok := in.given.Float(name); ok && inLog && now != was {
			return usagef("--%s %.0f, but the log is of a launch with --%s %.0f: what a rank holds does not carry over; give the log of a launch with the same sizes, or leave --observed out", name, now, name, was)
		}
	}
	return nil
}

// loggedNumbers and loggedWords are the arguments of the server_args line that size memory: the log
// reader's name and SGLang's flag.
var loggedNumbers = map[string]string{
	"tp_size": "tp-size", "pp_size": "pp-size", "dp_size": "dp-size", "attn_dp_size": "attn-dp-size", "nnodes": "nnodes", "page_size": "page-size",
	"chunked_prefill_size": "chunked-prefill-size", "requested_max_running_requests": "max-running-requests", "requested_tokens": "max-total-tokens",
	"context_length": "context-length", "hicache_size": "hicache-size", "hicache_ratio": "hicache-ratio", "cuda_graph_max_bs": "cuda-graph-max-bs",
	"swa_full_tokens_ratio": "swa-full-tokens-ratio", "mamba_full_memory_ratio": "mamba-full-memory-ratio", "max_mamba_cache_size": "max-mamba-cache-size",
	"speculative_num_draft_tokens": "speculative-num-draft-tokens",
}

var loggedWords = []string{
	"kv_cache_dtype", "enable_hierarchical_cache", "enable_dp_attention", "disable_radix_cache", "speculative_algorithm", "speculative_draft_model_path",
	"disable_hybrid_swa_memory", "mamba_ssm_dtype", "dsa_prefill_backend", "dsa_decode_backend", "nsa_prefill_backend", "nsa_decode_backend",
}

// loggedFlags are the launch flags of the observed server, empty without a server_args line.
func loggedFlags(facts sglang.LogFacts) sglang.Config {
	args, ok := facts.First["server_args"]
	if !ok {
		return nil
	}
	cfg := sglang.Config{}
	for key, name := range loggedNumbers {
		if v, ok := args.Values[key]; ok && !math.IsNaN(v) {
			cfg[name] = v
		}
	}
	for _, key := range loggedWords {
		name := strings.ReplaceAll(key, "_", "-")
		switch word := args.Words[key]; word {
		case "", "None":
		case "True", "False":
			cfg[name] = word == "True"
		default:
			cfg[name] = word
		}
	}
	if on, _ := cfg["enable-hierarchical-cache"].(bool); !on {
		delete(cfg, "hicache-size")
		delete(cfg, "hicache-ratio")
	}
	if dtype := facts.Memory.KVDtype; dtype != "" { // what auto became
		cfg["kv-cache-dtype"] = dtype
	}
	if len(cfg) == 0 {
		cfg["tp-size"] = 1.0
	}
	return cfg
}

// lay puts the given flags over those of the log.
func (in *predictInput) lay() {
	base := in.logged.Clone()
	_, size := in.given["hicache-size"]
	_, ratio := in.given["hicache-ratio"]
	if size || ratio {
		delete(base, "hicache-size")
		delete(base, "hicache-ratio")
		if _, said := in.given["enable-hierarchical-cache"]; !said && ratio && !size {
			base["enable-hierarchical-cache"] = true
		}
	}
	in.flags = sglang.Merge(base, in.given)
	if v, _ := in.flags.Float("hicache-size"); v == 0 && !ratio { // SGLang's default 0 means by ratio, ours means off
		if _, said := in.given["hicache-size"]; !said {
			delete(in.flags, "hicache-size")
		}
	}
}

// layout is the layout of a launch with these flags.
func (in *predictInput) layout(flags sglang.Config) sglang.Layout {
	l := sglang.LayoutOf(flags, in.version)
	l.DraftLayers = in.draft
	if in.log == nil && in.model != nil {
		l.PageSize = in.model.ForcedPage(l)
	}
	return l
}

// contextLen is the longest request of the launch.
func (in *predictInput) contextLen() int {
	if n, ok := in.flags.Float("context-length"); ok && n > 0 {
		return int(n)
	}
	if in.log != nil && in.log.Memory.ContextLen > 0 {
		return in.log.Memory.ContextLen
	}
	if in.model != nil {
		return in.model.ContextLen
	}
	return 0
}

// onCPU reports whether the observed server runs without a GPU.
func (in *predictInput) onCPU() bool {
	return in.log != nil && in.log.First["server_args"].Words["device"] == "cpu"
}

// basis says in a few words what the figures rest on.
func (in *predictInput) basis(exact bool) string {
	switch {
	case in.log != nil && exact && in.model != nil:
		return "a start-up log and the model's config.json"
	case in.log != nil && exact:
		return "a start-up log"
	case in.log != nil:
		return "the weight lines of a log that ends before its KV pool"
	case in.weights > 0:
		return fmt.Sprintf("an estimate from config.json, %.0f GB of weight files and a GPU of %.1f GiB", in.weights/sglang.GB, in.gpuGiB)
	}
	return fmt.Sprintf("an estimate from config.json alone and a GPU of %.1f GiB", in.gpuGiB)
}
