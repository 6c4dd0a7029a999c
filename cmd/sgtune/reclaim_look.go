package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sgtune/host"
	"sgtune/tuner"
)

// leaver is a host that knows what trials left on it.
type leaver interface {
	// Leftovers lists the living processes with a marker.
	Leftovers(ctx context.Context) ([]host.Leftover, error)
	// Remains lists the shared memory and the sockets that dead processes left; RemoveRemains removes them.
	Remains(ctx context.Context, marker string) ([]host.RemainsOf, error)
	RemoveRemains(ctx context.Context, marker string) ([]host.RemainsOf, error)
}

// reclaiming is one call of the command: what was found, and what came of it.
type reclaiming struct {
	place *place
	study *tuner.Study

	found  []host.Leftover
	files  []host.RemainsOf
	folder *host.WorkFolder // of another machine, else nil
	jobs   []string         // of the study, by name
	others int              // jobs of other studies, left alone
	alone  bool             // nobody else needs the agent's program
	facts  tuner.HostFacts

	shown   bool // what was found has been printed
	removed bool // files is what was tried to be removed
	ended   []host.ID
	dirty   []string // what is not clean afterwards, and who holds it
}

// look reads all that trials left.
func (r *reclaiming) look(ctx context.Context) error {
	p := r.place
	h, ok := p.host.(leaver)
	if !ok {
		return fmt.Errorf("reclaim: %T does not tell what trials left on it", p.host)
	}
	var err error
	if r.found, err = h.Leftovers(ctx); err != nil {
		return err
	}
	if r.files, err = h.Remains(ctx, ""); err != nil {
		return err
	}
	if p.remote != nil {
		w, err := p.remote.WorkFolder(ctx)
		if err != nil {
			return err
		}
		r.folder = &w
	}
	r.alone = true
	if p.slurm != nil {
		if err := r.lookForJobs(ctx); err != nil {
			return err
		}
	}
	r.facts, err = p.facts(ctx, r.study)
	return err
}

// lookForJobs sorts the jobs of trials by whether they are the study's: those of others may have a sgtune of their own.
func (r *reclaiming) lookForJobs(ctx context.Context) error {
	names, err := r.place.slurm.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if studyOfJob(name) == jobStudy(r.study.Name) {
			r.jobs = append(r.jobs, name)
		} else {
			r.others++
		}
	}
	r.alone = r.others == 0 // else their nodes run the agent
	return nil
}

// spared is why a process with a marker is left alone, "" when it is a dead trial's. On Slurm the lease of the login node says
// nothing of other studies: they may have a sgtune on another one.
func (r *reclaiming) spared(p host.Leftover) string {
	switch {
	case p.Owner != "":
		return "of a sgtune that lives, " + p.Owner + ": left alone"
	case r.place.slurm != nil && studyOfJob("sgtune-"+p.ID.Marker) != r.study.Name:
		return "of another study: left alone"
	}
	return ""
}

// something reports whether there is anything to free.
func (r *reclaiming) something() bool {
	w := r.folder
	return slices.ContainsFunc(r.found, func(p host.Leftover) bool { return r.spared(p) == "" }) || len(r.files)+len(r.jobs) > 0 ||
		w != nil && (w.Ended > 0 || w.Program)
}

// Limits of the look afterwards, real time.
const (
	reclaimWait = 20 * time.Second // GPU memory comes back seconds after its process is gone
	reclaimLook = 500 * time.Millisecond
)

// verify looks again: nothing that was freed may still be held. It waits a while for that.
func (r *reclaiming) verify(ctx context.Context) error {
	limit := time.Now().Add(reclaimWait)
	for clean := 0; ; {
		held, err := r.held(ctx)
		if err != nil {
			return err
		}
		if clean++; len(held) > 0 {
			clean = 0
		}
		if clean == 2 || len(r.ended) == 0 && clean == 1 {
			break
		}
		if clean == 0 && time.Now().After(limit) {
			r.dirty = append(r.dirty, held...)
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(reclaimLook):
		}
	}
	for _, f := range r.files {
		if f.Memory() && f.Why != "" {
			r.dirty = append(r.dirty, fmt.Sprintf("shared memory %s (%s): %s", f.Path, sizeText(f.Bytes), f.Why))
		}
	}
	return nil
}

// held names what is still held of what was freed, a line each.
func (r *reclaiming) held(ctx context.Context) ([]string, error) {
	var held []string
	facts, err := r.place.facts(ctx, r.study)
	if err != nil {
		return nil, err
	}
	r.facts = facts
	for _, g := range facts.GPUs {
		if ghost := ghostText(g); ghost != "" {
			held = append(held, ghost)
		}
	}
	for _, p := range r.found {
		if r.spared(p) != "" || r.place.slurm != nil {
			continue
		}
		for _, port := range p.Ports {
			end, err := r.place.host.Reach(ctx, port)
			if err != nil {
				return nil, err
			}
			if end.Listening {
				held = append(held, fmt.Sprintf("port %d is still listened on, by pid %v", port, end.Owners))
			}
		}
	}
	return held, nil
}

// ghostShare is the share of a GPU's memory from which on somebody must hold it, listed or not.
const ghostShare = 0.05

// ghostText tells of memory that is held by nobody the driver names, "" when there is none.
func ghostText(g tuner.GPUFact) string {
	if len(g.Holders) > 0 || float64(g.Used) <= ghostShare*float64(g.Total) {
		return ""
	}
	return fmt.Sprintf("GPU %d: %s of %s used and no process is listed: the holder is outside this container or VM, or the driver has not let go",
		g.Index, tuner.FormatSize(float64(g.Used)), tuner.FormatSize(float64(g.Total)))
}

// failed is the error of a host that is not clean, nil for one that is.
func (r *reclaiming) failed() error {
	if len(r.dirty) == 0 {
		return nil
	}
	return failf(exitHost, "%s is not clean: %w", r.place.name, errors.New(strings.Join(r.dirty, "; ")))
}
