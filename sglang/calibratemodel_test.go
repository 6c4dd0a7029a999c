package sglang_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/sglang"
)

func layoutOf(flags sglang.Config) sglang.Layout { return sglang.LayoutOf(flags, sglang.Version{}) }

// TestWorkedExample is reference 2.4: a log of the founding launch at 0.88 or 0.85 tells the other
// ones, half-width at most 90 bf16 tokens.
func TestWorkedExample(t *testing.T) {
	t.Parallel()
	kimi := readModel(t, "kimi-k2.5")
	log := map[float64]sglang.Observation{
		0.85: founding085(),
		0.88: {Fraction: 0.88, TP: 8, KVDtype: "torch.bfloat16", PageSize: 1, BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71, Tokens: 159277, KVGiB: 10.42},
	}
	noPool := sglang.Observation{Fraction: 0.75, TP: 8, BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71} // died: fraction too low
	bf16 := sglang.Config{"tp-size": 8.0, "kv-cache-dtype": "bf16"}
	fp8 := sglang.Config{"tp-size": 8.0, "kv-cache-dtype": "fp8_e4m3"}
	for _, tt := range []struct {
		name     string
		observed sglang.Observation
		model    *sglang.ModelConfig
		flags    sglang.Config
		fraction float64
		want     float64
	}{
		{"log alone, itself", log[0.88], nil, bf16, 0.88, 159277},
		{"log alone, 0.85 to 0.88", log[0.85], nil, bf16, 0.88, 159277},
		{"log alone, 0.88 to 0.85", log[0.88], nil, bf16, 0.85, 116171},
		{"with the model, itself", log[0.88], kimi, bf16, 0.88, 159277},
		{"with the model, 0.85 to 0.88", log[0.85], kimi, bf16, 0.88, 159277},
		{"with the model, 0.88 to 0.93", log[0.88], kimi, bf16, 0.93, 231120},
		{"with the model, to fp8", log[0.88], kimi, fp8, 0.90, 376029},
		{"weight lines only", noPool, kimi, bf16, 0.88, 159277},
		{"weight lines only, 0.85", noPool, kimi, bf16, 0.85, 116171},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := sglang.Calibrate(tt.observed)
			if tt.model != nil {
				c, err = sglang.CalibrateModel(tt.observed, tt.model, layoutOf(bf16), layoutOf(tt.flags))
			}
			if err != nil {
				t.Fatal(err)
			}
			cfg := sglang.Merge(tt.flags, sglang.Config{"mem-fraction-static": tt.fraction})
			p := c.Predict(cfg)
			if !p.Tokens.Contains(tt.want) {
				t.Errorf("%+v does not contain %.0f", p.Tokens, tt.want)
			}
			limit := 90.0
			if tt.flags["kv-cache-dtype"] != "bf16" {
				limit *= 2 // half the bytes a token
			}
			if p.Tokens.HalfWidth() > limit {
				t.Errorf("%+v: half-width %.0f, want at most %.0f", p.Tokens, p.Tokens.HalfWidth(), limit)
			}
			if tt.fraction == tt.observed.Fraction && p.Tokens.Mid != tt.want {
				t.Errorf("the observed launch itself: %.0f tokens, want exactly %.0f", p.Tokens.Mid, tt.want)
			}
			if math.Abs(p.LowestFraction-0.7691) > 0.0003 {
				t.Errorf("lowest fraction %.4f, want 0.7691", p.LowestFraction)
			}
		})
	}
}

