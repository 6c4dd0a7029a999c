package host

import (
	"context"
	"errors"
)

// endedRun is a run that has ended and whose log and status the machine still keeps.
type endedRun struct {
	Ref     processRef `json:"ref"`
	Client  client     `json:"client"`            // who started it
	Earlier bool       `json:"earlier,omitempty"` // it was started under a lease of the machine that is over
}

// ForgetAbandoned removes the logs and statuses of ended commands that nobody will ask for any more: of those that were
// started under an earlier lease of the machine, and of those whose sgtune ran on this machine and is dead. What is still to be
// learnt from them is asked before (Attach). The caller holds the lease. It returns how many there were.
func (r *Remote) ForgetAbandoned(ctx context.Context) (int, error) {
	r.mu.Lock()
	args := leaseArgs{Token: r.lease}
	r.mu.Unlock()
	var list []endedRun
	if err := r.call(ctx, "ended", args, &list); err != nil {
		return 0, r.told("look for what an earlier sgtune left", err)
	}
	forgotten := 0
	var failed error
	for _, e := range list {
		if !e.Earlier && !e.Client.dead() {
			continue
		}
		if err := r.call(ctx, "forget", e.Ref, &struct{}{}); err != nil {
			failed = errors.Join(failed, r.told("remove what an earlier sgtune left", err))
			continue
		}
		forgotten++
	}
	return forgotten, failed
}

// ended lists the runs that have ended.
func (a *agent) ended(_ context.Context, args leaseArgs) ([]endedRun, error) {
	t, err := a.tenant(args.Token)
	if err != nil {
		return nil, err
	}
	all, err := runFolders(a.Work)
	if err != nil {
		return nil, err
	}
	list := []endedRun{}
	for _, f := range all {
		var c wireCommand
		if f.read("command", &c) != nil {
			continue
		}
		k, err := openRun(a.Host, f)
		if err == nil {
			if _, over := k.ended(); !over {
				continue
			}
		} else if !f.has("failed") || f.kept() { // it may be about to start
			continue
		}
		e := endedRun{Ref: processRef{Run: f.key()}, Earlier: len(c.Beat) > 0 && string(c.Beat) != t.Beat}
		if err == nil {
			e.Ref.ID = k.id
		}
		if c.Client != nil {
			e.Client = *c.Client
		}
		list = append(list, e)
	}
	return list, nil
}
