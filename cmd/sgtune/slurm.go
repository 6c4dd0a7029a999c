package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sgtune/host"
	"sgtune/trial"
	"sgtune/tuner"
)

// slurmHost is the login node of a study's Slurm, and the way to the nodes of its trials (trial.Sites).
type slurmHost struct {
	*host.SlurmSite
	clock    *host.Clock
	workload string // file on this machine, "" where nothing is replayed from the nodes

	mu     sync.Mutex
	notice func(kind, text string) // both hear of jobs that wait; nil before the study runs
	show   func(trial.Progress)
}

var _ trial.Sites = (*slurmHost)(nil)

// openSlurm returns the Slurm of a study. Nothing is connected yet.
func openSlurm(s *tuner.Study, clock *host.Clock) (*slurmHost, error) {
	place, err := slurmPlace(s)
	if err != nil {
		return nil, err
	}
	q := s.Host.Slurm
	h := &slurmHost{clock: clock, SlurmSite: host.NewSlurmSite(host.SlurmSiteOptions{
		Place: place, Patience: s.Host.TunerGone, Lease: s.Host.TunerGone + leaseMargin, QueueLimit: q.QueueLimit, Clock: clock,
		Request: host.SlurmRequest{
			Partition: q.Partition, Account: q.Account, Gres: q.Gres, CPUs: q.CPUs, Memory: int64(q.Memory), TimeLimit: q.TimeLimit,
		},
	})}
	if s.Host.ReplayFrom != tuner.ReplayHere {
		h.workload = s.Workload.File
	}
	return h, nil
}

// slurmPlace is the login node: this machine, or one behind ssh.
func slurmPlace(s *tuner.Study) (host.SlurmPlace, error) {
	if s.Host.Address == "" {
		return &host.SlurmHereLink{Work: s.Host.WorkDir, Agent: builtAgent}, nil
	}
	return host.NewSSH(host.SSHOptions{Address: s.Host.Address, Config: s.Host.SSHConfig, Work: s.Host.WorkDir, Agent: builtAgent})
}

// tell has the jobs that wait told to a person.
func (h *slurmHost) tell(notice func(kind, text string), show func(trial.Progress)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notice, h.show = notice, show
}

// Site implements trial.Sites.
func (h *slurmHost) Site(ctx context.Context, t *trial.Trial, existing bool) (trial.Site, error) {
	node, err := h.Node(ctx, jobName(t), existing, h.waits(t.Number))
	if err == nil && existing {
		err = answered(ctx, node, t.Marker)
	}
	if err != nil {
		return trial.Site{}, err
	}
	site := trial.Site{Host: node, End: func(ctx context.Context) error { return errors.Join(node.End(ctx), node.Close()) }}
	if h.workload != "" && !existing {
		site.Replayer = &hostReplay{node: node, files: h, clock: h.clock, file: h.workload}
	}
	return site, nil
}

// slurmComesBack is how long a controller that does not answer is waited for before an orphan is given up for now.
const slurmComesBack = 2 * time.Minute

// answered waits for Slurm to say how the job of an orphan stands. As long as it says nothing the job may run.
func answered(ctx context.Context, node *host.Slurm, marker string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, slurmComesBack, fmt.Errorf("not within %s", slurmComesBack))
	defer cancel()
	for {
		_, err := node.Find(ctx, marker)
		if !errors.Is(err, host.ErrSlurmUnclear) {
			return nil // other trouble is met again by who proves the node clean
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// Others implements trial.Sites.
func (h *slurmHost) Others(ctx context.Context, study string) error {
	names, err := h.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if studyOfJob(name) != jobStudy(study) {
			continue
		}
		if ended := h.endJob(ctx, name); ended != nil {
			err = errors.Join(err, ended)
		}
	}
	return err
}

// endJob gives the node of a job back, and ends what is left in it.
func (h *slurmHost) endJob(ctx context.Context, name string) error {
	node, err := h.Node(ctx, name, true, nil)
	if err != nil {
		return err
	}
	return errors.Join(node.End(ctx), node.Close())
}

// waits tells how the job of a trial waits for its node, each reason once in the log.
func (h *slurmHost) waits(number int) func(host.SlurmJob) {
	begin, told := h.clock.Now(), ""
	return func(j host.SlurmJob) {
		h.mu.Lock()
		notice, show := h.notice, h.show
		h.mu.Unlock()
		text := j.Why()
		if j.Phase() == host.SlurmRuns {
			text += " on " + j.Node
		}
		if show != nil {
			show(trial.Progress{Number: number, Step: trial.StepAdmit, Elapsed: h.clock.Now().Sub(begin), Text: text})
		}
		if notice != nil && text != told {
			told = text
			notice("queue", fmt.Sprintf("trial %d: %s", number, text))
		}
	}
}

// longestJobStudy is how much of a study's name the name of a job holds.
const longestJobStudy = 48

// jobName leads from a trial to its job and back: sgtune-STUDY.NUMBER.CREATED, as the marker of its processes.
func jobName(t *trial.Trial) string {
	return fmt.Sprintf("sgtune-%s.%d.%d", jobStudy(t.Study), t.Number, t.CreatedAt.UnixNano())
}

// jobStudy is a study's name as it stands in a job's: a long one is cut, with a checksum.
func jobStudy(name string) string {
	if len(name) <= longestJobStudy {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s-%x", name[:longestJobStudy-9], sum[:4])
}

// studyOfJob is jobStudy of the study whose trial a job belongs to, "" when it is no job of ours.
func studyOfJob(job string) string {
	rest, ours := strings.CutPrefix(job, "sgtune-")
	parts := strings.Split(rest, ".")
	if !ours || len(parts) < 3 {
		return ""
	}
	return strings.Join(parts[:len(parts)-2], ".")
}

// slurmFacts are what is known before there is a job: nothing of a node, and how much memory one is asked for.
func slurmFacts(name string, s *tuner.Study) tuner.HostFacts {
	f := tuner.HostFacts{
		Name: name, MemTotal: -1, MemAvailable: -1, CgroupHeadroom: -1,
		GPUNote: "no GPU facts: a node is only known once a trial's job has it",
	}
	if s.Host.Slurm.Memory > 0 {
		f.CgroupHeadroom = int64(s.Host.Slurm.Memory)
	}
	return f
}

// slurmName is how a study's Slurm is shown.
func slurmName(s *tuner.Study) string {
	name := "slurm"
	if s.Host.Address != "" {
		name += " " + s.Host.Address
	}
	if s.Host.Slurm.Partition != "" {
		name += " partition " + s.Host.Slurm.Partition
	}
	return name
}
