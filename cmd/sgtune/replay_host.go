package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/internal/agent"
	"sgtune/internal/replayjob"
	"sgtune/trial"
	"sgtune/tuner"
)

// hostSilence ends a load whose sgtune is not heard: it must be over before a lost one is put on the server again.
const hostSilence = 20 * time.Second

// hostReplay puts loads on a server from the server's own machine (trial.Replayer), by the agent there.
type hostReplay struct {
	node  replayNode
	files replayFiles
	clock benchmark.Clock
	file  string // the workload, on this machine

	mu     sync.Mutex
	copied string // and on that one, "" before it was copied
}

var _ trial.Replayer = (*hostReplay)(nil)

// replayNode is the machine of a server, as its load generator needs it.
type replayNode interface {
	Usage(ctx context.Context) (host.Usage, error)
	Open(ctx context.Context, word string) (*host.LinkConn, error)
}

// replayFiles puts files where that machine sees them.
type replayFiles interface {
	Copy(ctx context.Context, path string) (string, error)
}

// replayer is who puts the loads of a study on its servers, nil for this process.
func (n *night) replayer(where *place) trial.Replayer {
	if where.remote == nil || where.slurm != nil || n.study.Host.ReplayFrom == tuner.ReplayHere {
		return nil
	}
	return &hostReplay{node: where.remote, files: where.remote, clock: where.clock, file: n.workload.Path}
}

// Replay implements trial.Replayer.
func (h *hostReplay) Replay(ctx context.Context, target benchmark.Target, rows trial.Rows, opts benchmark.Options, each func(benchmark.Request)) (*benchmark.Report, int, error) {
	if err := h.copyOnce(ctx); err != nil {
		return nil, rows.Skip, err
	}
	behind, err := h.behind(ctx)
	if err != nil {
		return nil, rows.Skip, err
	}
	conn, err := h.node.Open(ctx, "replay")
	if err != nil {
		return nil, rows.Skip, lostLoad(err)
	}
	next := rows.Skip
	calls := agent.Callbacks{
		Prune: opts.Prune,
		Each: func(q benchmark.Request) {
			q.Intended, q.Sent = q.Intended.Add(behind), q.Sent.Add(behind)
			each(q)
		},
		OnWindow: func(w benchmark.Window) {
			w.Start = w.Start.Add(behind)
			opts.OnWindow(w)
		},
		Ended: func(r replayjob.Result) { next = r.Next },
	}
	if opts.OnWindow == nil {
		calls.OnWindow = nil
	}
	report, err := agent.Run(ctx, agent.Conn{In: conn.In, Out: conn}, h.job(target, rows, opts), calls)
	if closed := conn.Close(); err == nil {
		err = closed
	}
	if report != nil {
		for i := range report.Windows {
			report.Windows[i].Start = report.Windows[i].Start.Add(behind)
		}
	}
	return report, next, lostLoad(err)
}

// job is what the agent is asked to do.
func (h *hostReplay) job(target benchmark.Target, rows trial.Rows, opts benchmark.Options) replayjob.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return replayjob.Job{
		Target:   replayjob.Target{URL: target.URL, Header: plainHeader(target.Header), Admin: plainHeader(target.Admin)},
		Workload: replayjob.Workload{Path: h.copied},
		Feed: replayjob.Feed{
			From: rows.From, To: rows.To, Longest: rows.Longest, Short: rows.Short, Salt: rows.Salt, Skip: rows.Skip,
		},
		Palette: &rows.Palette, Load: replayjob.LoadOf(opts), Silence: replayjob.Duration(hostSilence),
	}
}

// copyOnce sees to it that the workload lies on the machine.
func (h *hostReplay) copyOnce(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.copied != "" {
		return nil
	}
	path, err := h.files.Copy(ctx, h.file)
	if err != nil {
		return err
	}
	h.copied = path
	return nil
}

// behind is what has to be added to a time of the machine to have one of ours, as exact as half a round trip.
func (h *hostReplay) behind(ctx context.Context) (time.Duration, error) {
	before := h.clock.Now()
	u, err := h.node.Usage(ctx)
	if err != nil {
		return 0, err
	}
	after := h.clock.Now()
	return before.Add(after.Sub(before) / 2).Sub(u.At), nil
}

// lostLoad makes a lost agent, or one that could not be started for the link, an error of which the trial knows that
// it may try again.
func lostLoad(err error) error {
	if errors.Is(err, agent.ErrLost) || errors.Is(err, host.ErrUnreachable) {
		return fmt.Errorf("%w: %w", trial.ErrLoadLost, err)
	}
	return err
}

// plainHeader is a header with one value a name; nil stays nil.
func plainHeader(h http.Header) map[string]string {
	if h == nil {
		return nil
	}
	out := map[string]string{}
	for name := range h {
		out[name] = h.Get(name)
	}
	return out
}

// checkAgent says what the agent can do on the machine of an ssh study, and what it cannot.
func (p *place) checkAgent(ctx context.Context, s *tuner.Study, in *tuner.CheckInput) {
	trip, err := p.remote.RoundTrip(ctx)
	if err != nil {
		in.Against = append(in.Against, err.Error())
		return
	}
	here := s.Host.ReplayFrom == tuner.ReplayHere
	hello, err := agentHello(ctx, p.remote)
	switch {
	case err != nil && here:
		in.Notes = append(in.Notes, fmt.Sprintf("The load generator cannot run on %s (%v); replay_from: here does without.", p.remote, err))
	case err != nil:
		in.Against = append(in.Against, fmt.Sprintf("the load generator cannot run on %s (%v); host.replay_from: here would run it here, with the link inside every latency", p.remote, err))
	case here:
		in.Notes = append(in.Notes, fmt.Sprintf("The load generator runs here and not on %s: the link's round trip, now %s, is inside every latency.", p.remote, shortTrip(trip)))
	default:
		in.Notes = append(in.Notes, fmt.Sprintf("The load generator runs on %s (%s, %s), so that the link's round trip, now %s, is inside no latency.", p.remote, hello.Platform, hello.Version, shortTrip(trip)))
	}
}

func shortTrip(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// helloTime is how long an agent may take to say who it is.
const helloTime = 30 * time.Second

// agentHello starts the load generator on the machine and ends it again.
func agentHello(ctx context.Context, r replayNode) (replayjob.Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	conn, err := r.Open(ctx, "replay")
	if err != nil {
		return replayjob.Hello{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var first replayjob.Event
	err = json.NewDecoder(conn).Decode(&first)
	closed := conn.Close()
	switch {
	case err != nil:
		return replayjob.Hello{}, fmt.Errorf("it said nothing: %w", err)
	case first.Hello == nil:
		return replayjob.Hello{}, errors.New("its first words are none of the load generator's")
	}
	return *first.Hello, errors.Join(first.Hello.Check(), closed)
}