// TestReferenceTable is the table of reference 2.4, thousands of tokens.
func TestReferenceTable(t *testing.T) {
	t.Parallel()
	c, err := sglang.CalibrateModel(founding085(), readModel(t, "kimi-k2.5"), layoutOf(sglang.Config{}), layoutOf(sglang.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	for fraction, want := range map[float64]float64{
		0.80: 44.3, 0.82: 73.1, 0.84: 101.8, 0.85: 116.2, 0.86: 130.5, 0.87: 144.9, 0.88: 159.3, 0.89: 173.6, 0.90: 188.0, 0.91: 202.4, 0.92: 216.8, 0.93: 231.1,
	} {
		got := c.Predict(sglang.Config{"mem-fraction-static": fraction}).Tokens.Mid / 1000
		if math.Abs(got-want) > 0.06 {
			t.Errorf("%.2f: %.1fK tokens, want %.1fK", fraction, got, want)
		}
	}
}

// caseFacts reads one of the failure fixtures.
func caseFacts(t *testing.T, prefix string) sglang.LogFacts {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "trial", "testdata", "verdict", prefix+"-*.log"))
	if err != nil || len(names) != 1 {
		t.Fatalf("case %s: %v, %v", prefix, names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	r := sglang.NewReader()
	r.Feed(data)
	return r.Facts()
}

// TestCaseLogs: every fixture that reaches its KV pool gives its own token count exactly, the cell is
// the right one to the byte, and what T, A and the cell say agrees with the count to the printed
// digits, where the log's numbers are consistent.
func TestCaseLogs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		id         string
		tokens     float64
		cell       float64
		consistent bool // the fixture's T and A give its own count
	}{
		{"01", 159277, 70272, false},
		{"02", 231323, 70272, true},
		{"03", 159277, 70272, false},
		{"04", 424075, 131072, true},
		{"06", 131483, 70272, true},
		{"08", 985643, 65536, true},
		{"09", 130312, 70272, true},
		{"10", 238119, 89856, true},
		{"11", 515845, 70272, true},
		{"13", 900000, 70272, false},
		{"14", 34144, 163840, true},
		{"15", 206635, 32768, false},
		{"16", 930386, 35136, true},
		{"18", 376941, 147456, true},
	} {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			facts := caseFacts(t, tt.id)
			o := facts.Memory
			c, err := sglang.Calibrate(o)
			if err != nil {
				t.Fatal(err)
			}
			p := c.Predict(sglang.Config{"mem-fraction-static": o.Fraction})
			if p.Tokens.Mid != tt.tokens || !p.Tokens.Contains(tt.tokens) {
				t.Errorf("predicts %+v for itself, want %.0f", p.Tokens, tt.tokens)
			}
			if c.CellBytes.Mid != tt.cell {
				t.Errorf("cell %+v, want %.0f", c.CellBytes, tt.cell)
			}
			lines, err := sglang.LoadOnly(o, sglang.Cell{Bytes: tt.cell, DtypeBytes: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got := lines.Predict(sglang.Config{"mem-fraction-static": o.Fraction}).Tokens; tt.consistent && !got.Contains(tt.tokens) {
				t.Errorf("T %.2f, A %.2f and the cell give %+v, want %.0f inside", o.BeforeLoadGiB, o.AfterLoadGiB, got, tt.tokens)
			}
		})
	}
}

// TestCaseLogsPredictEachOther: the fixtures of one host at other fractions.
func TestCaseLogsPredictEachOther(t *testing.T) {
	t.Parallel()
	c, err := sglang.Calibrate(caseFacts(t, "09").Memory) // 0.86
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Predict(sglang.Config{"mem-fraction-static": 0.93}).Tokens; math.Abs(got.Mid-231323) > 2 || !got.Contains(231323) {
		t.Errorf("case 02 from case 09: %+v, want 231323", got)
	}
}

// TestUnprintedDtype: versions before 0.5.15 do not print the pool's dtype; the arguments tell it.
func TestUnprintedDtype(t *testing.T) {
	t.Parallel()
	facts := caseFacts(t, "16")
	if facts.Memory.KVDtype != "fp8_e4m3" {
		t.Fatalf("dtype %q, want that of the arguments", facts.Memory.KVDtype)
	}
	c, err := sglang.Calibrate(facts.Memory)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Predict(sglang.Config{"kv-cache-dtype": "bf16"}).Tokens.Mid; math.Abs(got-930386/2) > 1 {
		t.Errorf("bf16 after fp8: %.0f tokens, want half of 930386", got)
	}
}

