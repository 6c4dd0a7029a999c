package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sgtune/host"
	"sgtune/tuner"
)

// check says whether the site would take a trial's job, and whether the agent runs on the login node.
func (h *slurmHost) check(ctx context.Context, s *tuner.Study, in *tuner.CheckInput) {
	against := func(format string, args ...any) { in.Against = append(in.Against, fmt.Sprintf(format, args...)) }
	if _, err := h.RoundTrip(ctx); err != nil {
		against("sgtune-agent cannot run on the login node: %v", err)
		return
	}
	hello, err := agentHello(ctx, h.SlurmSite)
	if err != nil {
		against("the load generator cannot run on the login node, so it will not on the nodes: %v", err)
		return
	}
	where := fmt.Sprintf("The load generator (%s, %s) runs on the node of each trial, in its job.", hello.Platform, hello.Version)
	if s.Host.ReplayFrom == tuner.ReplayHere {
		where = "The load generator runs here and not on the nodes: each request goes through a step of the job, whose time is inside every latency."
	}
	in.Notes = append(in.Notes, where)
	partitions, err := h.Partitions(ctx)
	switch {
	case err != nil:
		against("Slurm's partitions are not known: %v", err)
		return
	case s.Host.Slurm.Partition != "" && !slices.Contains(partitions, s.Host.Slurm.Partition):
		against("Slurm has no partition %s; it has %s", s.Host.Slurm.Partition, strings.Join(partitions, ", "))
		return
	}
	said, err := h.Test(ctx)
	switch {
	case errors.Is(err, host.ErrSlurmRefused):
		against("Slurm would not take a trial's job (%v)", err)
	case err != nil:
		against("whether Slurm would take a trial's job is not known: %v", err)
	default:
		in.Notes = append(in.Notes, "Slurm would take a trial's job: "+said+".")
	}
}
