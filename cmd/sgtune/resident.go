package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sgtune/host"
	"sgtune/tuner"
)

// settler is a host on which a server can be left running.
type settler interface {
	Settle(ctx context.Context, s host.ResidentSpec) (host.Resident, error)
	Residents(ctx context.Context) ([]host.Resident, error)
	Dismiss(ctx context.Context, name string) error
}

var (
	_ settler = (*host.Local)(nil)
	_ settler = (*host.Remote)(nil)
)

// residents are the servers that sgtune left running on a host, each named after the study that launched it.
type residents []host.Resident

// residents asks the host; none where no server can be left running.
func (p *place) residents(ctx context.Context, study *tuner.Study) (residents, error) {
	s, ok := p.host.(settler)
	if !ok {
		return nil, nil
	}
	list, err := s.Residents(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for servers that sgtune left running: %w", err)
	}
	if study.Server.Container != nil {
		in := &containerSteward{&finish{loopHost: &loopHost{place: p, study: study}, port: cmp.Or(study.Port, defaultPort)}}
		if r, there, err := in.look(ctx); err == nil && there { // a runtime's trouble is told where it is needed
			list = append(list, r)
		}
	}
	return list, nil
}

// owner is the study whose server a process belongs to, "" for all others.
func (r residents) owner(pid int) string {
	for _, one := range r {
		if slices.Contains(one.PIDs, pid) {
			return one.Name
		}
	}
	return ""
}

// texts name each server and how to stop it. at puts a command of the host into one that works from here.
func (r residents) texts(at func(command string) string) []string {
	var out []string
	for _, one := range r {
		who := "starting again"
		if one.Server.PID > 0 {
			who = fmt.Sprintf("pid %d, since %s", one.Server.PID, day(one.Since))
		}
		if n := one.Starts - 1; n > 0 {
			who += fmt.Sprintf(", started again %s", count(n, "time"))
		}
		out = append(out, fmt.Sprintf("the server on port %d that sgtune launched when study %s ended (%s); to stop it: %s", one.Port, one.Name, who, at(one.Stop())))
	}
	return out
}

// machine puts a command of a study's host into one that works from here.
func (p *place) machine(s *tuner.Study) func(command string) string {
	if p.remote == nil {
		return func(command string) string { return command }
	}
	words := "ssh "
	if s.Host.SSHConfig != "" {
		words += "-F " + shellWord(s.Host.SSHConfig) + " "
	}
	return func(command string) string { return words + shellWord(s.Host.Address) + " " + command }
}