// TestProportionalGrowth: in a log of a linear-attention hybrid most of the budget is not KV, and so
// is most of each further byte.
func TestProportionalGrowth(t *testing.T) {
	t.Parallel()
	facts := caseFacts(t, "15")
	c, err := sglang.Calibrate(facts.Memory)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Predict(sglang.Config{"mem-fraction-static": 0.9})
	const rest, t90 = 44.70 - 78.90*0.2, 78.90 * 0.1
	if want := 206635 * (rest + t90) / rest; math.Abs(p.Tokens.Mid/want-1) > 0.001 {
		t.Errorf("0.90: %.0f tokens, want %.0f in proportion to the budget", p.Tokens.Mid, want)
	}
	if fixed := 206635 + t90*sglang.GiB/32768; p.Tokens.High < fixed {
		t.Errorf("0.90: %+v, want %.0f inside: the states may be of a fixed number", p.Tokens, fixed)
	}
	if math.Abs(p.LowestFraction-(1-44.70/78.90)) > 0.001 {
		t.Errorf("lowest fraction %.4f, want 1 - A/T", p.LowestFraction)
	}
}

// hybridObservation is what a log of Qwen3-Next prints for a budget, by SGLang's own arithmetic.
func hybridObservation(c sglang.Cell, before, after, fraction float64) sglang.Observation {
	tokens, _ := c.Tokens(after-before*(1-fraction), 1)
	return sglang.Observation{
		Fraction: fraction, TP: 4, KVDtype: "torch.bfloat16", PageSize: 1, BeforeLoadGiB: before, AfterLoadGiB: after, Tokens: tokens,
		KVGiB: math.Round(float64(tokens)*c.Bytes/sglang.GiB*100) / 100, KVParts: 1,
	}
}

// TestHybridsWithModel: states and sliding windows are told by the model, so another fraction is
// known to some slots.
func TestHybridsWithModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, model string
		flags       sglang.Config
		slack       float64 // tokens of a few state slots
	}{
		{"states by ratio", "qwen3-next-80b-a3b", sglang.Config{"tp-size": 4.0}, 3500},
		{"states of a fixed number", "qwen3-next-80b-a3b", sglang.Config{"tp-size": 4.0, "max-mamba-cache-size": 128.0}, 1700},
		{"latent hybrid", "kimi-linear-48b-a3b", sglang.Config{"tp-size": 4.0}, 3000},
		{"two pools", "gpt-oss-120b", sglang.Config{"tp-size": 4.0}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := readModel(t, tt.model)
			cell, err := m.Cell(layoutOf(tt.flags))
			if err != nil {
				t.Fatal(err)
			}
			line, err := sglang.CalibrateModel(hybridObservation(cell, 78.5, 38.25, 0.80), m, layoutOf(tt.flags), layoutOf(tt.flags))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []float64{0.75, 0.80, 0.90} {
				want, _ := cell.Tokens(38.25-78.5*(1-f), 1)
				got := line.Predict(sglang.Merge(tt.flags, sglang.Config{"mem-fraction-static": f})).Tokens
				if !got.Contains(float64(want)) || math.Abs(got.Mid-float64(want)) > tt.slack {
					t.Errorf("%.2f: %+v, want %d", f, got, want)
				}
			}
		})
	}
}

// TestIndexRows: logs of sparse attention print the pool with or without its index rows; the count of
// tokens follows the budget either way.
func TestIndexRows(t *testing.T) {
	t.Parallel()
	m := readModel(t, "deepseek-v3.2")
	flags := sglang.Config{"tp-size": 8.0, "kv-cache-dtype": "bf16", "page-size": 64.0}
	const before, after = 139.7, 51.4
	for name, printed := range map[string]float64{"without": 70272, "with": 78324} {
		tokens := sglang.KVTokens(before, after, 0.85, 78324, 64)
		o := sglang.Observation{
			Fraction: 0.85, TP: 8, KVDtype: "torch.bfloat16", PageSize: 64, BeforeLoadGiB: before, AfterLoadGiB: after, Tokens: tokens,
			KVGiB: math.Round(float64(tokens)*printed/sglang.GiB*100) / 100, KVParts: 1,
		}
		c, err := sglang.CalibrateModel(o, m, layoutOf(flags), layoutOf(flags))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := sglang.KVTokens(before, after, 0.90, 78324, 64)
		if got := c.Predict(sglang.Merge(flags, sglang.Config{"mem-fraction-static": 0.9})).Tokens; math.Abs(got.Mid-float64(want)) > 128 {
			t.Errorf("printed %s index rows: %+v at 0.90, want %d", name, got, want)
		}
	}
}

