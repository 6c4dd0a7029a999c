package host

import (
	"context"
	"errors"
	"fmt"
	"path"
)

// within is ctx for what needs the node: it ends with the job, too.
func (s *Slurm) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.over:
			cancel(s.ended())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-watched }
}

// Start starts c on the node; see Host. Without a job one is submitted, and waited for as long as ctx allows.
func (s *Slurm) Start(ctx context.Context, c Command) (Process, error) {
	node, err := s.connected(ctx, true)
	if err != nil {
		return nil, err
	}
	ctx, done := s.within(ctx)
	defer done()
	p, err := node.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.process(p), nil
}

// Find lists the marked processes on the node; see Host. Without a job that runs there are none, unless Slurm lost the
// node or the job: then it is an error, because they may well live.
func (s *Slurm) Find(ctx context.Context, marker string) ([]Process, error) {
	node, err := s.connected(ctx, false)
	if err == nil && node != nil {
		within, done := s.within(ctx)
		defer done()
		var list []Process
		if list, err = node.Find(within, marker); err == nil {
			for i, p := range list {
				list[i] = s.process(p)
			}
			return list, nil
		}
	}
	if over := s.ended(); over != nil {
		return nil, over.dirty()
	}
	return nil, err
}

// dirty is the error where the end of the job does not mean the end of its processes: Slurm lost its node, or lost the
// job itself, as a controller that was killed does with a young one.
func (e *SlurmEndError) dirty() error {
	if c := e.Job.Cause(); (c == SlurmNodeLost || c == SlurmGone) && e.Job.Node != "" {
		return fmt.Errorf("processes may be left on %s: %w", e.Job.Node, e)
	}
	return nil
}

// Attach returns the process of this identity; see Remote.Attach. How one of a job that has ended went out lies on the
// shared file system, where the login node sees it too.
func (s *Slurm) Attach(ctx context.Context, id ID) (Process, error) {
	node, err := s.connected(ctx, false)
	if login, ok := s.opts.Lessor.(*Remote); ok && (errors.Is(err, ErrNodeGone) || err == nil && node == nil) {
		return login.Attach(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	if node == nil {
		return nil, fmt.Errorf("attach to pid %d: %w: %s has no node", id.PID, ErrNoProcess, s)
	}
	ctx, done := s.within(ctx)
	defer done()
	p, err := node.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.process(p), nil
}

// Usage reads what the node uses; see Host. It submits the job where there is none: the baseline of a trial is that
// of its own node.
func (s *Slurm) Usage(ctx context.Context) (Usage, error) {
	node, err := s.connected(ctx, true)
	if err != nil {
		return Usage{}, err
	}
	ctx, done := s.within(ctx)
	defer done()
	return node.Usage(ctx)
}

// Reach tells how to talk to a port of the node; see Host. Each connection is a step of the job.
func (s *Slurm) Reach(ctx context.Context, port int) (Endpoint, error) {
	node, err := s.connected(ctx, true)
	if err != nil {
		return Endpoint{}, err
	}
	ctx, done := s.within(ctx)
	defer done()
	return node.Reach(ctx, port)
}

// Open starts the agent on the node for another purpose, as "replay". The caller closes what it gets.
func (s *Slurm) Open(ctx context.Context, word string) (*LinkConn, error) {
	node, err := s.connected(ctx, true)
	if err != nil {
		return nil, err
	}
	return node.Open(ctx, word)
}

// Lease takes the lease of the login node; see Host and SlurmOptions.Lessor.
func (s *Slurm) Lease(ctx context.Context, holder string) (func() error, error) {
	if s.opts.Lessor == nil {
		return func() error { return nil }, nil
	}
	return s.opts.Lessor.Lease(ctx, holder)
}

// End gives the node back: whatever runs there gets TERM, and KILL half a minute later. It waits for the job to have
// ended. Without a job it does nothing.
func (s *Slurm) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, slurmEnd, fmt.Errorf("not within %s", slurmEnd))
	defer cancel()
	if s.ended() != nil {
		return s.clean(ctx)
	}
	job, err := s.find(ctx)
	if errors.Is(err, ErrNoJob) {
		return s.clean(ctx)
	}
	if err == nil && job.Phase() == SlurmRuns {
		// Over a network file system the file may be seen late: the signal is what ends the job, the file says why.
		if _, err = s.command(ctx, "touch", path.Join(slurmFolder(s.opts.Request.Work, s.opts.Request.Name), "done")); err == nil {
			_ = s.cli.Finish(ctx, job) // it may have ended by the file already
		}
	} else if err == nil {
		err = s.cli.Cancel(ctx, job)
	}
	if err == nil {
		err = s.awaitEnd(ctx, job)
	}
	if err != nil {
		return fmt.Errorf("give the node of %s back: %w", s, err)
	}
	return s.clean(ctx)
}

// clean removes what the job left on the shared file system, but for the server's own run folder (Forget).
func (s *Slurm) clean(ctx context.Context) error {
	folder := slurmFolder(s.opts.Request.Work, s.opts.Request.Name)
	if _, err := s.command(ctx, "sh", "-c", `rm -rf "$1" "$1"-*.out`, "sh", folder); err != nil {
		return fmt.Errorf("remove what %s left: %w", s, err)
	}
	return nil
}

// awaitEnd waits for a job to end. An end that Slurm has forgotten is one.
func (s *Slurm) awaitEnd(ctx context.Context, job SlurmJob) error {
	for wait := slurmFirstLook; ; wait = min(2*wait, slurmLastLook) {
		now, err := s.cli.Job(ctx, job)
		if errors.Is(err, ErrNoJob) {
			if job, err = s.forgotten(ctx); err != nil {
				return err
			}
			_ = s.close(job) // it returns what we know
			return nil
		}
		if err == nil && now.Phase() == SlurmEnded {
			_ = s.close(now)
			return nil
		}
		if err != nil && !errors.Is(err, ErrSlurmUnclear) {
			return err
		}
		if !pause(ctx, wait) {
			return fmt.Errorf("%w (%s)", context.Cause(ctx), s.Job().Why())
		}
	}
}

// Close ends the connection to the node. The job, and what runs in it, goes on for SlurmOptions.Patience; see End.
func (s *Slurm) Close() error {
	s.mu.Lock()
	node, leave := s.node, s.leave
	s.mu.Unlock()
	if node == nil {
		return nil
	}
	leave()
	return node.Close()
}
