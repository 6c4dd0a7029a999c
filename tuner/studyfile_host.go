package tuner

import (
	"slices"
	"strings"
	"time"
)

// Kinds of hosts in this version.
const (
	HostLocal     = "local"
	HostSSH       = "ssh"
	HostSlurm     = "slurm"
	HostSimulated = "simulated"
)

// leastTunerGone is the least HostSpec.TunerGone of an ssh or Slurm host: six signs of life may be missed.
const leastTunerGone = time.Minute

// ReplayHere is HostSpec.ReplayFrom of a study whose load generator runs beside sgtune and not beside the server.
const ReplayHere = "here"

// Profiles are the simulated machines of this version.
var Profiles = []string{"kimi-8x96", "llama70b-4x80", "llama8b-1x24"}

// readHost reads the host section. Keys that belong to another kind of host are mistakes.
func (d *decoder) readHost(f field) {
	h := &d.study.Host
	var simulatedOnly, linkOnly, slurmOnly []field
	simulated := func(read handler) handler {
		return func(g field) { simulatedOnly = append(simulatedOnly, g); read(g) }
	}
	link := func(read handler) handler {
		return func(g field) { linkOnly = append(linkOnly, g); read(g) }
	}
	var kindAt field
	var goneAt *node
	handlers := map[string]handler{
		"kind":    func(g field) { kindAt = g; d.readKind(g) },
		"address": link(d.readAddress),
		"ssh_config": link(func(g field) {
			if w, ok := d.word(g, "host.ssh_config", "ssh_config"); ok {
				h.SSHConfig = d.here(w)
			}
		}),
		"ram_budget": d.readRAMBudget,
		"ram_floor":  d.readRAMFloor,
		"tuner_gone": func(g field) {
			if v, ok := d.positive(g, "host.tuner_gone"); ok {
				h.TunerGone, goneAt = v, g.value
			}
		},
		"work_dir": func(g field) {
			if w, ok := d.word(g, "host.work_dir", "/var/tmp/sgtune"); ok {
				h.WorkDir = d.relative(w, true) // of an ssh host: as it is, relative to the home folder there
			}
		},
		"replay_from": func(g field) {
			if w, ok := d.choice(g, "host.replay_from", "host", ReplayHere); ok {
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
	}
	for name, read := range d.slurmKeys() {
		handlers[name] = func(g field) { slurmOnly = append(slurmOnly, g); read(g) }
	}
	d.keys(f.value, "host", handlers)
	if d.foreign {
		return
	}
	d.checkLink(kindAt, linkOnly)
	d.checkSlurm(kindAt, slurmOnly)
	if (h.Kind == HostSSH || h.Kind == HostSlurm) && goneAt != nil && h.TunerGone < leastTunerGone {
		where := map[string]string{HostSSH: "an ssh host", HostSlurm: "a Slurm host"}[h.Kind]
		d.wrong(goneAt, "`host.tuner_gone` %s is too short for %s, where sgtune is heard each 10s and a link may be cut for a while; write %s or more", quote(goneAt.text), where, FormatDuration(leastTunerGone))
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
	case HostLocal, HostSSH, HostSlurm, HostSimulated:
		d.study.Host.Kind = w
		return
	}
	d.choice(g, "host.kind", HostLocal, HostSSH, HostSlurm, HostSimulated)
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

// readAddress takes what ssh would take as its destination.
func (d *decoder) readAddress(g field) {
	w, ok := d.word(g, "host.address", "gpu-box")
	switch {
	case !ok:
	case strings.HasPrefix(w, "-") || strings.ContainsAny(w, " \t\r\n\x00"):
		d.wrong(g.value, "`host.address` cannot be %s; write what you would write after ssh, like gpu-box or user@gpu-box", quote(w))
	default:
		d.study.Host.Address = w
	}
}

// checkLink refuses an ssh host without an address, and keys of a link at a host without one.
func (d *decoder) checkLink(kindAt field, linkOnly []field) {
	h := d.study.Host
	switch {
	case h.Kind == HostSSH:
		if h.Address == "" && !d.reported("host.address") {
			d.wrong(kindAt.value, "`host.kind` ssh needs an address; add address: with what you would write after ssh, like gpu-box")
		}
	case h.Kind == HostSlurm:
		if h.Address == "" && h.SSHConfig != "" && !d.reported("host.address") {
			d.wrong(kindAt.value, "`host.ssh_config` without an address: add address: with the login node, or remove it to use the Slurm commands of this machine")
		}
	case kindAt.value == nil || kindAt.value.kind == scalar:
		for _, g := range linkOnly {
			d.at(g.line, g.col, "`host.%s` is for ssh hosts; remove it, or write kind: ssh", g.name)
		}
	}
}

// isRemote reports whether the file's host is reached over a link. It is asked before the sections are read: then a
// path of the host is not one of this machine.
func isRemote(root *node) bool {
	kind, address := "", false
	for _, section := range root.fields {
		if section.name != "host" {
			continue
		}
		for _, f := range section.value.fields {
			if f.name == "kind" {
				kind = f.value.text
			}
			address = address || f.name == "address"
		}
	}
	return kind == HostSSH || kind == HostSlurm && address
}
