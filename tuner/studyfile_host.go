package tuner

import (
	"slices"
	"strings"
)

// Kinds of hosts in this version.
const (
	HostLocal     = "local"
	HostSimulated = "simulated"
)

// Profiles are the simulated machines of this version.
var Profiles = []string{"kimi-8x96", "llama70b-4x80", "llama8b-1x24"}

// readHost reads the host section. Keys that belong to another kind of host are mistakes.
func (d *decoder) readHost(f field) {
	h := &d.study.Host
	var simulatedOnly, laterOnly []field
	simulated := func(read handler) handler {
		return func(g field) { simulatedOnly = append(simulatedOnly, g); read(g) }
	}
	later := func(g field) { laterOnly = append(laterOnly, g) }
	var kindAt field
	d.keys(f.value, "host", map[string]handler{
		"kind":       func(g field) { kindAt = g; d.readKind(g) },
		"address":    func(g field) { laterOnly = append(laterOnly, g); h.Address = g.value.text },
		"ram_budget": d.readRAMBudget,
		"tuner_gone": func(g field) {
			if v, ok := d.positive(g, "host.tuner_gone"); ok {
				h.TunerGone = v
			}
		},
		"work_dir": func(g field) {
			if w, ok := d.word(g, "host.work_dir", "/var/tmp/sgtune"); ok {
				h.WorkDir = d.relative(w, true)
			}
		},
		"replay_from": func(g field) {
			if w, ok := d.choice(g, "host.replay_from", "host", "here"); ok {
				h.ReplayFrom = w
			}
		},
		"profile": simulated(func(g field) {
			if w, ok := d.choice(g, "host.profile", Profiles...); ok {
				h.Profile = w
			}
		}),
		"time_scale": simulated(d.readTimeScale),
		"startup": simulated(func(g field) {
			if v, ok := d.positive(g, "host.startup"); ok {
				h.Startup = v
			}
		}),
		"seed":   simulated(func(g field) { h.Seed = d.seed(g, "host.seed", h.Seed) }),
		"faults": simulated(d.readFaults),
		"ram": simulated(func(g field) {
			if v, ok := d.size(g, "host.ram"); ok {
				h.RAMBytes = v
			}
		}),
		"partition": later, "gres": later, "account": later, "memory": later, "time_limit": later, "parallel": later,
	})
	if d.foreign {
		return
	}
	for _, g := range laterOnly {
		d.at(g.line, g.col, "`host.%s` is for ssh and Slurm hosts, which are not in this version; remove it", g.name)
	}
	if h.Kind != HostSimulated && (kindAt.value == nil || kindAt.value.kind == scalar) {
		for _, g := range simulatedOnly {
			d.at(g.line, g.col, "`host.%s` is for simulated hosts; remove it, or write kind: simulated", g.name)
		}
	}
}

func (d *decoder) readKind(g field) {
	w, ok := d.word(g, "host.kind", "local")
	if !ok {
		d.foreign = true
		return
	}
	switch w {
	case HostLocal, HostSimulated:
		d.study.Host.Kind = w
		return
	case "ssh", "slurm":
		d.wrong(g.value, "`host.kind` %s is not in this version, which has local and simulated; run sgtune on the GPU machine itself with kind: local", w)
	default:
		d.choice(g, "host.kind", HostLocal, HostSimulated)
	}
	d.foreign = true
}

func (d *decoder) readRAMBudget(g field) {
	w, ok := d.word(g, "host.ram_budget", "400GB or 50GB/rank")
	if !ok {
		return
	}
	text, perRank := strings.CutSuffix(strings.ReplaceAll(w, " ", ""), "/rank")
	v, err := ParseSize(text)
	switch {
	case err != nil:
		d.wrong(g.value, "host.ram_budget: %v", err)
		return
	case v == 0:
		d.wrong(g.value, "`host.ram_budget` is 0; write what host pools may take, like 400GB or 50GB/rank, or leave it out")
		return
	}
	h := &d.study.Host
	h.RAMBudgetText = w
	if perRank {
		h.RAMPerRank = v
		return
	}
	h.RAMBudgetBytes = v
}

func (d *decoder) readTimeScale(g field) {
	v, ok := d.number(g, "host.time_scale", "100")
	switch {
	case !ok:
	case v < 1 || v > 10_000:
		d.wrong(g.value, "`host.time_scale` cannot be %s; write how many times faster than real the simulated host runs, from 1 to 10000", quote(g.value.text))
	default:
		d.study.Host.TimeScale = v
	}
}

func (d *decoder) readFaults(g field) {
	if g.value.kind == list && len(g.value.items) == 0 {
		return
	}
	if words, ok := d.words(g, "host.faults", "[prefill_oom]"); ok {
		d.study.Host.Faults = slices.Clone(words)
	}
}

func (d *decoder) seed(g field, where string, old int64) int64 {
	if v, ok := d.whole(g, where, 0, 1<<31-1); ok {
		return int64(v)
	}
	return old
}
