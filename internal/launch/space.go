package launch

import (
	"math"
	"slices"

	"sgtune/sglang"
)

// Dimension is one knob of the proposed search space.
type Dimension struct {
	Name           string
	Values         []any   // the values to try; nil when it is a range
	Min, Max, Step float64 // a range
	Comment        string
	Off            bool // proposed as a comment only
}

// propose fills the space with the knobs that pay off most often, around what runs today, and moves
// today's values of these knobs into the baseline.
func (p *Plan) propose() {
	c := p.config()
	p.Space = append(p.Space, p.fraction(c))
	if d, ok := p.hicache(c); ok {
		p.Space = append(p.Space, d)
	}
	p.Space = append(p.Space, p.chunk(c), p.conservativeness(c))
	if d, ok := p.running(c); ok {
		p.Space = append(p.Space, d)
	}
	p.Space = append(p.Space, p.graphs(c), p.policy(c))
	p.Flags = slices.DeleteFunc(p.Flags, func(e Entry) bool {
		searched := slices.ContainsFunc(p.Space, func(d Dimension) bool { return d.Name == e.Name && !d.Off })
		if searched || e.Name == "kv-cache-dtype" && sglang.Lossy(e.Name, e.Value) {
			p.Baseline = append(p.Baseline, e)
			return true
		}
		return false
	})
}

// fraction searches memory around today's value: downwards where memory was too tight, upwards for
// more KV cache. Without a value the server chooses one, mostly between 0.8 and 0.9.
func (p *Plan) fraction(c sglang.Config) Dimension {
	d := Dimension{Name: "mem-fraction-static", Min: 0.80, Max: 0.92, Step: 0.01, Comment: "GPU memory for weights and KV cache; above it graphs and activations"}
	now, ok := c.Float(d.Name)
	switch {
	case !ok:
		d.Comment += "; today the server chooses"
	case now < 0.2: // a toy or a shared device
		d.Step = round(now / 4)
		d.Min, d.Max = round(now-2*d.Step), round(now+4*d.Step)
	default:
		top := min(0.95, now+0.08)
		if now > top {
			top = now
		}
		d.Min, d.Max = round(now-0.05), round(now+math.Floor((top-now)/d.Step+1e-9)*d.Step)
	}
	if _, capped := c["max-total-tokens"]; capped {
		d.Comment += "; max-total-tokens caps what it can give"
	}
	return d
}

// hicache proposes the host pool, when prefixes are cached at all.
func (p *Plan) hicache(c sglang.Config) (Dimension, bool) {
	d := Dimension{Name: "hicache-size", Comment: "GB of host RAM a rank for evicted prefixes, 0 = off; pays only where prompts share long beginnings"}
	set := func(name string) bool { v, ok := c[name]; return ok && v != false && v != "" }
	device, _ := c["device"].(string)
	now, sized := c.Float(d.Name)
	switch {
	case set("disable-radix-cache"), set("enable-lmcache"), device == "cpu", set("disaggregation-mode"):
		return d, false
	case !sized && set("enable-hierarchical-cache"): // by ratio: a size of 0 would not turn it off
		d.Off, d.Comment = true, "instead of hicache-ratio: take hicache-ratio and enable-hierarchical-cache out of server.flags"
		d.Values = []any{0.0, 16.0, 32.0, 48.0}
		return d, true
	case sized && now > 0:
		d.Values = numbers(0, math.Ceil(now/2), now, math.Ceil(now*1.5))
	default:
		d.Values = numbers(0, 16, 32, 48)
	}
	return d, true
}

// chunk proposes prefill chunks that the page size divides.
func (p *Plan) chunk(c sglang.Config) Dimension {
	d := Dimension{Name: "chunked-prefill-size", Comment: "prompt tokens in one step: larger is faster prefill, longer stalls, more memory"}
	values := []float64{2048, 4096, 8192, 16384}
	if on, _ := c["enable-dp-attention"].(bool); on {
		groups, _ := c.Float("dp-size")
		for i := range values {
			values[i] *= max(1, groups)
		}
		d.Comment += "; SGLang divides it by dp-size"
	}
	if now, ok := c.Float(d.Name); ok {
		values = append(values, now)
	}
	page, _ := c.Float("page-size")
	values = slices.DeleteFunc(values, func(v float64) bool { return page > 1 && v > 0 && math.Mod(v, page) != 0 })
	if len(values) == 0 {
		values = []float64{32 * page, 64 * page, 128 * page}
	}
	d.Values = numbers(values...)
	return d
}

func (p *Plan) conservativeness(c sglang.Config) Dimension {
	d := Dimension{Name: "schedule-conservativeness", Min: 0.3, Max: 1.3, Step: 0.1, Comment: "low admits more requests and retracts more"}
	now, ok := c.Float(d.Name)
	if ok && (now < d.Min || now > d.Max || math.Abs(now*10-math.Round(now*10)) > 1e-9) {
		d.Values = numbers(0.3, 0.6, 1, 1.3, now)
	}
	return d
}

// running is searched only where the launch limits it: otherwise memory decides.
func (p *Plan) running(c sglang.Config) (Dimension, bool) {
	d := Dimension{Name: "max-running-requests", Comment: "most requests decoded at once"}
	now, ok := c.Float(d.Name)
	if !ok {
		return d, false
	}
	d.Values = numbers(max(1, math.Round(now/2)), now, now*2, now*4)
	return d, true
}

// graphs names the flag by the version's own name.
func (p *Plan) graphs(c sglang.Config) Dimension {
	name, _, err := sglang.Resolve("cuda-graph-max-bs", p.Version)
	if err != nil {
		name = "cuda-graph-max-bs-decode"
	}
	d := Dimension{Name: name, Values: numbers(64, 128, 256, 512), Comment: "largest decode batch run as a graph; each graph takes memory", Off: true}
	if now, ok := c.Float(name); ok {
		d.Values, d.Off = numbers(max(1, math.Round(now/2)), now, now*2), false
	}
	return d
}

func (p *Plan) policy(c sglang.Config) Dimension {
	d := Dimension{Name: "schedule-policy", Values: []any{"fcfs", "lpm"}, Comment: "lpm: longest shared prefix first", Off: true}
	if now, ok := c[d.Name].(string); ok && !slices.Contains(d.Values, any(now)) {
		d.Values = append(d.Values, now)
	}
	return d
}

// numbers sorts values and drops repeated ones.
func numbers(values ...float64) []any {
	slices.Sort(values)
	var out []any
	for _, v := range slices.Compact(values) {
		out = append(out, v)
	}
	return out
}

// round takes what floating point adds off a fraction: four digits are enough.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }
