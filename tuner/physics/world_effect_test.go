package physics_test

import (
	"math"

	"sgtune/tuner/physics"
)

// effect is what one knob does to the objective's logarithm; v is the knob's number.
type effect struct {
	knob string
	log  func(v float64) float64
}

// bump is best at centre and falls by depth (of the logarithm) at a distance of width in the
// number's own scale.
func bump(knob string, centre, width, depth float64) effect {
	return effect{knob, func(v float64) float64 {
		away := (v - centre) / width
		return -2 * depth * away * away / (1 + away*away)
	}}
}

// ratioBump is bump on a scale of factors: width is in doublings.
func ratioBump(knob string, centre, width, depth float64) effect {
	return effect{knob, func(v float64) float64 {
		x := math.Log2(max(v, 1)/centre) / width
		return -depth * x * x / (1 + x*x) * 2
	}}
}

// slope grows the logarithm by gain with each doubling.
func slope(knob string, gain float64) effect {
	return effect{knob, func(v float64) float64 { return gain * math.Log2(max(v, 1)) }}
}

// table is the logarithm of each choice.
func table(knob string, logs ...float64) effect {
	return effect{knob, func(v float64) float64 { return logs[int(v)] }}
}

// value is base times all effects at p.
func (w *world) value(p physics.Point, base float64, effects []effect) float64 {
	sum := 0.0
	for _, e := range effects {
		sum += e.log(w.num(p, e.knob))
	}
	return base * math.Exp(sum)
}

// plainCard is the memory of the worlds whose throughput has nothing of a server.
func plainCard() card {
	return card{before: 78, weights: 38, cell: 160_000, pool: 1.5, fewest: 3000, scale: 0.12}
}

// plainSpace is six knobs that physics knows and six that it does not.
func plainSpace() physics.Space {
	const host = 1
	return physics.Space{
		ordered("mem-fraction-static", physics.RoleMemFraction, steps(0.70, 0.95, 0.01)...),
		ordered("hicache-size", physics.RoleHostPool, 0, 16, 32, 48, 64, 80, 96),
		ordered("chunked-prefill-size", physics.RoleChunk, 1024, 2048, 4096, 8192, 16384),
		logged("max-running-requests", physics.RoleMaxRunning, 8, 16, 32, 64, 128, 256, 512),
		ordered("cuda-graph-max-bs", physics.RoleGraphBS, 8, 16, 32, 64, 128, 256),
		ordered("schedule-conservativeness", physics.RoleConservativeness, steps(0.3, 1.5, 0.1)...),
		ordered("stream-interval", physics.RoleOther, 1, 2, 4, 8, 16),
		ordered("page-size", physics.RoleOther, 1, 16, 32, 64),
		choice("attention-backend", 4),
		choice("sampling-backend", 2),
		choice("schedule-policy", 3),
		needing(choice("hicache-write-policy", 3), host),
	}
}

// plainWorld has a server's memory and any throughput: the value is given by the point alone.
func plainWorld(name string, value func(w *world, p physics.Point) float64, start ...float64) *world {
	space, c := plainSpace(), plainCard()
	w := &world{name: name, space: space, launch: 0.025, window: 0.015}
	w.facts = physics.Facts{
		Ranks: 4, GPUGiB: 79, WeightsGiB: 38.5, CellBytes: c.cell, HostGB: 330, Budget: 30,
		Load:  physics.Load{Clients: 128, InputTokens: 5000, OutputTokens: 600, SharedTokens: 4000},
		Start: at(space, start...),
		Admit: func(p physics.Point) bool { return 4*w.num(p, "hicache-size") <= 330 },
	}
	w.truth = func(p physics.Point) fate {
		if 4*w.num(p, "hicache-size") > 330 {
			return failed(p, physics.HostOOM)
		}
		slots, chunk := w.num(p, "max-running-requests"), w.num(p, "chunked-prefill-size")
		seen, up := c.launch(p, w.num(p, "mem-fraction-static"), 0.5+0.006*w.num(p, "cuda-graph-max-bs"))
		if !up {
			return fate{ends: physics.StartOOM, oom: 1, seen: seen}
		}
		f := fate{seen: seen, value: value(w, p)}
		f.oom, f.seen.LowWaterGiB = c.oom(seen.AfterGraphGiB, 0.5+0.25*chunk/1024+0.3*slots/512)
		f.seen.Running = min(128, slots, seen.Tokens/3000)
		f.seen.HitRatio = min(0.8, 0.8*(seen.Tokens+w.num(p, "hicache-size")*1e9/c.cell)/1.2e6)
		return f
	}
	return w
}

