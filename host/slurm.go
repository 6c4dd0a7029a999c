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

const (
	slurmFirstLook = 200 * time.Millisecond
	slurmLastLook  = 5 * time.Second
	slurmWatch     = 2 * time.Second  // between two looks at a running job
	slurmConnect   = time.Minute      // for the first step in a job that runs
	slurmEnd       = 90 * time.Second // for a job to end that is not needed any more
)

// SlurmOptions are the settings of a Slurm host. Login, Agent, Request.Name and Request.Work are needed.
type SlurmOptions struct {
	Login   SlurmLogin
	Agent   string // path of sgtune-agent on the nodes: on the file system they share with the login node
	Request SlurmRequest
	// Lessor is the login node itself, on which the lease lies: jobs of two sgtunes do not meet, their claims on the
	// study's files and on the queue do. nil = there is no lease.
	Lessor Host
	// Patience is how long the job goes on without a sgtune that is connected to its node; 0 = 10 min.
	Patience time.Duration
	// QueueLimit is the longest wait for a node, after which the job is cancelled; 0 = no limit.
	QueueLimit time.Duration
	// Existing forbids to submit a job, and to wait for one that has no node: the host of a trial that is over.
	Existing bool
	// Waiting hears, about each five seconds, of a job that has no node yet, and once of one that has it.
	Waiting func(SlurmJob)
	Clock   *Clock // nil = real time
}

// Slurm is the node that a site's Slurm gives to one trial: one job, submitted by the first call that needs the node
// and found again by its name. Each trial has a Slurm of its own, and several of them work at once.
type Slurm struct {
	opts SlurmOptions
	cli  SlurmCLI
	turn chan struct{} // held while the node is sought

	mu    sync.Mutex
	job   SlurmJob // as last seen; ID "" before there is one
	node  *Remote  // the connection to its node, nil before it had one
	leave func()   // takes node off the login node, likewise
	over  chan struct{}
}

var _ Host = (*Slurm)(nil)

// ErrNodeGone is wrapped by the errors of a Slurm whose trial has no node any more, or has none yet: there is nothing
// left to ask, and to ask again is of no use.
var ErrNodeGone = errors.New("the trial has no node")

// SlurmEndError is why nothing can be done on the node of a job that has ended.
type SlurmEndError struct{ Job SlurmJob }

// Error implements error.
func (e *SlurmEndError) Error() string { return e.Job.Why() }

// Is makes it an ErrNodeGone.
func (e *SlurmEndError) Is(target error) bool { return target == ErrNodeGone }

// SlurmQueueError is the end of a wait for a node (SlurmOptions.QueueLimit).
type SlurmQueueError struct {
	Job   SlurmJob // as it waited
	Limit time.Duration
}

// Error implements error.
func (e *SlurmQueueError) Error() string {
	return fmt.Sprintf("no node within %s: %s", e.Limit, e.Job.Why())
}

// Is makes it an ErrNodeGone.
func (e *SlurmQueueError) Is(target error) bool { return target == ErrNodeGone }

// NewSlurm returns the node of a trial's job. Nothing is submitted yet.
func NewSlurm(opts SlurmOptions) (*Slurm, error) {
	if _, err := opts.Request.args(); err != nil {
		return nil, err
	}
	if opts.Patience <= 0 {
		opts.Patience = remotePatience
	}
	if opts.Clock == nil {
		opts.Clock = NewClock(time.Now(), 1)
	}
	if login, ok := opts.Lessor.(*Remote); ok {
		opts.Login = askedLogin{opts.Login, login}
	}
	return &Slurm{opts: opts, cli: SlurmCLI{Runner: opts.Login}, turn: make(chan struct{}, 1), over: make(chan struct{})}, nil
}

// String names the job.
func (s *Slurm) String() string { return "Slurm job " + s.opts.Request.Name }

// Job is the job as it was last seen; ID "" before there is one.
func (s *Slurm) Job() SlurmJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.job
}

func (s *Slurm) saw(job SlurmJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job = job
}

// ended is the error of a job that has ended, nil before.
func (s *Slurm) ended() *SlurmEndError {
	select {
	case <-s.over:
		return &SlurmEndError{s.Job()}
	default:
		return nil
	}
}

// connected returns the connection to the node; get says whether to get a node where there is none, and to wait for
// it. Without, it may be nil.
func (s *Slurm) connected(ctx context.Context, get bool) (*Remote, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if over := s.ended(); over != nil {
		return nil, over
	}
	s.mu.Lock()
	node := s.node
	s.mu.Unlock()
	if node != nil {
		return node, nil
	}
	job, err := s.find(ctx)
	if errors.Is(err, ErrNoJob) {
		switch {
		case s.opts.Existing:
			if err = s.past(ctx); err != nil {
				return nil, err
			}
			return nil, s.none(get, s.String()+" is not there")
		case !get:
			return nil, nil
		}
		job, err = s.submit(ctx)
	}
	if err != nil {
		return nil, err
	}
	if phase := job.Phase(); phase == SlurmWaits || phase == SlurmStarts {
		if s.opts.Existing || !get {
			return nil, s.none(get, job.Why())
		}
	}
	if job, err = s.running(ctx, job); err != nil {
		return nil, err
	}
	return s.connect(ctx, job)
}

