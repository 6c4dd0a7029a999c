package sglang

import (
	"errors"
	"fmt"
	"math"
)

const (
	// halfPrint is half of the last digit SGLang prints of a memory figure (two decimals).
	halfPrint = 0.005
	// launchSpreadGiB is how far the memory left for KV differs between launches that the arithmetic
	// calls equal: some MiB of driver and communicator state.
	launchSpreadGiB = 0.01
	// freeSpreadGiB is how far free memory after graph capture differs between launches that the
	// arithmetic calls equal: allocator and communicator buffers. The founding observations lie
	// within it.
	freeSpreadGiB = 0.15
)

// Range is a predicted figure with its uncertainty.
type Range struct{ Low, Mid, High float64 }

// Contains reports whether v lies in the range, ends included.
func (r Range) Contains(v float64) bool { return r.Low <= v && v <= r.High }

// HalfWidth is half the range's width.
func (r Range) HalfWidth() float64 { return (r.High - r.Low) / 2 }

// Calibration is what one start-up log reveals about a model on a host: enough to predict the KV
// pool of every other fraction and dtype. It holds for the same model, host, parallel sizes,
// attention settings and draft model as the observed launch.
//
// The exact token count of the observed pool fixes its bytes to within one page; the slope over the
// fraction is T, known to the printed digits; one token's bytes follow from the printed pool size.
type Calibration struct {
	Fraction     float64 // of the observed launch
	TGiB         Range   // free memory before the weights were loaded
	CellBytes    Range   // one token's bytes on one rank, in the observed dtype
	RestGiB      Range   // bytes for KV at Fraction
	DtypeBytes   float64 // of the observed pool
	Tokens       int     // observed pool; 0 when a user's cap hides what would have fit
	PageSize     int
	FreeGiB      float64 // free after graph capture at Fraction; 0 when the log has no graphs
	ChunkPrefill int     // chunked-prefill-size of the observed launch
}

// Prediction is the memory of one configuration, before it was launched.
type Prediction struct {
	Tokens            Range // KV tokens a rank; Low <= 0 means the launch may fail for want of KV memory
	FreeAfterGraphGiB Range // left for activations after graph capture; chunked prefill must fit in it
	HasFree           bool  // false when the observed log says nothing about graphs (CPU): the range is zero
	HostPoolTokens    Range // host pool of a rank; zero when the hierarchical cache is off
	HostPoolGBPerRank float64
	LowestFraction    float64 // the fraction at which the KV pool is empty
}

// Calibrate learns from one start-up log. The log must have reached the KV pool.
func Calibrate(o Observation) (Calibration, error) {
	if o.BeforeLoadGiB <= 0 || o.Tokens <= 0 || o.Fraction <= 0 || o.Fraction >= 1 {
		return Calibration{}, errors.New("calibrate: the log does not reach the KV pool (need the server_args, Load weight begin and KV Cache lines)")
	}
	parts := max(1, o.KVParts)
	if o.KVGiB <= halfPrint*float64(parts) {
		return Calibration{}, fmt.Errorf("calibrate: the KV pool of %d tokens prints as %.2f GB, too small to tell one token's bytes; observe a launch with a higher mem-fraction-static", o.Tokens, o.KVGiB)
	}
	page := max(1, o.PageSize)
	c := Calibration{
		Fraction: o.Fraction, PageSize: page, FreeGiB: freeAfterGraph(o), ChunkPrefill: o.ChunkedPrefill,
		TGiB: around(o.BeforeLoadGiB, halfPrint),
	}
	c.DtypeBytes = 2
	if b, ok := DtypeBytes(o.KVDtype); ok {
		c.DtypeBytes = b
	}
	n := float64(o.Tokens)
	perToken := GiB / n
	c.CellBytes = Range{
		Low:  (o.KVGiB - halfPrint*float64(parts)) * perToken,
		Mid:  math.Round(o.KVGiB * perToken), // a cell is a whole number of bytes
		High: (o.KVGiB + halfPrint*float64(parts)) * perToken,
	}
	if o.MaxTotalTokens > 0 && o.Tokens > o.MaxTotalTokens-page {
		// The user capped the pool: its size says nothing about the memory there was.
		c.RestGiB = around(o.AfterLoadGiB-o.BeforeLoadGiB*(1-o.Fraction), 2*halfPrint)
		return c, nil
	}
	c.Tokens = o.Tokens
	c.RestGiB = Range{
		Low:  n * c.CellBytes.Low / GiB,
		Mid:  (n + float64(page)/2) * c.CellBytes.Mid / GiB,
		High: (n + float64(page)) * c.CellBytes.High / GiB,
	}
	return c, nil
}

