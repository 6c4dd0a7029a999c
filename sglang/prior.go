package sglang

import (
	"errors"
	"fmt"
	"math"
)

// Prior is what a configuration file and the size of the GPU say before anything was launched.
// T (free memory before the weights), the weights and what graphs need are estimates with stated
// ranges; the cell is exact. One start-up log replaces all of it: Calibrate.
type Prior struct {
	Cell       Cell
	TGiB       Range // free on a rank before the weights are loaded
	WeightsGiB Range // weights and their runtime buffers on the fullest rank
	OutsideGiB Range // graphs, request table and runtime, outside the static budget
	Exact      bool  // the weights' size is that of the files, not an estimate of the shape
}

const (
	// driverLow and driverHigh bound what the driver, CUDA contexts and communicators take of a GPU
	// before the weights: 0.7 to 1.6 GiB in the logs seen, more with more ranks.
	driverLow, driverHigh, driverPerRank = 0.4, 1.4, 0.1
	// runtimeHigh is the most that loading leaves allocated beside the weights.
	runtimeHigh = 0.8
)

// NewPrior estimates a launch from the model alone. gpuGiB is a GPU's whole memory as nvidia-smi says
// it; checkpointBytes is the size of the weight files, 0 when unknown.
func NewPrior(m *ModelConfig, l Layout, gpuGiB, checkpointBytes float64, auto Auto) (Prior, error) {
	if math.IsNaN(gpuGiB) || gpuGiB < 1 || gpuGiB > 4096 {
		return Prior{}, errors.New("a GPU's memory must lie between 1 and 4096 GiB")
	}
	if m.Hidden == 0 && checkpointBytes <= 0 {
		return Prior{}, errors.New("config.json: hidden_size is missing, so the size of the weights cannot be estimated; give the model's folder with its weight files, or a start-up log (--observed)")
	}
	cell, err := m.Cell(l)
	if err != nil {
		return Prior{}, err
	}
	p := Prior{Cell: cell, Exact: checkpointBytes > 0}
	p.TGiB = Range{Low: gpuGiB - driverHigh - driverPerRank*float64(min(l.Ranks(), 8)), Mid: gpuGiB - 1, High: gpuGiB - driverLow}
	weights := m.RankWeights(l, checkpointBytes) / GiB
	spread := 0.07
	if p.Exact {
		spread = 0.025
	}
	p.WeightsGiB = Range{Low: weights * (1 - spread), Mid: weights + runtimeHigh/2, High: weights*(1+spread) + runtimeHigh}
	context := l.Context
	if context == 0 {
		context = m.ContextLen
	}
	running := l.MaxRunning
	if running == 0 {
		running = 2048
	}
	table := float64(running) * float64(context) * 4 / GiB // the request table: an int32 a position
	graphs := 2 * float64(auto.GraphMax) / 1024            // SGLang's own rule: 2 MiB a batch size
	p.OutsideGiB = Range{Low: 0.5, Mid: 1 + graphs + table/2, High: 2.5 + 2*graphs + table}
	return p, nil
}

// Line is the prior as a calibration: the budget is T x fraction - weights.
func (p Prior) Line(l Layout) Calibration {
	return Calibration{
		TGiB:      p.TGiB,
		RestGiB:   Range{Low: -p.WeightsGiB.High, Mid: -p.WeightsGiB.Mid, High: -p.WeightsGiB.Low},
		CellBytes: exactly(p.Cell.Bytes), DtypeBytes: p.Cell.DtypeBytes, PageSize: max(1, l.PageSize),
		Cell: &p.Cell, Layout: l,
	}
}

// Predict is Line's prediction, with free memory after graph capture as an estimate.
func (p Prior) Predict(l Layout, cfg Config) Prediction {
	out := p.Line(l).Predict(cfg)
	if f, ok := cfg.Float("mem-fraction-static"); ok {
		slack := 1 - f
		out.HasFree = true
		out.FreeAfterGraphGiB = Range{
			Low: p.TGiB.Low*slack - p.OutsideGiB.High, Mid: p.TGiB.Mid*slack - p.OutsideGiB.Mid, High: p.TGiB.High*slack - p.OutsideGiB.Low,
		}
	}
	return out
}

// RankWeights is the bytes of weights on the fullest rank. With the size of the weight files it is
// scaled to them, so only the split is an estimate.
func (m *ModelConfig) RankWeights(l Layout, checkpointBytes float64) float64 {
	p := m.Parameters()
	tp, attnTP := float64(max(1, l.TP)), float64(l.AttentionTP())
	start, end := l.stage(m.Layers, max(1, l.PP)-1) // the last stage has the most layers
	share := float64(end-start) / float64(max(1, m.Layers))
	b := m.partBytes()
	layers := p.Attention*b.attention/attnTP + p.Latent*b.attention + p.State*b.state/attnTP +
		p.Dense*b.dense/tp + p.Experts*b.experts/tp + p.Shared*b.shared/tp + p.Router*b.plain
	ends := p.Embeddings * b.plain / tp
	if l.PP > 1 && !m.shape.tied {
		ends /= 2
	}
	rank := layers*share + ends + p.Vision*b.plain/tp
	if l.Draft != "" {
		rank += p.Draft * b.experts / tp
	}
	if checkpointBytes > 0 {
		whole := p.Embeddings*b.plain + (p.Attention+p.Latent)*b.attention + p.State*b.state + p.Dense*b.dense +
			p.Experts*b.experts + p.Shared*b.shared + (p.Router+p.Vision)*b.plain + p.Draft*b.experts
		if whole > 0 {
			return rank * checkpointBytes / whole
		}
		return checkpointBytes * share / tp
	}
	return rank
}

// partBytes are bytes a weight in each part of the model.
type partBytes struct{ plain, attention, state, dense, experts, shared float64 }

func (m *ModelConfig) partBytes() partBytes {
	plain := 2.0 // SGLang loads float32 checkpoints in half precision too
	all := partBytes{plain, plain, plain, plain, plain, plain}
	q := m.Quant
	if q.ParamBytes <= 0 {
		return all
	}
	all.experts = q.ParamBytes
	if q.Experts {
		return all
	}
	part := func(names ...string) float64 {
		for _, name := range names {
			if q.skips(name) {
				return plain
			}
		}
		return q.ParamBytes
	}
	all.attention = part("self_attn", "q_proj", "attention")
	all.state = part("linear_attn", "mamba", "mixer")
	all.dense = part(`mlp\.(gate|up`, `mlp\\.(gate|up`, "mlp.gate_proj", "mlp.down_proj")
	all.shared = part("shared_expert")
	return all
}

// exactly is a range of one value.
func exactly(v float64) Range { return Range{v, v, v} }

// String is the range for a person: "12.3 (11.0 to 13.9)".
func (r Range) String() string {
	if r.Low == r.High {
		return fmt.Sprintf("%.4g", r.Mid)
	}
	return fmt.Sprintf("%.4g (%.4g to %.4g)", r.Mid, r.Low, r.High)
}
