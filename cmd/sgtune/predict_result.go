package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"sgtune/sglang"
)

// The shape below is what scripts rely on (contract: "sgtune predict"); it changes with it only.

type predictResult struct {
	Rows       []predictRow `json:"rows"`
	Lowest     float64      `json:"lowest_fraction"` // at or below it the KV pool is empty
	LowestLow  float64      `json:"lowest_fraction_low"`
	LowestHigh float64      `json:"lowest_fraction_high"`
	Host       predictHost  `json:"host"`

	BasedOn    string   `json:"based_on"`
	CellBytes  float64  `json:"cell_bytes"` // one token on one rank
	ContextLen int      `json:"context_len"`
	Pools      int      `json:"pools"` // data-parallel groups with a pool each; figures are of one
	Notes      []string `json:"notes,omitempty"`

	chunk    int
	auto     sglang.Auto
	observed float64 // fraction of the log, 0 without
	kind     string
}

type predictRow struct {
	Fraction float64  `json:"mem_fraction_static"`
	Tokens   int      `json:"max_total_num_tokens"`
	Low      int      `json:"tokens_low"`
	High     int      `json:"tokens_high"`
	Free     *float64 `json:"free_after_graph_gb"` // GiB, as SGLang's "GB"; null when nothing is known, or there is no KV pool
	FreeLow  *float64 `json:"free_low_gb,omitempty"`
	FreeHigh *float64 `json:"free_high_gb,omitempty"`
	Requests float64  `json:"requests_of_full_length"`
	HostGB   float64  `json:"host_gb_per_rank"`
	Cluster  int      `json:"cluster_tokens,omitempty"` // of all data-parallel pools, where there are several
	Warning  string   `json:"warning,omitempty"`

	safe bool // starts, and leaves room to prefill
}

type predictHost struct {
	PerRank float64  `json:"per_rank_gb"` // of the largest row, decimal GB
	Total   float64  `json:"total_gb"`    // on one host
	Fits    *bool    `json:"fits"`        // null when --host-ram was not given
	Tokens  int      `json:"tokens"`
	Extra   float64  `json:"extra_gb,omitempty"` // index and draft pools of all ranks, beside total_gb
	Most    *float64 `json:"most_gb_per_rank,omitempty"`
	Why     string   `json:"why,omitempty"`
	Own     string   `json:"sglang_check,omitempty"` // what SGLang's own check makes of it

	ranks int
}

// predict does the arithmetic.
func (in *predictInput) predict() (*predictResult, error) {
	l := in.layout(in.flags)
	r := &predictResult{ContextLen: in.contextLen(), Pools: l.Pools(), Notes: in.notes}
	r.auto = in.autoDefaults(l)
	r.chunk = in.chunk(r.auto, l)
	line, prior, err := in.line(l, r)
	if err != nil {
		return nil, err
	}
	lowest := line.Lowest()
	r.Lowest, r.LowestLow, r.LowestHigh = round(lowest.Mid, 3), round(lowest.Low, 3), round(lowest.High, 3)
	r.CellBytes = line.CellBytes.Mid
	if line.Cell == nil { // of the observed dtype
		dtype, _ := in.flags["kv-cache-dtype"].(string)
		if bytes, ok := sglang.DtypeBytes(dtype); ok && line.DtypeBytes > 0 {
			r.CellBytes *= bytes / line.DtypeBytes
		}
	}
	if line.Cell != nil {
		r.kind = line.Cell.Kind
		r.Notes = append(r.Notes, line.Cell.Notes...)
	}
	fractions := in.fractions
	if len(fractions) == 0 {
		fractions = defaultFractions(lowest, r.observed)
	}
	cfg := in.flags.Clone()
	if cfg == nil {
		cfg = sglang.Config{}
	}
	cfg["page-size"] = float64(max(1, l.PageSize))
	var biggest sglang.Prediction
	for _, f := range fractions {
		cfg["mem-fraction-static"] = f
		p := line.Predict(cfg)
		if prior != nil {
			p = prior.Predict(l, cfg)
		}
		if in.onCPU() {
			p.HasFree = false
		}
		if p.HostPoolGBPerRank >= biggest.HostPoolGBPerRank {
			biggest = p
		}
		r.Rows = append(r.Rows, r.row(f, p, in.version))
	}
	r.Host = in.host(l, biggest)
	return r, nil
}

