package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sgtune/host"
	"sgtune/sglang"
	"sgtune/tuner"
)

// end prints what was found and what came of it, once each, and returns the error of a host that is not clean.
func (r *reclaiming) end(w io.Writer, asJSON bool) error {
	if asJSON {
		return errors.Join(r.print(w, true), r.failed())
	}
	if !r.shown {
		if err := r.print(w, false); err != nil {
			return err
		}
	}
	var b strings.Builder
	if len(r.ended) > 0 {
		fmt.Fprintf(&b, "ended: %s\n", count(len(r.ended), "process"))
	}
	if n := r.removedFiles(); n > 0 {
		fmt.Fprintf(&b, "removed: %s\n", count(n, "file"))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return r.failed()
}

func (r *reclaiming) removedFiles() int {
	n := 0
	for _, f := range r.files {
		if r.removed && f.Why == "" {
			n++
		}
	}
	return n
}

// print shows what was found.
func (r *reclaiming) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r.report())
	}
	var b strings.Builder
	if len(r.found) == 0 {
		b.WriteString("no process of a trial is left\n")
	}
	for _, p := range r.found {
		fmt.Fprintf(&b, "pid %d of trial %s: %s (%s)\n", p.ID.PID, p.ID.Marker, sglang.Mask(strings.Join(p.ID.Argv, " ")), strings.Join(r.about(p), ", "))
	}
	for _, f := range r.files {
		fmt.Fprintf(&b, "%s\n", fileText(f))
	}
	for _, job := range r.jobs {
		fmt.Fprintf(&b, "Slurm job %s\n", job)
	}
	if r.others > 0 {
		fmt.Fprintf(&b, "%s of other studies: left alone, name their study file\n", count(r.others, "Slurm job"))
	}
	if f := r.folder; f != nil && (f.Ended > 0 || f.Living > 0 || f.Program) {
		fmt.Fprintf(&b, "%s of sgtune-agent: %s that ended, %d that run, %s\n", f.Path, count(f.Ended, "command"), f.Living, sizeText(f.Bytes))
	}
	for _, g := range r.facts.GPUs {
		if len(g.Holders) > 0 {
			fmt.Fprintf(&b, "GPU %d: %s of %s used by %s\n", g.Index, tuner.FormatSize(float64(g.Used)), tuner.FormatSize(float64(g.Total)), strings.Join(g.Holders, ", "))
		} else if ghost := ghostText(g); ghost != "" {
			fmt.Fprintf(&b, "%s\n", ghost)
		}
	}
	if r.facts.GPUNote != "" {
		fmt.Fprintf(&b, "%s\n", r.facts.GPUNote)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// about is what is known of a process beside its command.
func (r *reclaiming) about(p host.Leftover) []string {
	parts := []string{"for " + short(p.Age)}
	if p.Memory >= 0 {
		parts = append(parts, tuner.FormatSize(float64(p.Memory))+" of memory")
	}
	for _, g := range r.facts.GPUs {
		for _, h := range g.Holders {
			if strings.HasPrefix(h, fmt.Sprintf("pid %d ", p.ID.PID)) {
				parts = append(parts, fmt.Sprintf("GPU %d", g.Index))
			}
		}
	}
	for _, port := range p.Ports {
		parts = append(parts, fmt.Sprintf("port %d", port))
	}
	if why := r.spared(p); why != "" {
		parts = append(parts, why)
	}
	return parts
}

// sizeText is a size that may be small.
func sizeText(bytes int64) string {
	if bytes < 1e8 {
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return tuner.FormatSize(float64(bytes))
}

func fileText(f host.RemainsOf) string {
	text := f.Path + ": a dead trial's socket"
	if f.Memory() {
		text = fmt.Sprintf("%s: a dead trial's shared memory, %s", f.Path, sizeText(f.Bytes))
	}
	if f.Why != "" {
		text += ", " + f.Why
	}
	return text
}

// shownProcess is a process of a trial as reclaim prints it.
type shownProcess struct {
	PID     int     `json:"pid"`
	Trial   string  `json:"trial"`
	Command string  `json:"command"` // secrets masked
	Age     float64 `json:"age_s,omitempty"`
	Memory  int64   `json:"memory_bytes,omitempty"`
	Ports   []int   `json:"ports,omitempty"`
	Owner   string  `json:"owner,omitempty"` // the living sgtune whose it is
}

type shownGPU struct {
	Index   int      `json:"index"`
	Total   int64    `json:"total_bytes"`
	Used    int64    `json:"used_bytes"`
	Holders []string `json:"holders"`
}

type shownReclaim struct {
	Found   []shownProcess   `json:"found"`
	Ended   []shownProcess   `json:"ended"`
	GPUs    []shownGPU       `json:"gpus"`
	GPUNote string           `json:"gpu_note"`
	Files   []host.RemainsOf `json:"files"`
	Removed int              `json:"files_removed"`
	Jobs    []string         `json:"jobs"`
	Folder  *host.WorkFolder `json:"work_folder,omitempty"`
	Dirty   []string         `json:"dirty"` // what is still held, and by whom
}

func (r *reclaiming) report() shownReclaim {
	out := shownReclaim{
		Found: []shownProcess{}, Ended: []shownProcess{}, GPUs: []shownGPU{}, GPUNote: r.facts.GPUNote, Files: append([]host.RemainsOf{}, r.files...),
		Removed: r.removedFiles(), Jobs: append([]string{}, r.jobs...), Folder: r.folder, Dirty: append([]string{}, r.dirty...),
	}
	command := func(id host.ID) string { return sglang.Mask(strings.Join(id.Argv, " ")) }
	for _, p := range r.found {
		out.Found = append(out.Found, shownProcess{
			PID: p.ID.PID, Trial: p.ID.Marker, Command: command(p.ID), Age: p.Age.Seconds(), Memory: p.Memory, Ports: p.Ports, Owner: p.Owner,
		})
	}
	for _, id := range r.ended {
		out.Ended = append(out.Ended, shownProcess{PID: id.PID, Trial: id.Marker, Command: command(id)})
	}
	for _, g := range r.facts.GPUs {
		out.GPUs = append(out.GPUs, shownGPU{Index: g.Index, Total: g.Total, Used: g.Used, Holders: append([]string{}, g.Holders...)})
	}
	return out
}