// invertedWorld does the opposite of what physics expects of every knob it knows.
func invertedWorld() *world {
	effects := []effect{
		slope("max-running-requests", -0.10),
		{"hicache-size", func(v float64) float64 { return -0.3 * v / 96 }},
		slope("chunked-prefill-size", 0.08),
		slope("cuda-graph-max-bs", -0.05),
		{"mem-fraction-static", func(v float64) float64 { return -1.2 * (v - 0.7) }},
		table("attention-backend", 0, 0.06, -0.08, 0.02),
	}
	value := func(w *world, p physics.Point) float64 { return w.value(p, 2000, effects) }
	return plainWorld("inverted effects", value, 0.84, 32, 4096, 128, 128, 1, 1, 1, 0, 0, 0, 0)
}

// deadWorld obeys two knobs of twelve, and neither is one that physics knows.
func deadWorld() *world {
	effects := []effect{
		ratioBump("stream-interval", 8, 1.2, 0.22),
		table("attention-backend", 0, -0.1, 0.25, 0.1),
	}
	value := func(w *world, p physics.Point) float64 { return w.value(p, 2000, effects) }
	return plainWorld("dead knobs", value, 0.84, 0, 4096, 128, 128, 1, 1, 1, 0, 0, 0, 0)
}

// middleEffects are best in the middle of every ordered knob.
func middleEffects() []effect {
	return []effect{
		bump("mem-fraction-static", 0.79, 0.05, 0.10),
		bump("hicache-size", 40, 30, 0.10),
		ratioBump("chunked-prefill-size", 4096, 1.5, 0.08),
		ratioBump("max-running-requests", 60, 1.5, 0.15),
		ratioBump("cuda-graph-max-bs", 40, 1.5, 0.06),
		bump("schedule-conservativeness", 0.8, 0.35, 0.06),
		ratioBump("stream-interval", 4, 1.5, 0.05),
		table("attention-backend", 0, 0.05, -0.05, 0.02),
	}
}

// middleWorld has its best far from every end, and from the start.
func middleWorld() *world {
	effects := middleEffects()
	value := func(w *world, p physics.Point) float64 { return w.value(p, 2000, effects) }
	return plainWorld("optimum in the middle", value, 0.88, 0, 8192, 256, 256, 1.3, 1, 1, 0, 0, 0, 0)
}

// settledWorld starts at its best: nothing beats what runs today, and launches differ by 5%.
func settledWorld() *world {
	effects := middleEffects()
	value := func(w *world, p physics.Point) float64 { return w.value(p, 2000, effects) }
	w := plainWorld("start is the best", value, 0.79, 48, 4096, 64, 32, 0.8, 4, 1, 1, 0, 0, 0)
	w.launch = 0.05
	return w
}

// coupledWorld pays for the host pool only together with more running requests and a small chunk:
// each alone costs.
func coupledWorld() *world {
	small := []effect{bump("schedule-conservativeness", 0.7, 0.4, 0.04), table("attention-backend", 0, 0.04, -0.06, 0.02), table("hicache-write-policy", 0, 0.05, -0.06)}
	value := func(w *world, p physics.Point) float64 {
		pool := math.Min(w.num(p, "hicache-size")/64, 1)
		slots := math.Log2(w.num(p, "max-running-requests") / 32)
		chunk := math.Log2(8192 / w.num(p, "chunked-prefill-size"))
		together := pool * sigmoid(2*(slots-2)) * sigmoid(2*(chunk-1))
		v := -0.12*pool - 0.05*math.Abs(slots) - 0.04*math.Abs(chunk) + 0.75*together
		return w.value(p, 1500, small) * math.Exp(v)
	}
	return plainWorld("coupled moves", value, 0.84, 0, 8192, 32, 128, 1, 1, 1, 0, 0, 0, 0)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