// freeAfterGraph is what was left for prefill once everything static was in place. Without graph
// lines the capacity line's figure says the same, on a GPU.
func freeAfterGraph(o Observation) float64 {
	if o.AfterGraphGiB > 0 {
		return o.AfterGraphGiB
	}
	return o.AvailableGiB
}

// Predict gives the memory of a configuration. It reads mem-fraction-static, kv-cache-dtype,
// page-size, max-total-tokens, hicache-size, hicache-ratio and enable-hierarchical-cache; absent
// knobs are as in the observed launch, kv-cache-dtype "auto" too. What other knobs change (graph
// batch sizes, a draft model) it cannot know.
func (c Calibration) Predict(cfg Config) Prediction {
	fraction := c.Fraction
	if f, ok := cfg.Float("mem-fraction-static"); ok {
		fraction = f
	}
	page := c.PageSize
	if p, ok := cfg.Float("page-size"); ok && p >= 1 {
		page = int(p)
	}
	scale := c.dtypeScale(cfg)
	p := Prediction{
		Tokens:         c.tokens(fraction, scale, page),
		LowestFraction: c.Fraction - c.RestGiB.Mid/c.TGiB.Mid,
	}
	if limit, ok := cfg.Float("max-total-tokens"); ok && limit > 0 {
		limit = float64(floorTokens(limit, page))
		p.Tokens = Range{min(p.Tokens.Low, limit), min(p.Tokens.Mid, limit), min(p.Tokens.High, limit)}
	}
	if c.FreeGiB > 0 {
		p.FreeAfterGraphGiB, p.HasFree = around(c.FreeGiB+c.TGiB.Mid*(c.Fraction-fraction), freeSpreadGiB), true
	}
	c.predictHost(cfg, scale, page, &p)
	return p
}

// tokens is the pool at another fraction: the extremes over what is uncertain. When the observed
// count is exact its bytes grow and shrink with the cell, so the cell only blurs the difference.
func (c Calibration) tokens(fraction, scale float64, page int) Range {
	delta := fraction - c.Fraction
	at := func(cell, rest, t float64) float64 { return (rest + t*delta) * GiB / cell * scale }
	low, high := math.Inf(1), math.Inf(-1)
	for _, cell := range []float64{c.CellBytes.Low, c.CellBytes.High} {
		rest := c.RestGiB
		if c.Tokens > 0 {
			rest = Range{Low: float64(c.Tokens) * cell / GiB, High: float64(c.Tokens+c.PageSize) * cell / GiB}
		}
		for _, t := range []float64{c.TGiB.Low, c.TGiB.High} {
			low = min(low, at(cell, rest.Low-launchSpreadGiB, t))
			high = max(high, at(cell, rest.High+launchSpreadGiB, t))
		}
	}
	return Range{
		Low:  float64(floorTokens(low, page)),
		Mid:  float64(floorTokens(at(c.CellBytes.Mid, c.RestGiB.Mid, c.TGiB.Mid), page)),
		High: float64(floorTokens(high, page)),
	}
}

// dtypeScale is how many tokens of the configured dtype fit where one of the observed did.
func (c Calibration) dtypeScale(cfg Config) float64 {
	name, _ := cfg["kv-cache-dtype"].(string)
	if bytes, ok := DtypeBytes(name); ok {
		return c.DtypeBytes / bytes
	}
	return 1
}

func (c Calibration) predictHost(cfg Config, scale float64, page int, p *Prediction) {
	cell := Range{c.CellBytes.Low / scale, c.CellBytes.Mid / scale, c.CellBytes.High / scale}
	if gb := hicacheGB(cfg); gb > 0 {
		p.HostPoolGBPerRank = gb
		p.HostPoolTokens = Range{
			Low:  float64(HostPoolTokens(gb, cell.High, page)),
			Mid:  float64(HostPoolTokens(gb, cell.Mid, page)),
			High: float64(HostPoolTokens(gb, cell.Low, page)),
		}
		return
	}
	if _, off := cfg["hicache-size"]; off && hicacheGB(cfg) == 0 {
		if _, ratio := cfg["hicache-ratio"]; !ratio {
			return // hicache-size 0: the cache is off
		}
	}
	if on, _ := cfg["enable-hierarchical-cache"].(bool); !on {
		return
	}
	ratio := DefaultHicacheRatio
	if r, ok := cfg.Float("hicache-ratio"); ok && r > 0 {
		ratio = r
	}
	p.HostPoolTokens = Range{p.Tokens.Low * ratio, p.Tokens.Mid * ratio, p.Tokens.High * ratio}
	p.HostPoolGBPerRank = p.HostPoolTokens.Mid * cell.Mid / GB
}

// around is a range of the same distance on both sides.
func around(mid, half float64) Range { return Range{mid - half, mid, mid + half} }
