package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sgtune/host"
)

// Sites is a Host that is only the way to machines: each trial runs on one of its own, as a job of a Slurm has it. Trials
// at the same time ask at the same time.
type Sites interface {
	host.Host
	// Site returns the machine of t. Asked again, also by another sgtune, it is the same one. With existing only what t was
	// given before is looked for, and nothing is got anew.
	Site(ctx context.Context, t *Trial, existing bool) (Site, error)
	// Others gives back what trials of the study still have that are in none of its rows. The caller holds the lease.
	Others(ctx context.Context, study string) error
}

// Site is the machine of one trial.
type Site struct {
	Host     host.Host
	Replayer Replayer // nil = this process puts the load on the server
	// End gives the machine back, once the trial is over. What still runs there is ended.
	End func(ctx context.Context) error
}

// siteTime bounds how long the end of a trial's job is waited for, real time: Slurm gives half a minute between its two
// signals, and a controller that is down comes back.
const siteTime = 2 * time.Minute

// fateTime is how long Slurm is asked about the job of a server that lives, real time.
const fateTime = 15 * time.Second

// errNoSite is the end of a trial that has no machine.
var errNoSite = errors.New("there is no machine for the trial")

// settle gives the trial the machine it has of its own, where it has one.
func (a *attempt) settle(ctx context.Context) {
	sites, ok := a.Host.(Sites)
	if !ok {
		return
	}
	err := guard(func() error {
		site, err := sites.Site(ctx, a.t, false)
		if err == nil {
			a.Runner, a.site = a.at(site), &site
		}
		return err
	})
	if err != nil {
		a.unsettled = fmt.Errorf("%w: %w", errNoSite, err)
	}
}

// at is the runner on the machine of one trial.
func (r *Runner) at(s Site) *Runner {
	own := *r
	own.Host, own.Replayer = s.Host, s.Replayer
	return &own
}

// fated is a host that may end by other hands than ours.
type fated interface {
	// Fate tells whether the job that the host is has ended, or is being ended, though nobody here asked for it.
	Fate(ctx context.Context) (job host.SlurmJob, over bool)
}

// fate finds out whether the trial's job had ended before anybody here stopped anything. It waits for one that is ending.
func (a *attempt) fate(ctx context.Context) {
	h, ok := a.Host.(fated)
	if !ok || a.site == nil {
		return
	}
	limit := siteTime
	if a.process != nil && a.exit.Alive {
		limit = fateTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if job, over := h.Fate(ctx); over {
		a.job = &job
	}
}

// giveBack gives the trial's machine back. Where that fails the trial stands as it is: all it started has been ended by
// then, and a job without a sgtune that is heard ends itself.
func (a *attempt) giveBack(ctx context.Context) {
	if a.site == nil || a.site.End == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, siteTime)
	defer cancel()
	if err := guard(func() error { return a.site.End(ctx) }); err != nil {
		text := fmt.Sprintf("the node of trial %d was not given back: %v; it ends itself when no sgtune is heard for host.tuner_gone", a.t.Number, err)
		a.find("node_not_given_back", text)
		a.notice("host", text)
	}
}

// goneNode is why nothing more can be known of the machine of a trial, "" while it can: its job has ended, and with it,
// by Slurm's hand, all that ran in it.
func goneNode(err error) string {
	if errors.Is(err, host.ErrNodeGone) {
		return "not verified: " + err.Error()
	}
	return ""
}

// resettled is the runner on the machine that an orphan was given, and what gives that back.
func (r *Runner) resettled(ctx context.Context, t *Trial) (*Runner, func(context.Context) error, error) {
	sites, ok := r.Host.(Sites)
	if !ok {
		return r, func(context.Context) error { return nil }, nil
	}
	site, err := sites.Site(ctx, t, true)
	if err != nil {
		return nil, nil, fmt.Errorf("find the machine of trial %d: %w", t.Number, err)
	}
	return r.at(site), site.End, nil
}

// others gives back the machines of trials that no row names, for example after a database was thrown away.
func (r *Runner) others(ctx context.Context, study string) error {
	sites, ok := r.Host.(Sites)
	if !ok {
		return nil
	}
	if err := sites.Others(ctx, study); err != nil {
		return fmt.Errorf("give back the nodes of dead trials: %w", err)
	}
	return nil
}