// TestReserveIsSeen: a log tells whether the multimodal reserve was kept.
func TestReserveIsSeen(t *testing.T) {
	t.Parallel()
	kimi := readModel(t, "kimi-k2.5")
	l := sglang.LayoutOf(sglang.Config{"tp-size": 8.0}, versionOf(t, "0.5.23"))
	for name, reserve := range map[string]float64{"kept": 100 / 1024.0, "not kept": 0} {
		o := founding085()
		o.Tokens = sglang.KVTokens(foundingT, foundingA-reserve, 0.85, cellBF16, 1)
		o.KVGiB = math.Round(float64(o.Tokens)*cellBF16/sglang.GiB*100) / 100
		c, err := sglang.CalibrateModel(o, kimi, l, l)
		if err != nil {
			t.Fatal(err)
		}
		want := float64(sglang.KVTokens(foundingT, foundingA-reserve, 0.90, cellBF16, 1))
		p := c.Predict(sglang.Config{"mem-fraction-static": 0.9})
		if !p.Tokens.Contains(want) || math.Abs(p.Tokens.Mid-want) > 6 || p.Tokens.HalfWidth() > 90 {
			t.Errorf("%s: %+v at 0.90, want %.0f", name, p.Tokens, want)
		}
		if lowest := 1 - (foundingA-reserve)/foundingT; math.Abs(p.LowestFraction-lowest) > 0.0002 {
			t.Errorf("%s: lowest fraction %.4f, want %.4f", name, p.LowestFraction, lowest)
		}
	}
}

func TestForeignModel(t *testing.T) {
	t.Parallel()
	c, err := sglang.CalibrateModel(founding085(), readModel(t, "llama-3.1-8b"), layoutOf(sglang.Config{"tp-size": 8.0}), layoutOf(sglang.Config{"tp-size": 8.0}))
	if !errors.Is(err, sglang.ErrCellDiffers) || !strings.Contains(err.Error(), "16384") {
		t.Errorf("error %v, want one that names the model's cell", err)
	}
	if got := c.Predict(sglang.Config{"mem-fraction-static": 0.88}).Tokens; !got.Contains(159277) {
		t.Errorf("%+v: the log alone must still be believed", got)
	}
}

func TestLoadOnlyRefuses(t *testing.T) {
	t.Parallel()
	if _, err := sglang.LoadOnly(sglang.Observation{BeforeLoadGiB: 94.04, Fraction: 0.9}, sglang.Cell{Bytes: 1}); err == nil || !strings.Contains(err.Error(), "Load weight end") {
		t.Errorf("error %v, want one that names the missing line", err)
	}
}

// TestCPULogs: on a CPU the memory for the pool is read anew after the weights, so only the pool
// itself tells the budget.
func TestCPULogs(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	r.Feed(readLog(t, "sglang-cpu-0.5.23.log"))
	o := r.Facts().Memory
	tiny, err := sglang.ParseModelConfig([]byte(`{"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"num_key_value_heads":4,"head_dim":128,"torch_dtype":"bfloat16"}`))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := sglang.Calibrate(o)
	if err != nil {
		t.Fatal(err)
	}
	model, err := sglang.CalibrateModel(o, &tiny, layoutOf(sglang.Config{}), layoutOf(sglang.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]sglang.Calibration{"log": alone, "log and model": model} {
		if c.CellBytes.Mid != 4096 {
			t.Errorf("%s: cell %+v, want 4096", name, c.CellBytes)
		}
		if got := c.Predict(sglang.Config{"mem-fraction-static": 0.02}).Tokens.Mid; got != 81171 {
			t.Errorf("%s: %.0f tokens for itself, want 81171", name, got)
		}
		want := 81171 + 20.94*0.03*sglang.GiB/4096
		if got := c.Predict(sglang.Config{"mem-fraction-static": 0.05}).Tokens.Mid; math.Abs(got-want) > 1 {
			t.Errorf("%s: %.0f tokens at 0.05, want %.0f", name, got, want)
		}
	}
	wide := model.Loosen(0.05).Predict(sglang.Config{"mem-fraction-static": 0.02}).Tokens
	if !wide.Contains(81171) || wide.HalfWidth() < 0.05*sglang.GiB/4096 {
		t.Errorf("loosened: %+v", wide)
	}
}
