package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"
)

// SlurmSiteOptions are the settings of a SlurmSite. Place is needed.
type SlurmSiteOptions struct {
	Place      SlurmPlace
	Request    SlurmRequest  // of every job; Name and Work are filled in
	Patience   time.Duration // SlurmOptions.Patience
	Lease      time.Duration // how long the login node keeps our lease when we are not heard
	QueueLimit time.Duration // SlurmOptions.QueueLimit
	Clock      *Clock        // nil = real time
}

// SlurmSite is a site's Slurm as a study uses it. As a Host it is the login node, on which the lease lies; the nodes of
// the trials are had from Node.
type SlurmSite struct {
	*Remote
	opts SlurmSiteOptions

	mu          sync.Mutex
	work, agent string // on the shared file system, "" before they are known
}

// NewSlurmSite returns a site. Nothing is connected yet.
func NewSlurmSite(opts SlurmSiteOptions) *SlurmSite {
	return &SlurmSite{Remote: NewRemote(RemoteOptions{Link: opts.Place, Patience: opts.Lease, Clock: opts.Clock}), opts: opts}
}

// placed sees to it that the agent is there, and returns the request of a job of that name and the agent's path.
func (s *SlurmSite) placed(ctx context.Context, name string) (SlurmRequest, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent == "" {
		if err := s.call(ctx, "ping", struct{}{}, &struct{}{}); err != nil {
			return SlurmRequest{}, "", s.told("", err)
		}
		work, agent, err := s.opts.Place.Placed(ctx)
		if err != nil {
			return SlurmRequest{}, "", err
		}
		s.work, s.agent = work, agent
	}
	r := s.opts.Request
	r.Name, r.Work = name, s.work
	return r, s.agent, nil
}

// Node returns the node of the job with that name. Nothing is submitted before it is needed, and with existing never:
// see SlurmOptions. waiting may be nil.
func (s *SlurmSite) Node(ctx context.Context, name string, existing bool, waiting func(SlurmJob)) (*Slurm, error) {
	r, agent, err := s.placed(ctx, name)
	if err != nil {
		return nil, err
	}
	return NewSlurm(SlurmOptions{
		Login: s.opts.Place, Agent: agent, Request: r, Lessor: s.Remote, Patience: s.opts.Patience, QueueLimit: s.opts.QueueLimit,
		Existing: existing, Waiting: waiting, Clock: s.opts.Clock,
	})
}

// Names lists the jobs of which something is left in the work folder: those that run or wait, and those whose end no
// sgtune has seen. Jobs of other work folders are somebody else's.
func (s *SlurmSite) Names(ctx context.Context) ([]string, error) {
	r, _, err := s.placed(ctx, "sgtune")
	if err != nil {
		return nil, err
	}
	script := `[ ! -d "$1" ] || cd "$1" && for d in *; do [ ! -d "$d" ] || printf '%s\n' "$d"; done`
	output, status, err := s.opts.Place.RunCommand(ctx, []string{"sh", "-c", script, "sh", path.Dir(slurmFolder(r.Work, r.Name))}, "")
	if err == nil && status != 0 {
		err = errors.New(slurmSaid(output))
	}
	if err != nil {
		return nil, fmt.Errorf("list the jobs of %s: %w", r.Work, err)
	}
	var names []string
	for line := range strings.Lines(output) {
		if name := strings.TrimSpace(line); slurmName.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Partitions lists the site's partitions, the default one first.
func (s *SlurmSite) Partitions(ctx context.Context) ([]string, error) {
	output, status, err := s.opts.Place.RunCommand(ctx, []string{"sinfo", "-h", "-o", "%P"}, "")
	if err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, slurmFailure("sinfo", output)
	}
	var names []string
	for line := range strings.Lines(output) {
		name, usual := strings.CutSuffix(strings.TrimSpace(line), "*")
		switch {
		case !slurmName.MatchString(name):
		case usual:
			names = append([]string{name}, names...)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// Test asks Slurm whether it would take a trial's job, and returns what it says of it: when and where it would start.
func (s *SlurmSite) Test(ctx context.Context) (string, error) {
	r, agent, err := s.placed(ctx, "sgtune-check")
	if err != nil {
		return "", err
	}
	return SlurmCLI{Runner: s.opts.Place}.test(ctx, r, batchScript(r, agent, s.opts.Patience))
}

// test is Submit with --test-only: nothing is handed in.
func (c SlurmCLI) test(ctx context.Context, r SlurmRequest, script string) (string, error) {
	args, err := r.args()
	if err != nil {
		return "", err
	}
	output, status, err := c.run(ctx, script, append([]string{"sbatch", "--test-only"}, args...)...)
	switch {
	case err != nil:
		return "", err
	case status != 0 && slurmDown(output):
		return "", fmt.Errorf("sbatch --test-only: %w: %s", ErrSlurmUnclear, slurmSaid(output))
	case status != 0:
		return "", fmt.Errorf("sbatch --test-only: %w: %s", ErrSlurmRefused, slurmSaid(output))
	}
	return strings.TrimPrefix(slurmSaid(output), "sbatch: "), nil
}