// line is the calibration the rows are read from; prior is not nil when it is an estimate.
func (in *predictInput) line(l sglang.Layout, r *predictResult) (line sglang.Calibration, prior *sglang.Prior, err error) {
	if in.log == nil {
		r.BasedOn = in.basis(false)
		p, err := sglang.NewPrior(in.model, l, in.gpuGiB, in.weights, r.auto)
		if err != nil {
			return line, nil, usagef("%w", err)
		}
		return p.Line(l), &p, nil
	}
	o := in.log.Memory
	r.observed = o.Fraction
	r.BasedOn = in.basis(o.Tokens > 0)
	if in.model == nil {
		if o.Tokens <= 0 {
			return line, nil, usagef("the log ends before its KV pool, so it does not say what a token takes; give --model (config.json) too")
		}
		line, err = sglang.Calibrate(o)
	} else {
		line, err = sglang.CalibrateModel(o, in.model, in.layout(in.logged), l)
		if errors.Is(err, sglang.ErrCellDiffers) && line.TGiB.Mid > 0 {
			r.Notes = append(r.Notes, "--model does not fit the log, which is believed: "+firstLine(err))
			err = nil
		}
	}
	if err != nil {
		return line, nil, usagef("%w", err)
	}
	if in.onCPU() { // it reads the host's free memory once more when it sizes the pool
		line = line.Loosen(cpuSpreadGiB)
		r.Notes = append(r.Notes, "a server without GPU sizes its pool by the host's free memory of that moment: expect some percent more or less")
	}
	return line, nil, nil
}

// cpuSpreadGiB is how much the free memory of a host moves between two starts.
const cpuSpreadGiB = 0.05

func (r *predictResult) row(f float64, p sglang.Prediction, v sglang.Version) predictRow {
	row := predictRow{
		Fraction: f, Tokens: int(max(0, p.Tokens.Mid)), Low: int(max(0, p.Tokens.Low)), High: int(max(0, p.Tokens.High)), HostGB: round(p.HostPoolGBPerRank, 2),
	}
	if r.ContextLen > 0 {
		row.Requests = round(float64(row.Tokens)/float64(r.ContextLen), 3)
	}
	if r.Pools > 1 {
		row.Cluster = row.Tokens * r.Pools
	}
	if p.HasFree && row.Tokens > 0 { // without a pool it never gets there
		free, low, high := round(p.FreeAfterGraphGiB.Mid, 2), round(p.FreeAfterGraphGiB.Low, 2), round(p.FreeAfterGraphGiB.High, 2)
		row.Free, row.FreeLow, row.FreeHigh = &free, &low, &high
	}
	row.Warning, row.safe = r.warning(row, p, v)
	return row
}

const (
	// oomPerToken and tightPerToken are GiB of free memory a token of the prefill chunk below which a
	// prefill runs out of memory, or comes near. SGLang's own rule keeps 1.5 MiB, graphs included; of
	// the launches known (chunks of 8192) 3.52 and 5.47 GiB ran, 0.82 and 4.71 GiB died under load.
	oomPerToken   = 0.2 / 1024
	tightPerToken = 0.65 / 1024
)

// warning says what is predicted to go wrong, and whether the launch is safe all the same.
func (r *predictResult) warning(row predictRow, p sglang.Prediction, v sglang.Version) (text string, safe bool) {
	small, refused := sglang.HostPoolTooSmall(v, int(p.HostPoolTokens.Mid), row.Tokens)
	chunk := float64(r.chunk)
	switch {
	case row.High <= 0:
		return "fails: no memory left for KV", false
	case row.Tokens <= 0:
		return "likely fails: no memory left for KV", false
	case row.Low <= 0:
		return "may fail: perhaps no memory for KV", false
	case refused:
		return "refused: the host pool must be larger than the KV pool", false
	case row.Free != nil && *row.Free <= 0:
		return "fails: out of GPU memory in graph capture", false
	case row.Free != nil && *row.Free < oomPerToken*chunk:
		return "likely out of GPU memory in prefill", false
	case row.Free != nil && *row.Free < tightPerToken*chunk:
		return "tight for prefill", false
	case small:
		return "host pool not larger than the KV pool: of little use", true
	}
	return "", true
}

