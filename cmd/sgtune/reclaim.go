package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sgtune/host"
	"sgtune/trial"
	"sgtune/tuner"
)

type reclaimOptions struct {
	study, db, address string
	list, yes, asJSON  bool
}

func newReclaimCommand() *cobra.Command {
	var o reclaimOptions
	cmd := &cobra.Command{
		Use: "reclaim [STUDY.yaml]", Short: "Find what dead trials left on a host, show it, and free what carries our marker", Args: cobra.MaximumNArgs(1),
		Long: "Show what dead trials left on a host, then free it: processes with the marker of a trial, the shared memory and the\n" +
			"sockets they made, jobs of the study on Slurm, and the files of sgtune-agent on another machine. What has no\n" +
			"marker is shown and left alone, and so is a trial whose sgtune lives. On a terminal it asks before it frees anything.\n" +
			"It ends with 3 when the host is held by a living sgtune, or is not clean afterwards; then it names who holds what.",
		Example: "  sgtune reclaim --list\n  sgtune reclaim\n  sgtune reclaim --host gpu-box\n  sgtune reclaim --yes night.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if o.study != "" {
					return usagef("name the study file once: %s or --study %s", args[0], o.study)
				}
				o.study = args[0]
			}
			if o.study != "" && o.address != "" {
				return usagef("give a study file or --host, not both: the study names its host")
			}
			return reclaim(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "host", "", "machine behind ssh, by any name ssh accepts (default: this machine)")
	f.StringVar(&o.study, "study", "", "study file whose host is meant, as the argument")
	f.StringVar(&o.db, "db", "", "database of that study (default sgtune.db beside the study file)")
	f.BoolVar(&o.list, "list", false, "only show, free nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.asJSON, "json", false, "print JSON, and do not ask")
	return cmd
}

// reclaimStudy is the study whose host is meant, or one that only has a host.
func reclaimStudy(o *reclaimOptions) (*tuner.Study, error) {
	s := &tuner.Study{Name: "reclaim", Host: tuner.HostSpec{Kind: tuner.HostLocal}}
	switch {
	case o.address != "":
		s.Host = tuner.HostSpec{Kind: tuner.HostSSH, Address: o.address, TunerGone: time.Minute}
	case o.study != "":
		read, err := tuner.ReadStudy(o.study)
		if err != nil {
			return nil, err
		}
		if s = read; o.db == "" {
			o.db = filepath.Join(filepath.Dir(o.study), "sgtune.db")
		}
	}
	return s, nil
}

func reclaim(cmd *cobra.Command, o reclaimOptions) error {
	ctx := cmd.Context()
	s, err := reclaimStudy(&o)
	if err != nil {
		return err
	}
	where, err := newPlace(s, o.db, time.Now())
	if err != nil {
		return usagef("%w", err)
	}
	defer func() { _ = where.close() }()
	// The lease comes first, so that what is shown is what dead trials left. Who holds it is told after that.
	release, leased := where.host.Lease(ctx, "reclaim")
	if leased != nil && !errors.Is(leased, host.ErrLeased) {
		return leased
	}
	if leased == nil {
		defer func() { _ = release() }()
	}
	r := &reclaiming{place: where, study: s}
	if err := r.look(ctx); err != nil {
		return err
	}
	if leased != nil {
		err := r.print(cmd.OutOrStdout(), o.asJSON)
		if o.list {
			return errors.Join(err, telling(cmd, o, "the host is in use, this may be its trial: %v\n", leased))
		}
		return errors.Join(err, failf(exitHost, "nothing was freed: %w", leased))
	}
	if o.list || !r.something() {
		return r.end(cmd.OutOrStdout(), o.asJSON)
	}
	if sure, err := r.agreed(cmd, o); err != nil || !sure {
		return err
	}
	if err := r.free(ctx); err != nil {
		return err
	}
	return r.end(cmd.OutOrStdout(), o.asJSON)
}

// telling writes a line for a person.
func telling(cmd *cobra.Command, o reclaimOptions, format string, args ...any) error {
	to := cmd.OutOrStdout()
	if o.asJSON {
		to = cmd.ErrOrStderr()
	}
	_, err := fmt.Fprintf(to, format, args...)
	return err
}

// agreed shows what would be freed and asks, where there is somebody to ask.
func (r *reclaiming) agreed(cmd *cobra.Command, o reclaimOptions) (bool, error) {
	in, isFile := cmd.InOrStdin().(*os.File)
	out, shown := cmd.OutOrStdout().(*os.File)
	if o.yes || o.asJSON || !isFile || !shown || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return true, nil
	}
	if err := r.print(out, false); err != nil {
		return false, err
	}
	r.shown = true
	return confirmed(in, out)
}

// confirmed asks whether to go on; anything but yes is no.
func confirmed(in io.Reader, out io.Writer) (bool, error) {
	if _, err := fmt.Fprint(out, "Free all that is a dead trial's? [y/N] "); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a == "y" || a == "yes" {
		return true, nil
	}
	return false, failf(exitFailed, "nothing was freed")
}

// free ends what belongs to dead trials and removes what they left. What could not be freed shows in the look afterwards.
func (r *reclaiming) free(ctx context.Context) error {
	freed := map[string]bool{}
	for _, p := range r.found {
		if r.spared(p) != "" || freed[p.ID.Marker] {
			continue
		}
		freed[p.ID.Marker] = true
		ended, err := trial.Reclaim(ctx, r.place.host, r.place.clock, p.ID.Marker)
		r.ended = append(r.ended, ended...)
		if err != nil {
			r.dirty = append(r.dirty, err.Error())
		}
	}
	for _, job := range r.jobs {
		if err := r.place.slurm.endJob(ctx, job); err != nil {
			r.dirty = append(r.dirty, fmt.Sprintf("job %s: %v", job, err))
		}
	}
	if h, ok := r.place.host.(leaver); ok {
		files, err := h.RemoveRemains(ctx, "")
		if err != nil {
			return err
		}
		r.files, r.removed = files, true
	}
	if r.place.remote != nil {
		if _, err := r.place.remote.Clean(ctx, r.alone); err != nil {
			return err
		}
	}
	return r.verify(ctx)
}
