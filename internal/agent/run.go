package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sgtune/benchmark"
	"sgtune/internal/replayjob"
)

// Conn is a started agent: the standard input and output of its process. Closing Out must end a Read of it that
// is under way, as it does for the pipes of os/exec and for network connections.
type Conn struct {
	In  io.WriteCloser
	Out io.ReadCloser
	// Silence is how long the agent may say nothing, its start included, before it counts as lost; 0 = 15 s.
	Silence time.Duration
}

// Callbacks hear of a level while it runs, one call at a time. Any may be nil.
type Callbacks struct {
	Started  func(replayjob.Hello)        // the agent is there
	Prepared func(replayjob.Prepared)     // workload and prompts are known, nothing was sent yet
	Each     func(benchmark.Request)      // each finished request, as of benchmark.Run, up to 0.3 s later
	OnWindow func(benchmark.Window)       // benchmark.Options.OnWindow
	Prune    func(windows []float64) bool // benchmark.Options.Prune; an answer after two seconds counts at the next window
	Beat     func(replayjob.Progress)     // each two seconds
	Ended    func(replayjob.Result)       // where the next level of the same feed begins: Result.Next
}

// ErrLost is the error of an agent that went away, or was not heard, before its result. What it had sent to the
// server ends within Job.Silence.
var ErrLost = errors.New("the agent is lost")

const (
	agentSilence  = 15 * time.Second // Conn.Silence: the agent is heard each replayjob.BeatInterval
	callerSilence = 60 * time.Second // Job.Silence where it says nothing: a link that was dead so long does not come back
	stopWait      = 10 * time.Second // for the report after a stop
)

// Run has the agent at the other end of c do a job. It mirrors benchmark.Run: the same report, the same calls,
// and when ctx ends the level is stopped and the report covers what was done, beside the context's cause. It
// fills in what only it knows of the job: Protocol, Samples and Prune (from the callbacks), and Silence
// unless set. It closes both sides of c.
//
// Every time in a report, a window or a request is of the agent's machine. The error is a *replayjob.Failure
// when the agent said why it has no result, and wraps ErrLost when it said nothing more.
func Run(ctx context.Context, c Conn, job replayjob.Job, calls Callbacks) (*benchmark.Report, error) {
	job.Protocol, job.Samples, job.Prune = replayjob.Protocol, calls.Each != nil, calls.Prune != nil
	if job.Silence == 0 {
		job.Silence = replayjob.Duration(callerSilence)
	}
	if c.Silence <= 0 {
		c.Silence = agentSilence
	}
	l := open(c)
	defer l.close()
	s := &session{link: l, job: job, calls: calls}
	result, err := s.run(ctx)
	if result == nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("%w (%w)", cause, err)
		}
		return nil, err
	}
	if calls.Ended != nil {
		calls.Ended(*result)
	}
	return result.Report, context.Cause(ctx)
}

// session is one job from hello to result.
type session struct {
	link  *link
	job   replayjob.Job
	calls Callbacks
	greet bool // the agent said hello
}

func (s *session) run(ctx context.Context) (*replayjob.Result, error) {
	limit := s.link.conn.Silence
	silence := time.NewTimer(limit)
	defer silence.Stop()
	beat := time.NewTicker(replayjob.BeatInterval)
	defer beat.Stop()
	stop := ctx.Done()
	var giveUp <-chan time.Time
	for {
		select {
		case e, ok := <-s.link.events:
			if !ok {
				return nil, s.link.lost()
			}
			silence.Reset(limit)
			if result, err := s.heard(e); result != nil || err != nil {
				return result, err
			}
		case <-beat.C:
			if s.greet {
				s.link.say(replayjob.Control{Word: replayjob.Beat})
			}
		case <-stop:
			if stop = nil; !s.greet {
				return nil, errors.New("the agent had not been asked yet")
			}
			s.link.say(replayjob.Control{Word: replayjob.Stop})
			giveUp = time.After(stopWait)
		case <-giveUp:
			return nil, fmt.Errorf("%w: it did not stop within %s", ErrLost, stopWait)
		case <-silence.C:
			if len(s.link.events) > 0 { // it was us who did not listen
				silence.Reset(limit)
				continue
			}
			return nil, fmt.Errorf("%w: nothing was heard of it for %s; is its machine, or the link to it, gone?", ErrLost, limit)
		}
	}
}

// heard does what an event asks for. It returns what ends the session.
func (s *session) heard(e replayjob.Event) (*replayjob.Result, error) {
	switch {
	case e.Hello != nil:
		return nil, s.hello(*e.Hello)
	case e.Error != nil:
		return nil, e.Error
	case e.Result != nil && e.Result.Report != nil:
		return e.Result, nil
	case e.Ask != nil && s.calls.Prune != nil:
		word := replayjob.Go
		if s.calls.Prune(e.Ask.Windows) {
			word = replayjob.Prune
		}
		s.link.say(replayjob.Control{Word: word, Ask: e.Ask.Number})
	case e.Prepared != nil && s.calls.Prepared != nil:
		s.calls.Prepared(*e.Prepared)
	case e.Window != nil && s.calls.OnWindow != nil:
		s.calls.OnWindow(*e.Window)
	case e.Beat != nil && s.calls.Beat != nil:
		s.calls.Beat(*e.Beat)
	case s.calls.Each != nil:
		for _, q := range e.Samples {
			s.calls.Each(q)
		}
	}
	return nil, nil
}

// hello sends the job, once it is known that it will be understood: it may hold secrets.
func (s *session) hello(h replayjob.Hello) error {
	if err := h.Check(); err != nil {
		return err
	}
	if s.greet = true; s.calls.Started != nil {
		s.calls.Started(h)
	}
	s.link.say(replayjob.Control{Job: &s.job})
	return nil
}