// none is the error for who needs a node where there is none.
func (s *Slurm) none(needed bool, why string) error {
	if !needed {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNodeGone, why)
}

// find looks for the trial's job that has not ended; ErrNoJob when there is none.
func (s *Slurm) find(ctx context.Context) (SlurmJob, error) {
	jobs, err := s.cli.Named(ctx, s.opts.Request.Name)
	if err != nil {
		return SlurmJob{}, err
	}
	for _, j := range jobs {
		if j.Phase() != SlurmEnded {
			s.saw(j)
			return j, nil
		}
	}
	return SlurmJob{}, fmt.Errorf("%w: %s", ErrNoJob, s.opts.Request.Name)
}

// submit hands the job in. When the answer is lost it looks for the job instead of handing in a second one.
func (s *Slurm) submit(ctx context.Context) (SlurmJob, error) {
	folder := slurmFolder(s.opts.Request.Work, s.opts.Request.Name)
	if _, err := s.command(ctx, "rm", "-rf", folder); err != nil { // of an earlier job of this name
		return SlurmJob{}, err
	}
	for _, dir := range []string{path.Dir(folder), folder} { // the folder tells that there may be a job (SlurmSite.Names)
		if _, err := s.command(ctx, "mkdir", "-p", "-m", "700", dir); err != nil {
			return SlurmJob{}, err
		}
	}
	job, err := s.cli.Submit(ctx, s.opts.Request, batchScript(s.opts.Request, s.opts.Agent, s.opts.Patience))
	for wait := slurmFirstLook; errors.Is(err, ErrSlurmUnclear) && pause(ctx, wait); wait = min(2*wait, slurmLastLook) {
		found, lost := s.find(ctx)
		if lost == nil {
			return found, nil
		}
		if errors.Is(lost, ErrNoJob) && wait >= slurmLastLook { // Slurm answers again, and has not taken it
			return SlurmJob{}, err
		}
	}
	if err == nil {
		s.saw(job)
	}
	return job, err
}

// command runs a program on the login node for its effect on the shared file system, and returns its output.
func (s *Slurm) command(ctx context.Context, argv ...string) (string, error) {
	output, status, err := s.opts.Login.RunCommand(ctx, argv, "")
	if err == nil && status != 0 {
		err = fmt.Errorf("%s: %s", strings.Join(argv, " "), slurmSaid(output))
	}
	return output, err
}

// running waits for the job to have its node.
func (s *Slurm) running(ctx context.Context, job SlurmJob) (SlurmJob, error) {
	told, begin := time.Time{}, time.Now()
	for wait := slurmFirstLook; ; wait = min(2*wait, slurmLastLook) {
		now, err := s.cli.Job(ctx, job)
		switch {
		case errors.Is(err, ErrNoJob):
			job.State, job.Reason = string(SlurmGone), ""
			return job, s.close(job)
		case errors.Is(err, ErrSlurmUnclear):
			now = job
		case err != nil:
			return job, err
		}
		job = now
		s.saw(job)
		switch job.Phase() {
		case SlurmRuns:
			if s.opts.Waiting != nil {
				s.opts.Waiting(job)
			}
			return job, nil
		case SlurmEnded:
			return job, s.close(job)
		}
		if limit := s.opts.QueueLimit; limit > 0 && job.Phase() == SlurmWaits && time.Since(begin) > limit {
			return job, errors.Join(&SlurmQueueError{Job: job, Limit: limit}, s.cli.Cancel(ctx, job))
		}
		if s.opts.Waiting != nil && time.Since(told) >= slurmLastLook {
			told = time.Now()
			s.opts.Waiting(job)
		}
		if !pause(ctx, wait) {
			return job, fmt.Errorf("%w (%s)", context.Cause(ctx), job.Why())
		}
	}
}

// close notes that the job has ended.
func (s *Slurm) close(job SlurmJob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
	default:
		s.job = job
		close(s.over)
	}
	return &SlurmEndError{s.job}
}

// connect starts the agent on the node. The first steps of a job may be refused while its node is made ready, and
// the first words come to nothing before the batch script has begun (askBeat).
func (s *Slurm) connect(ctx context.Context, job SlurmJob) (*Remote, error) {
	r := s.opts.Request
	link := slurmLink{
		login: s.opts.Login, job: job, agent: s.opts.Agent, work: r.Work, ask: path.Join(slurmFolder(r.Work, r.Name), "ask"),
	}
	node := NewRemote(RemoteOptions{Link: link, Patience: s.opts.Patience, Clock: s.opts.Clock})
	leave := func() {}
	if login, ok := s.opts.Lessor.(*Remote); ok {
		leave = login.join(node)
	}
	begin := time.Now()
	for wait := slurmFirstLook; ; wait = min(2*wait, slurmLastLook) {
		err := node.call(ctx, "ping", struct{}{}, &struct{}{})
		if err == nil {
			break
		}
		if time.Since(begin) > slurmConnect || !pause(ctx, wait) {
			leave()
			return nil, errors.Join(err, node.Close())
		}
	}
	s.mu.Lock()
	s.node, s.leave = node, leave
	s.mu.Unlock()
	node.background(s.watch)
	return node, nil
}