// host judges the host RAM: by the tuner's rule, and by SGLang's own check.
func (in *predictInput) host(l sglang.Layout, p sglang.Prediction) predictHost {
	ranks := l.RanksPerHost()
	h := predictHost{
		PerRank: round(p.HostPoolGBPerRank, 2), Total: round(p.HostPoolGBPerRank*float64(ranks), 2), Tokens: int(max(0, p.HostPoolTokens.Mid)),
		Extra: round(p.HostExtraGBPerRank*float64(ranks), 2), ranks: ranks,
	}
	if in.hostRAM <= 0 {
		return h
	}
	ram := sglang.HostRAM{AvailableBytes: in.hostRAM, Ranks: ranks}
	err := ram.Fits((p.HostPoolGBPerRank + p.HostExtraGBPerRank) * float64(ranks) * sglang.GB)
	fits, most := err == nil, round(max(0, math.Floor(ram.Limit()/sglang.GB/float64(ranks))), 0)
	h.Fits, h.Most = &fits, &most
	if err != nil {
		h.Why = err.Error()
	}
	if p.HostPoolGBPerRank > 0 {
		h.Own = "passes SGLang's own check"
		if err := (sglang.HostView{AvailableBytes: in.hostRAM, Ranks: ranks}).Check(in.version, p.HostPoolGBPerRank*sglang.GB); err != nil {
			h.Own = err.Error()
		}
	}
	return h
}

// autoDefaults is what SGLang would choose itself, where the GPU is known.
func (in *predictInput) autoDefaults(l sglang.Layout) sglang.Auto {
	number := func(name string) int { f, _ := in.flags.Float(name); return int(f) }
	word := func(name string) string { s, _ := in.flags[name].(string); return s }
	return sglang.AutoDefaults(sglang.AutoInput{
		Version: in.version, GPUMiB: in.gpuGiB * 1024, TP: l.TP, PP: l.PP, DP: l.DP, DPAttention: l.DPAttention, MLA: in.model != nil && in.model.MLA,
		Chunk: max(0, number("chunked-prefill-size")), GraphMax: number("cuda-graph-max-bs"), MaxRunning: l.MaxRunning, Draft: l.Draft,
		DeepEP: word("moe-a2a-backend") == "deepep",
	})
}

// chunk is the prompt tokens of one prefill step.
func (in *predictInput) chunk(auto sglang.Auto, l sglang.Layout) int {
	n, given := in.flags.Float("chunked-prefill-size")
	if in.log != nil && in.log.Memory.ChunkedPrefill != 0 {
		if _, said := in.given["chunked-prefill-size"]; !said {
			return max(in.log.Memory.ChunkedPrefill, 2048)
		}
	}
	switch {
	case given && n < 0:
		return 16384 // whole prompts, up to --max-prefill-tokens
	case given:
		return int(n)
	case l.DPAttention:
		return auto.Chunk / l.Pools()
	}
	return auto.Chunk
}

// defaultFractions are the workable ones up to 0.95, in steps that make at most 20 rows, and the
// observed one.
func defaultFractions(lowest sglang.Range, observed float64) []float64 {
	const top = 0.95
	first := math.Floor(min(max(lowest.Mid, 0), 0.90)*100)/100 + 0.01
	step := 0.01
	for (top-first)/step > 20 {
		step = map[float64]float64{0.01: 0.02, 0.02: 0.05, 0.05: 0.1}[step]
	}
	var out []float64
	for f := top; f >= first-1e-9; f -= step {
		out = append(out, round(f, 3))
	}
	if observed > 0 && observed < 1 && !slices.Contains(out, observed) {
		out = append(out, observed)
	}
	slices.Sort(out)
	return out
}

func round(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	if r := math.Round(v*p) / p; r != 0 {
		return r
	}
	return 0 // not minus zero
}

func firstLine(err error) string {
	text := fmt.Sprint(err)
	for i, c := range text {
		if c == '\n' {
			return text[:i]
		}
	}
	return text
}
