package sglang

import (
	"errors"
	"fmt"
	"math"
)

const (
	// halfPrint is half of the last digit SGLang prints of a memory figure (two decimals).
	halfPrint = 0.005
	// launchSpreadGiB is how far the memory left for KV differs at least between launches that the
	// arithmetic calls equal: CUDA hands memory out in pages of 2 MiB.
	launchSpreadGiB = 2.0 / 1024
	// freeSpreadGiB is how far free memory after graph capture differs between launches that the
	// arithmetic calls equal: allocator and communicator buffers. The founding observations lie
	// within it.
	freeSpreadGiB = 0.15
	// silentGiB is the most that a launch takes from the budget for anything but KV without the size
	// growing with the budget: the reserve of 0.5.23 for multimodal models (1.1 GiB), drift on a CPU.
	silentGiB = 1.2
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
// fraction is T, known to the printed digits; one token's bytes follow from the printed pool size,
// or exactly from the model's config.json (see CalibrateModel).
type Calibration struct {
	Fraction     float64 // at which RestGiB holds: of the observed launch, or an end of the line
	TGiB         Range   // free memory before the weights were loaded
	CellBytes    Range   // one token's bytes on one rank, in the observed dtype
	RestGiB      Range   // the static budget beside the weights at Fraction
	DtypeBytes   float64 // of CellBytes
	Tokens       int     // observed pool, 0 when RestGiB does not come from it
	PageSize     int
	FreeGiB      float64 // free after graph capture at the observed fraction; 0 when the log has no graphs
	FreeAt       float64 // the observed fraction
	ChunkPrefill int     // chunked-prefill-size of the observed launch
	SpreadGiB    float64 // how far the budget may differ between equal launches
	Share        Range   // part of each further byte of budget that becomes KV; zero: all of it, or as Cell says
	Cell         *Cell   // the model's own cell for the launch to predict, nil when only the log is known
	Layout       Layout  // of that launch
}

// Prediction is the memory of one configuration, before it was launched.
type Prediction struct {
	Tokens             Range // KV tokens a rank; Low <= 0 means the launch may fail for want of KV memory
	FreeAfterGraphGiB  Range // left for activations after graph capture; chunked prefill must fit in it
	HasFree            bool  // false when the observed log says nothing about graphs (CPU): the range is zero
	HostPoolTokens     Range // host pool of a rank; zero when the hierarchical cache is off
	HostPoolGBPerRank  float64
	HostExtraGBPerRank float64 // index and draft pools beside it; 0 when the model is not known
	LowestFraction     float64 // the fraction at which the KV pool is empty
}

// Calibrate learns from one start-up log. The log must have reached the KV pool.
func Calibrate(o Observation) (Calibration, error) {
	if o.BeforeLoadGiB <= 0 || o.Tokens <= 0 || o.Fraction <= 0 || o.Fraction >= 1 {
		return Calibration{}, errors.New("calibrate: the log does not reach the KV pool (need the server_args, Load weight begin and KV Cache lines)")
	}
	cell, err := printedCell(o)
	if err != nil {
		return Calibration{}, err
	}
	c := calibrationOf(o)
	c.CellBytes, c.DtypeBytes = cell, observedDtype(o)
	if capped(o) {
		// The user capped the pool: its size says nothing about the memory there was.
		c.RestGiB = around(o.AfterLoadGiB-o.BeforeLoadGiB*(1-o.Fraction), 2*halfPrint)
		c.fillFree(o, cell.Mid)
		return c, nil
	}
	n, page := float64(o.Tokens), float64(c.PageSize)
	c.Tokens = o.Tokens
	pool := n * cell.Mid / GiB
	if gap := gapGiB(o, pool); gap > silentGiB {
		// Something else takes its part of the budget: the states of linear-attention layers, a pool for
		// sliding-window layers. Mostly in proportion; a fixed number of states would leave all growth to KV.
		part := pool / (pool + gap)
		c.Share = Range{Low: part, Mid: part, High: 1}
	} else {
		c.SpreadGiB = max(launchSpreadGiB, math.Abs(gap))
	}
	c.RestGiB = Range{Low: n * cell.Low / GiB, Mid: (n + page/2) * cell.Mid / GiB, High: (n + page) * cell.High / GiB}
	return c, nil
}

// calibrationOf is what both ways of calibrating take from a log alike.
func calibrationOf(o Observation) Calibration {
	return Calibration{
		Fraction: o.Fraction, FreeAt: o.Fraction, PageSize: max(1, o.PageSize), FreeGiB: freeAfterGraph(o), ChunkPrefill: o.ChunkedPrefill,
		TGiB: around(o.BeforeLoadGiB, halfPrint),
	}
}

// gapGiB is what the weight lines say the budget had beyond a pool of poolGiB. Within the printed
// digits it is 0; more is another pool, a reserve, or memory that moved while the server started, and
// a log that disagrees with itself is not exact for other launches either.
func gapGiB(o Observation, poolGiB float64) float64 {
	gap := o.AfterLoadGiB - o.BeforeLoadGiB*(1-o.Fraction) - poolGiB
	if o.AfterLoadGiB <= 0 || math.Abs(gap) <= halfPrint*(2-o.Fraction) {
		return 0
	}
	return gap
}

// capped reports whether --max-total-tokens decided the size of the pool.
func capped(o Observation) bool {
	return o.MaxTotalTokens > 0 && o.Tokens > o.MaxTotalTokens-max(1, o.PageSize)
}

// fillFree takes off the free memory what the pool leaves empty because it was capped: other launches
// fill it. cell is the bytes of an observed token.
func (c *Calibration) fillFree(o Observation, cell float64) {
	if !capped(o) || c.FreeGiB <= 0 {
		return
	}
	empty := c.tokens(o.Fraction, 1, c.PageSize).Mid*c.CellBytes.Mid - float64(o.Tokens)*cell
	c.FreeGiB = max(c.FreeGiB-max(0, empty)/GiB, halfPrint) // 0 would mean not known
}

// printedCell is one token's bytes as the "KV Cache is allocated" line tells them: the printed size
// over the tokens (the pool may hold one page more than it says), so a range. Its middle is the most
// likely number inside: latent rows are 512 + 64 elements in the models there are, and heads give a
// product of powers of two and small factors.
func printedCell(o Observation) (Range, error) {
	blur := halfPrint * float64(max(1, o.KVParts))
	if o.KVGiB <= blur {
		return Range{}, fmt.Errorf("calibrate: the KV pool of %d tokens prints as %.2f GB, too small to tell one token's bytes; observe a launch with a higher mem-fraction-static", o.Tokens, o.KVGiB)
	}
	n := float64(o.Tokens)
	cell := Range{Low: (o.KVGiB - blur) * GiB / (n + float64(max(1, o.PageSize))), High: (o.KVGiB + blur) * GiB / n}
	cell.Mid = roundest(cell.Low, cell.High)
	latentRow := (512 + 64) * observedDtype(o)
	if rows := math.Round((cell.Low+cell.High)/2/latentRow) * latentRow; o.KVParts <= 1 && cell.Contains(rows) {
		cell.Mid = rows
	}
	return cell, nil
}

// observedDtype is the bytes of one KV element of the observed pool; 2 where the log does not say.
func observedDtype(o Observation) float64 {
	if b, ok := DtypeBytes(o.KVDtype); ok {
		return b
	}
	return 2
}

// roundest is the whole number between low and high that the highest power of two divides, or their
// middle when there is none.
func roundest(low, high float64) float64 {
	for step := math.Exp2(40); step >= 1; step /= 2 {
		if n := math.Ceil(low/step) * step; n <= high && n > 0 {
			return n
		}
	}
	return (low + high) / 2
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
	p := Prediction{Tokens: c.tokens(fraction, scale, page), LowestFraction: c.Lowest().Mid}
	full := p.Tokens.Mid
	if limit, ok := cfg.Float("max-total-tokens"); ok && limit > 0 {
		limit = float64(floorTokens(limit, page))
		p.Tokens = Range{min(p.Tokens.Low, limit), min(p.Tokens.Mid, limit), min(p.Tokens.High, limit)}
	}
	if c.FreeGiB > 0 {
		unused := (full - p.Tokens.Mid) * c.CellBytes.Mid / scale / GiB // by max-total-tokens
		p.FreeAfterGraphGiB, p.HasFree = around(c.FreeGiB+c.TGiB.Mid*(c.FreeAt-fraction)+unused, freeSpreadGiB), true
	}
	c.predictHost(cfg, scale, page, &p)
	return p
}

// Lowest is the fraction at which the KV pool is empty: 1 - A/T, and what fixed states take.
func (c Calibration) Lowest() Range {
	share := c.share()
	if c.Cell != nil {
		share = exactly(1) // RestGiB is the budget before the states take their part
	}
	at := func(rest, t, share float64) float64 { return c.Fraction - (rest-c.fixed())/(t*share) }
	out := Range{Low: math.Inf(1), Mid: at(c.RestGiB.Mid, c.TGiB.Mid, share.Mid), High: math.Inf(-1)}
	for _, t := range []float64{c.TGiB.Low, c.TGiB.High} {
		for _, s := range []float64{share.Low, share.High} {
			for _, rest := range []float64{c.RestGiB.Low, c.RestGiB.High} {
				out.Low, out.High = min(out.Low, at(rest, t, s)), max(out.High, at(rest, t, s))
			}
		}
	}
	return out
}

// share is the part of each byte of budget that becomes KV pool, fixed what states take before.
func (c Calibration) share() Range {
	switch {
	case c.Cell != nil:
		return exactly(c.Cell.Share())
	case c.Share.Mid > 0:
		return c.Share
	}
	return exactly(1)
}

func (c Calibration) fixed() float64 {
	if c.Cell == nil {
		return 0
	}
	return c.Cell.FixedGiB()
}

// tokens is the pool at another fraction: the extremes over what is uncertain. When the observed
// count is exact its bytes grow and shrink with the cell, so the cell only blurs the difference.
func (c Calibration) tokens(fraction, scale float64, page int) Range {
	delta, share, fixed := fraction-c.Fraction, c.share(), c.fixed()
	at := func(cell, rest, t, share float64) float64 {
		if c.Cell != nil {
			rest *= share // the rest is the whole budget, states included
		}
		return (rest - fixed*share + share*t*delta) * GiB / cell * scale
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, cell := range []float64{c.CellBytes.Low, c.CellBytes.High} {
		rest := c.RestGiB
		if c.Tokens > 0 {
			rest = Range{Low: float64(c.Tokens) * cell / GiB, High: float64(c.Tokens+c.PageSize) * cell / GiB}
		}
		for _, t := range []float64{c.TGiB.Low, c.TGiB.High} {
			for _, s := range []float64{share.Low, share.High} {
				low = min(low, at(cell, rest.Low-c.SpreadGiB, t, s))
				high = max(high, at(cell, rest.High+c.SpreadGiB, t, s))
			}
		}
	}
	return Range{
		Low:  float64(floorTokens(low, page)),
		Mid:  float64(floorTokens(at(c.CellBytes.Mid, c.RestGiB.Mid, c.TGiB.Mid, share.Mid), page)),
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
	if c.Cell != nil {
		c.modelHost(cfg, page, p)
		return
	}
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

// Loosen widens the memory for KV by spread on both sides, for hosts whose free memory moves between
// launches.
func (c Calibration) Loosen(spreadGiB float64) Calibration {
	c.Tokens = 0 // the observed pool is no longer exact
	c.RestGiB.Low -= spreadGiB
	c.RestGiB.High += spreadGiB
	return c
}
