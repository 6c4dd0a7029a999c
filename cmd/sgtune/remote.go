package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sgtune/host"
	"sgtune/internal/agent"
	"sgtune/trial"
	"sgtune/tuner"
)

// leaseMargin is how much longer than its server the host is kept for a sgtune that is not heard: the guard ends the
// server first.
const leaseMargin = 2 * time.Minute

// openRemote returns the machine of an ssh study. Nothing is connected yet.
func openRemote(s *tuner.Study, clock *host.Clock) (*host.Remote, error) {
	link, err := host.NewSSH(host.SSHOptions{
		Address: s.Host.Address, Config: s.Host.SSHConfig, Work: s.Host.WorkDir, Agent: builtAgent,
	})
	if err != nil {
		return nil, err
	}
	return host.NewRemote(host.RemoteOptions{Link: link, Patience: s.Host.TunerGone + leaseMargin, Clock: clock}), nil
}

// builtAgent is the agent built into this program, for a machine that calls itself arch.
var builtAgent = func(arch string) (program []byte, sha256 string, err error) {
	p, err := agent.Binary(arch)
	return p.Bytes, p.SHA256, err
}

// close ends the connection to another machine, if there is one.
func (p *place) close() error {
	if p.remote == nil {
		return nil
	}
	return p.remote.Close()
}

// recover cleans up what earlier runs of a study left on its host.
func (p *place) recover(ctx context.Context, study string, running []*trial.Trial, store trial.Saver) error {
	_, err := trial.Recover(ctx, p.host, p.clock, study, running, store)
	if p.remote != nil {
		_, _ = p.remote.ForgetAbandoned(ctx) // a tidying: what stays goes with sgtune reclaim, or after a week
	}
	return err
}

// asking calls do with a way to run commands where the server of a study will run.
func asking(s *tuner.Study, do func(ask asker) error) error {
	if s.Host.Address == "" { // of an ssh host there is one
		return do(askHere)
	}
	r, err := openRemote(s, nil)
	if err != nil {
		return err
	}
	return errors.Join(do(askOn(r)), r.Close())
}

// askOn runs commands on another machine. A shell there takes away what they print to standard error; the words of
// the command are its arguments and never its text.
func askOn(h host.Host) asker {
	return func(ctx context.Context, argv []string, env map[string]string) (string, error) {
		p, err := h.Start(ctx, host.Command{Argv: append([]string{"sh", "-c", `exec "$@" 2>/dev/null`, "sh"}, argv...), Env: env})
		if err != nil {
			return "", err
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), askEnd)
		defer cancel()
		defer func() { _ = host.Forget(last, p) }() // the work folder is tidied later, too
		select {
		case <-p.Done():
		case <-ctx.Done():
			return "", errors.Join(context.Cause(ctx), p.Stop(last, 0))
		}
		output, err := wholeLog(last, p)
		if exit := p.Exit(); err == nil && (exit.Code != 0 || exit.Signal != 0) {
			err = badEnd(exit)
		}
		return output, err
	}
}

// askEnd is the time for what comes after an answered question.
const askEnd = time.Minute

// badEnd is how a command ended that did not do what was asked.
func badEnd(e host.Exit) error {
	switch {
	case e.Signal != 0:
		return fmt.Errorf("it was ended by signal %d", e.Signal)
	case e.Code == 126 || e.Code == 127: // a shell's words for what it could not run
		return fmt.Errorf("exit status %d: is the program there?", e.Code)
	}
	return fmt.Errorf("exit status %d", e.Code)
}

// wholeLog is what a process wrote. Of one on another machine it is copied to its file here on the way.
func wholeLog(ctx context.Context, p host.Process) (string, error) {
	var all []byte
	for {
		b, err := p.Log(ctx, int64(len(all)), 1<<20)
		if err != nil || len(b) == 0 {
			return string(all), err
		}
		all = append(all, b...)
	}
}
