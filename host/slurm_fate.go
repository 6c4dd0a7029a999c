package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// watch looks at the job until it has ended. A Slurm that does not answer is no end.
func (s *Slurm) watch(ctx context.Context) {
	for pause(ctx, slurmWatch) {
		if now, err := s.look(ctx); err == nil && now.Phase() == SlurmEnded {
			return
		}
	}
}

// look asks how the job stands, and notes an end.
func (s *Slurm) look(ctx context.Context) (SlurmJob, error) {
	now, err := s.cli.Job(ctx, s.Job())
	if errors.Is(err, ErrNoJob) {
		now, err = s.forgotten(ctx)
	}
	if err != nil {
		return now, err
	}
	if s.had() && now.Phase() == SlurmWaits || now.Restarts > 0 { // an administrator had it begin anew: that is not our trial
		if err := s.cli.Cancel(ctx, now); err != nil {
			return now, err
		}
		now.State = "REQUEUED"
	}
	s.saw(now)
	if now.Phase() == SlurmEnded {
		_ = s.close(now) // it returns what we know
	}
	return now, nil
}

// had reports whether the job ever had a node that answered.
func (s *Slurm) had() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node != nil
}

// Fate tells whether the job has ended, or is being ended, by other means than End; then it waits, as long as ctx
// allows, for what Slurm says of it. Where Slurm gives no answer nothing is concluded.
func (s *Slurm) Fate(ctx context.Context) (job SlurmJob, over bool) {
	if end := s.ended(); end != nil {
		return s.byTerm(ctx, end.Job), true
	}
	if s.Job().ID == "" {
		return SlurmJob{}, false
	}
	for wait := slurmFirstLook; ; wait = min(2*wait, slurmLastLook) {
		now, err := s.look(ctx)
		switch {
		case err != nil && !errors.Is(err, ErrSlurmUnclear):
			return now, false
		case err == nil && now.Phase() == SlurmEnded:
			return s.byTerm(ctx, now), true
		case err == nil && (now.Phase() == SlurmWaits || now.Phase() == SlurmStarts):
			return now, false
		case err == nil && now.Phase() == SlurmRuns && s.note(ctx, "why") == "":
			return now, false
		}
		if !pause(ctx, wait) {
			return s.Job(), false
		}
	}
}

// byTerm tells a job that Slurm counts as completed although it was told to end: with a time of grace it is told so
// before it is preempted, and the batch script ends in good order.
func (s *Slurm) byTerm(ctx context.Context, job SlurmJob) SlurmJob {
	if why, _, _ := strings.Cut(s.note(ctx, "rc"), " "); job.Cause() == SlurmDone && why == "term" {
		job.State = "CANCELLED"
	}
	return job
}

// note is what the job left in a file of its folder, "" where there is none, or no way to it.
func (s *Slurm) note(ctx context.Context, name string) string {
	output, status, err := s.opts.Login.RunCommand(ctx, []string{"cat", path.Join(slurmFolder(s.opts.Request.Work, s.opts.Request.Name), name)}, "")
	if err != nil || status != 0 {
		return ""
	}
	return strings.TrimSpace(output)
}

// forgotten tells by its own rc how a job ended that Slurm does not remember.
func (s *Slurm) forgotten(ctx context.Context) (SlurmJob, error) {
	job := s.Job()
	output, status, err := s.opts.Login.RunCommand(ctx, []string{"cat", path.Join(slurmFolder(s.opts.Request.Work, s.opts.Request.Name), "rc")}, "")
	if err != nil {
		return job, err
	}
	job.State, job.Reason = string(SlurmGone), ""
	if why, _, ok := strings.Cut(output, " "); ok && status == 0 {
		switch why {
		case "done", "silence":
			job.State = "COMPLETED"
		case "term":
			job.State = "CANCELLED"
		}
	}
	return job, nil
}

// past finds out what became of a job that has ended, by Slurm's memory or by what it left in its folder. It returns nil
// where there never was one that ran.
func (s *Slurm) past(ctx context.Context) error {
	jobs, err := s.cli.Named(ctx, s.opts.Request.Name)
	if err != nil {
		return err
	}
	if len(jobs) > 0 { // the newest first, and all have ended
		return s.close(jobs[0])
	}
	var begun int64
	job := SlurmJob{Name: s.opts.Request.Name, Code: -1}
	if n, err := fmt.Sscan(s.note(ctx, "begun"), &job.ID, &job.Node, &begun); n < 3 || err != nil {
		return nil
	}
	s.saw(job)
	if job, err = s.forgotten(ctx); err != nil {
		return err
	}
	return s.close(job)
}
