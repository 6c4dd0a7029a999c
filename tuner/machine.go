package tuner

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Machine is what must stay the same of a study's host, so that figures of before and after can be compared. What is
// not known is zero, and is no difference.
type Machine struct {
	Host     string         `json:"host"`                // shown name of the host
	Kernel   string         `json:"kernel,omitempty"`    // release of its kernel
	Driver   string         `json:"driver,omitempty"`    // version of its NVIDIA driver
	MemTotal int64          `json:"mem_total,omitempty"` // bytes
	GPUs     []GPUOfMachine `json:"gpus,omitempty"`
}

// GPUOfMachine is one GPU of a Machine.
type GPUOfMachine struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid,omitempty"`
	Total int64  `json:"total"` // bytes
}

// memoryMoves is the share by which a machine's memory may differ between two starts: firmware and kernel keep more of it
// or less.
const memoryMoves = 0.01

// machineOf is the machine that facts tell of. The nodes of a Slurm host are as many machines: kind and number of
// their GPUs must be the same, the rest is each node's own.
func machineOf(kind string, f HostFacts) Machine {
	m := Machine{Host: f.Name, Kernel: f.Kernel, Driver: f.Driver, MemTotal: max(0, f.MemTotal)}
	for _, g := range f.GPUs {
		m.GPUs = append(m.GPUs, GPUOfMachine{Index: g.Index, Name: g.Name, UUID: g.UUID, Total: g.Total})
	}
	if kind != HostSlurm {
		return m
	}
	m.Kernel, m.Driver, m.MemTotal = "", "", 0
	for i := range m.GPUs {
		m.GPUs[i].UUID = ""
	}
	return m
}

// change says what is another than in before, "" when nothing is.
func (m Machine) change(before Machine) string {
	if before.Host != m.Host {
		return fmt.Sprintf("it was %s and is %s", before.Host, m.Host)
	}
	if len(before.GPUs) > 0 && len(m.GPUs) > 0 {
		if what := gpuChange(before.GPUs, m.GPUs); what != "" {
			return what
		}
	}
	switch {
	case before.Driver != m.Driver && before.Driver != "" && m.Driver != "":
		return fmt.Sprintf("its NVIDIA driver was %s and is %s", before.Driver, m.Driver)
	case before.Kernel != m.Kernel && before.Kernel != "" && m.Kernel != "":
		return fmt.Sprintf("its kernel was %s and is %s", before.Kernel, m.Kernel)
	case before.MemTotal > 0 && m.MemTotal > 0 && math.Abs(float64(m.MemTotal-before.MemTotal)) > memoryMoves*float64(before.MemTotal):
		return fmt.Sprintf("it had %s of RAM and has %s", FormatSize(float64(before.MemTotal)), FormatSize(float64(m.MemTotal)))
	}
	return ""
}

func gpuChange(before, now []GPUOfMachine) string {
	if len(before) != len(now) {
		return fmt.Sprintf("it had %d GPUs and has %d", len(before), len(now))
	}
	now = likeBefore(before, now)
	for i, g := range before {
		if n := now[i]; g.Name != n.Name || g.Total != n.Total {
			return fmt.Sprintf("GPU %d was %s with %s and is %s with %s", g.Index, g.Name, FormatSize(float64(g.Total)), n.Name, FormatSize(float64(n.Total)))
		} else if g.UUID != n.UUID && g.UUID != "" && n.UUID != "" {
			return fmt.Sprintf("GPU %d was the card %s and is %s", g.Index, g.UUID, n.UUID)
		}
	}
	return ""
}

// likeBefore puts the cards that were there before into their old places: a restart may number them anew.
func likeBefore(before, now []GPUOfMachine) []GPUOfMachine {
	place := func(uuid string) int {
		return slices.IndexFunc(before, func(g GPUOfMachine) bool { return g.UUID == uuid && uuid != "" })
	}
	out, used := make([]GPUOfMachine, len(now)), make([]bool, len(now))
	var others []GPUOfMachine
	for _, g := range now {
		if i := place(g.UUID); i >= 0 && !used[i] {
			out[i], used[i] = g, true
		} else {
			others = append(others, g)
		}
	}
	for i := range out {
		if !used[i] {
			out[i], others = others[0], others[1:]
		}
	}
	return out
}

// hostChanged says what changed about the host since the study took it over, "" when nothing did.
func (l *Loop) hostChanged(now HostFacts) string {
	before, after := machineOf(l.Study.Host.Kind, l.facts), machineOf(l.Study.Host.Kind, now)
	if len(before.GPUs) != len(after.GPUs) && !l.facts.gpusUnread() && !now.gpusUnread() { // a driver that did not answer in time is no other host
		return gpuChange(before.GPUs, after.GPUs)
	}
	return after.change(before)
}

// sameMachine compares the host with what it was when the study's first trials ran, and notes what was not known of it yet.
// A new start of the machine is no change.
func (l *Loop) sameMachine(ctx context.Context, h History, f HostFacts) error {
	now := machineOf(l.Study.Host.Kind, f)
	if l.Record.Machine != nil && len(h) > 0 {
		before := *l.Record.Machine
		if what := now.change(before); what != "" {
			return &Stopped{Cause: ErrBreaker, Reason: fmt.Sprintf(
				"stopped: the host is not what it was when this study's first trials ran: %s; figures of before and after cannot be compared; use a new study name, or --fresh", what)}
		}
		now = before.with(now)
	}
	l.Record.Machine = &now
	return l.save(ctx)
}

// with is m, and what is only known of now.
func (m Machine) with(now Machine) Machine {
	if m.Kernel == "" {
		m.Kernel = now.Kernel
	}
	if m.Driver == "" {
		m.Driver = now.Driver
	}
	if m.MemTotal == 0 {
		m.MemTotal = now.MemTotal
	}
	if len(m.GPUs) == 0 {
		m.GPUs = now.GPUs
	}
	return m
}
