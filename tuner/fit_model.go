package tuner

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sgtune/sglang"
)

// maxModelConfig bounds what is read of a model's config file.
const maxModelConfig = 8 << 20

// labelCheckpoint notes where the baseline's KV cache is FP8 though nobody wrote it: kv-cache-dtype
// auto follows a checkpoint whose quantization config says so. It can be told before the first
// launch where the model is a folder here; else the log of the launch tells it.
func (s *Study) labelCheckpoint(v sglang.Version) {
	kv := sglang.Merge(s.Server.Flags, s.Baseline).Text(kvDtype)
	if kv != "" && kv != "auto" {
		return
	}
	for _, name := range []string{"config.json", "hf_quant_config.json"} {
		config, err := readModelConfig(filepath.Join(s.Server.Model, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			s.note("%s of the model could not be read (%v), so whether its KV cache is FP8 is seen at the first launch.", name, err)
		case sglang.AutoKVIsLossy(config, v):
			s.note("The checkpoint names an FP8 KV cache (%s), so the baseline, which leaves %s to SGLang, runs with FP8; no other trial does (rule %s).", name, kvDtype, RuleQuality)
			return
		}
	}
}

func readModelConfig(path string) (map[string]any, error) {
	if !filepath.IsAbs(path) {
		return nil, fs.ErrNotExist // a name on the hub
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	var config map[string]any
	if err := json.NewDecoder(io.LimitReader(f, maxModelConfig)).Decode(&config); err != nil {
		return nil, err
	}
	return config, nil
}
