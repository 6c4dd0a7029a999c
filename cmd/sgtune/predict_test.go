package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestDefaultFractions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		lowest, observed float64
		first, last      float64
	}{
		{"a big model", 0.769, 0.88, 0.77, 0.95}, {"a small one", 0.19, 0.85, 0.2, 0.95}, {"hardly room", 0.949, 0, 0.91, 0.95}, {"no room", 1.2, 0, 0.91, 0.95}, {"a CPU", 0.005, 0.02, 0.02, 0.95},
	} {
		got := defaultFractions(sglang.Range{Low: tt.lowest, Mid: tt.lowest, High: tt.lowest}, tt.observed)
		if len(got) < 2 || len(got) > 22 || got[0] > tt.first+0.06 || got[len(got)-1] != tt.last {
			t.Errorf("%s: %v", tt.name, got)
		}
		for i := 1; i < len(got); i++ {
			if got[i] <= got[i-1] {
				t.Errorf("%s: not ascending: %v", tt.name, got)
			}
		}
		if tt.observed > 0 && !slices.Contains(got, tt.observed) {
			t.Errorf("%s: %v lacks the observed %v", tt.name, got, tt.observed)
		}
	}
}

func TestParseGPUMem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"80GB": 80, "80 GiB": 80, "81920MiB": 80, "0.5TiB": 512} {
		if got, err := parseGPUMem(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v GiB", text, got, err, want)
		}
	}
	for _, text := range []string{"", "80", "GB", "-80GB", "10MB", "9TB", "NaNGB"} {
		if got, err := parseGPUMem(text); err == nil || exitCode(err) != exitUsage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, %v, want one line and exit 2", text, got, err)
		}
	}
}

func TestParseFractions(t *testing.T) {
	t.Parallel()
	got, err := parseFractions("0.88, 0.9,0.88")
	if d := cmp.Diff([]float64{0.88, 0.9}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for _, text := range []string{"0", "1", "x", "0.8,,0.9", "NaN", strings.Repeat("0.5,", 3) + "2"} {
		if _, err := parseFractions(text); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%q: %v, want exit 2", text, err)
		}
	}
}

// TestWeightBytes: the index tells the size of a checkpoint, else its files; pointers do not.
func TestWeightBytes(t *testing.T) {
	t.Parallel()
	write := func(dir, name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty, pointers, files, index := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(pointers, "model.safetensors", []byte("version https://git-lfs.github.com/spec/v1\n"))
	write(files, "a.safetensors", make([]byte, 2<<20))
	write(files, "b.safetensors", make([]byte, 3<<20))
	write(index, "a.safetensors", make([]byte, 2<<20))
	write(index, "model.safetensors.index.json", []byte(`{"metadata":{"total_size":16060522496}}`))
	for dir, want := range map[string]float64{empty: 0, pointers: 0, files: 5 << 20, index: 16060522496} {
		if got := weightBytes(dir); got != want {
			t.Errorf("%.0f bytes, want %.0f", got, want)
		}
	}
}

// TestQuantFile: NVIDIA's separate file counts where the configuration says nothing itself.
func TestQuantFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hf_quant_config.json")
	if err := os.WriteFile(path, []byte(`{"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const plain = `{"num_hidden_layers":2,"num_attention_heads":4,"head_dim":64}`
	m, err := sglang.ParseModelConfig(withQuantFile([]byte(plain), path))
	if err != nil || m.KVQuant != "fp8_e4m3" || m.Quant.ParamBytes != 1 {
		t.Errorf("%v, %+v", err, m.Quant)
	}
	if got := withQuantFile([]byte(plain), path+".none"); string(got) != plain {
		t.Errorf("without the file: %s", got)
	}
	own := `{"quantization_config":{"quant_method":"awq"}}`
	if got := withQuantFile([]byte(own), path); string(got) != own {
		t.Errorf("a configuration's own word was changed: %s", got)
	}
}

// TestPredictPools: with data-parallel attention a pool is one group's, and the page says so.
func TestPredictPools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, []byte(`{"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"hidden_size":4096,"intermediate_size":14336,"vocab_size":128256}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"predict", "--model", dir, "--gpu-mem", "80GB", "--tp-size", "8", "--dp-size", "4", "--enable-dp-attention", "--mem-fraction-static", "0.85", "--json"}, &out, &errs)
	var got predictResult
	if err := json.Unmarshal(out.Bytes(), &got); code != exitDone || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs.String())
	}
	if row := got.Rows[0]; got.Pools != 4 || row.Cluster != 4*row.Tokens || got.CellBytes != 4*256*32*2 {
		t.Errorf("%+v", got)
	}
}
