package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

type reclaimOptions struct {
	study, db    string
	list, asJSON bool
}

func newReclaimCommand() *cobra.Command {
	var o reclaimOptions
	cmd := &cobra.Command{
		Use: "reclaim", Short: "Find what dead trials left on this host, show it, and free what carries our marker", Args: cobra.NoArgs,
		Long: "Find processes that carry the marker of a trial although no sgtune runs here any more, show them and end them.\n" +
			"What has no marker is shown and left alone. Refused while a study runs on the host.",
		Example: "  sgtune reclaim --list\n  sgtune reclaim\n  sgtune reclaim --study examples/quickstart.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reclaim(cmd, o)
		},
	}
	cmd.Flags().StringVar(&o.study, "study", "", "study file whose host is meant (default: this machine)")
	cmd.Flags().StringVar(&o.db, "db", "", "database of that study (default sgtune.db beside the study file)")
	cmd.Flags().BoolVar(&o.list, "list", false, "only show, end nothing")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

func reclaim(cmd *cobra.Command, o reclaimOptions) error {
	ctx := cmd.Context()
	s := &tuner.Study{Name: "reclaim", Host: tuner.HostSpec{Kind: tuner.HostLocal}}
	if o.study != "" {
		read, err := tuner.ReadStudy(o.study)
		if err != nil {
			return err
		}
		if s = read; o.db == "" {
			o.db = filepath.Join(filepath.Dir(o.study), "sgtune.db")
		}
	}
	where, err := newPlace(s, o.db, time.Now())
	if err != nil {
		return err
	}
	found, err := where.host.Find(ctx, "")
	if err != nil {
		return err
	}
	ids := make([]host.ID, len(found))
	for i, p := range found {
		ids[i] = p.ID()
	}
	facts, err := where.facts(ctx, s, "")
	if err != nil {
		return err
	}
	if o.list || len(ids) == 0 {
		return printReclaim(cmd.OutOrStdout(), o.asJSON, ids, nil, facts)
	}
	release, err := where.host.Lease(ctx, "reclaim")
	if err != nil {
		return failf(exitHost, "%w", err)
	}
	defer func() { _ = release() }()
	ended, err := trial.Reclaim(ctx, where.host, where.clock, "")
	if err != nil {
		return failf(exitHost, "%w", err)
	}
	if facts, err = where.facts(ctx, s, ""); err != nil {
		return err
	}
	return printReclaim(cmd.OutOrStdout(), o.asJSON, ids, ended, facts)
}

func printReclaim(w io.Writer, asJSON bool, found, ended []host.ID, facts tuner.HostFacts) error {
	if asJSON {
		return json.NewEncoder(w).Encode(reclaimed(found, ended, facts))
	}
	var b strings.Builder
	if len(found) == 0 {
		b.WriteString("no process of a trial is left\n")
	}
	for _, id := range found {
		fmt.Fprintf(&b, "pid %d of trial %s: %s\n", id.PID, id.Marker, sglang.Mask(strings.Join(id.Argv, " ")))
	}
	if len(ended) > 0 {
		fmt.Fprintf(&b, "ended: %s\n", count(len(ended), "process"))
	}
	for _, g := range facts.GPUs {
		if len(g.Holders) > 0 {
			fmt.Fprintf(&b, "GPU %d: %s of %s used by %s\n", g.Index, tuner.FormatSize(float64(g.Used)), tuner.FormatSize(float64(g.Total)), strings.Join(g.Holders, ", "))
		}
	}
	if facts.GPUNote != "" {
		fmt.Fprintf(&b, "%s\n", facts.GPUNote)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shownProcess is a process of a trial as reclaim prints it.
type shownProcess struct {
	PID     int    `json:"pid"`
	Trial   string `json:"trial"`
	Command string `json:"command"` // secrets masked
}

type shownGPU struct {
	Index   int      `json:"index"`
	Total   int64    `json:"total_bytes"`
	Used    int64    `json:"used_bytes"`
	Holders []string `json:"holders"`
}

type shownReclaim struct {
	Found   []shownProcess `json:"found"`
	Ended   []shownProcess `json:"ended"`
	GPUs    []shownGPU     `json:"gpus"`
	GPUNote string         `json:"gpu_note"`
}

func reclaimed(found, ended []host.ID, facts tuner.HostFacts) shownReclaim {
	processes := func(ids []host.ID) []shownProcess {
		out := make([]shownProcess, len(ids))
		for i, id := range ids {
			out[i] = shownProcess{PID: id.PID, Trial: id.Marker, Command: sglang.Mask(strings.Join(id.Argv, " "))}
		}
		return out
	}
	r := shownReclaim{Found: processes(found), Ended: processes(ended), GPUs: []shownGPU{}, GPUNote: facts.GPUNote}
	for _, g := range facts.GPUs {
		r.GPUs = append(r.GPUs, shownGPU{Index: g.Index, Total: g.Total, Used: g.Used, Holders: append([]string{}, g.Holders...)})
	}
	return r
}
