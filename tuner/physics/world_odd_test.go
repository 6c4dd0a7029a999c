package physics_test

import (
	"math"

	"sgtune/tuner/physics"
)

// growingWorld is a server whose conversations grow: short windows read too high, by 13% at half
// the window on average and by more where there is no cache yet, and launches differ by 13%.
func growingWorld() *world {
	w := serverWorlds()[2]
	w.name, w.launch, w.window = "growing conversations", 0.11, 0.06
	w.bias = func(p physics.Point, frac float64) float64 {
		missing := 1 - min(w.num(p, "hicache-size")/96, 1)
		return 1 + 0.26*(1-frac)*(0.6+0.8*missing)
	}
	return w
}

// plainEnvWorld has no knob that physics knows and no log: environment choices, a float, two integers.
func plainEnvWorld() *world {
	space := physics.Space{
		choice("env.NCCL_ALGO", 4),
		choice("env.NCCL_PROTO", 3),
		choice("env.SGLANG_USE_X", 2),
		ordered("threshold", physics.RoleOther, steps(0, 1, 0.05)...),
		logged("workers", physics.RoleOther, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
		ordered("depth", physics.RoleOther, steps(1, 8, 1)...),
	}
	w := &world{name: "no memory knobs", space: space, launch: 0.03, window: 0.02, quiet: true}
	w.facts = physics.Facts{Ranks: 1, Start: at(space, 0, 0, 0, 0.5, 4, 1), Budget: 30}
	effects := []effect{
		table("env.NCCL_ALGO", 0, 0.15, -0.1, -0.05),
		table("env.SGLANG_USE_X", 0, 0.04),
		bump("threshold", 0.2, 0.25, 0.15),
		ratioBump("workers", 20, 2, 0.2),
		{"depth", func(v float64) float64 { return 0.02 * v }},
	}
	w.truth = func(p physics.Point) fate {
		v := w.value(p, 50, effects)
		if w.num(p, "env.NCCL_ALGO") == 1 && w.num(p, "env.NCCL_PROTO") == 2 {
			v *= 1.08 // a pair that only pays together
		}
		return fate{value: v, seen: physics.Blank(p, physics.OK)}
	}
	return w
}

// crashWorld is categorical crash land: many choices and pairs of choices do not start.
func crashWorld() *world {
	space := physics.Space{
		choice("attention-backend", 6),
		choice("moe-backend", 4),
		choice("sampling-backend", 3),
		ordered("page-size", physics.RoleOther, 1, 16, 32, 64),
		logged("max-running-requests", physics.RoleMaxRunning, 16, 32, 64, 128, 256),
		ordered("depth", physics.RoleOther, 1, 2, 3, 4, 5),
	}
	w := &world{name: "crash land", space: space, launch: 0.025, window: 0.015, quiet: true}
	w.facts = physics.Facts{Ranks: 1, Start: at(space, 0, 0, 0, 1, 64, 1), Budget: 30, Load: physics.Load{Clients: 64, InputTokens: 1000, OutputTokens: 300}}
	effects := []effect{
		table("attention-backend", 0, 0.12, 0.05, 0.3, 0.2, -0.1),
		table("moe-backend", 0, 0.1, -0.1, 0.2),
		table("sampling-backend", 0, 0.03, 0.05),
		ratioBump("page-size", 16, 2, 0.05),
		ratioBump("max-running-requests", 128, 2, 0.1),
		{"depth", func(v float64) float64 { return -0.03 * v }},
	}
	w.truth = func(p physics.Point) fate {
		attention, moe, sampling, page := p[0], p[1], p[2], w.num(p, "page-size")
		switch {
		case attention == 3, moe == 3: // the fastest on paper, were it to start
			return failed(p, physics.Crashed)
		case attention == 4 && page > 16, attention == 1 && page == 1, moe == 1 && sampling == 2, attention == 2 && moe == 2:
			return failed(p, physics.Crashed)
		}
		return fate{value: w.value(p, 900, effects), seen: physics.Blank(p, physics.OK)}
	}
	return w
}

// switchWorld is a space of one knob with two values, the second 10% better.
func switchWorld() *world {
	space := physics.Space{choice("disable-overlap", 2)}
	w := &world{name: "one switch", space: space, launch: 0.02, window: 0.01, quiet: true}
	w.facts = physics.Facts{Ranks: 1, Start: physics.Point{0}, Budget: 30}
	w.truth = func(p physics.Point) fate {
		return fate{value: 100 * (1 + 0.1*float64(p[0])), seen: physics.Blank(p, physics.OK)}
	}
	return w
}

// dialWorld is a space of one ordered knob, best in the middle.
func dialWorld() *world {
	space := physics.Space{ordered("threshold", physics.RoleOther, steps(0, 1, 0.02)...)}
	w := &world{name: "one dial", space: space, launch: 0.02, window: 0.01, quiet: true}
	w.facts = physics.Facts{Ranks: 1, Start: physics.Point{3}, Budget: 30}
	effects := []effect{bump("threshold", 0.6, 0.3, 0.3)}
	w.truth = func(p physics.Point) fate {
		return fate{value: w.value(p, 100, effects), seen: physics.Blank(p, physics.OK)}
	}
	return w
}

// hopelessWorld fails everywhere but at the start.
func hopelessWorld() *world {
	value := func(*world, physics.Point) float64 { return 1000 }
	w := plainWorld("everything else fails", value, 0.84, 0, 4096, 128, 128, 1, 1, 1, 0, 0, 0, 0)
	truth := w.truth
	w.truth = func(p physics.Point) fate {
		if !p.Equal(w.facts.Start) {
			return failed(p, physics.Crashed)
		}
		return truth(p)
	}
	return w
}

// movedLineWorld has its memory line elsewhere: the need grows with the running requests and not
// with the chunk, more KV tokens pay, and the fastest backend leaks under load.
func movedLineWorld() *world {
	effects := []effect{
		ratioBump("max-running-requests", 256, 3, 0.12),
		table("attention-backend", 0, -0.05, 0.08, 0.04),
		bump("schedule-conservativeness", 0.6, 0.5, 0.05),
	}
	value := func(w *world, p physics.Point) float64 {
		return w.value(p, 2000, effects) * math.Pow(w.num(p, "mem-fraction-static")-0.5, 0.7)
	}
	w := plainWorld("memory line elsewhere", value, 0.80, 0, 4096, 64, 64, 1, 1, 1, 0, 0, 0, 0)
	truth, c := w.truth, plainCard()
	w.truth = func(p physics.Point) fate {
		f := truth(p)
		if f.ends != physics.OK {
			return f
		}
		need := 0.4 + 6*math.Pow(w.num(p, "max-running-requests")/512, 0.8)
		if w.num(p, "attention-backend") == 2 {
			need += 2.5
		}
		f.oom, f.seen.LowWaterGiB = c.oom(f.seen.AfterGraphGiB, need)
		return f
	}
	return w
}

// overfullWorld starts where prefill runs out of memory: what runs today does not survive its load.
func overfullWorld() *world {
	w := serverWorlds()[0]
	w.name = "start runs out of memory"
	w.facts.Start = at(w.space, 0.95, 0, 8192, 256, 128, 1, 1, 0, 0, 0, 0, 1)
	return w
}

// misledWorld is a server of which everything told beforehand is wrong by a good part.
func misledWorld() *world {
	w := serverWorlds()[2]
	w.name = "wrong hints"
	f := &w.facts
	f.WeightsGiB *= 1.15
	f.CellBytes *= 1.5
	f.Load.InputTokens *= 0.5
	f.Load.OutputTokens *= 2
	f.Load.SharedTokens *= 0.4
	f.Load.Clients *= 1.5
	return w
}

// namelessWorld is a server whose knobs all have names that physics does not know.
func namelessWorld() *world {
	w := serverWorlds()[1]
	w.name = "no known roles"
	for i := range w.space {
		w.space[i].Role = physics.RoleOther
	}
	return w
}
