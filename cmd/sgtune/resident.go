package main

import (
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

// residents asks the host; none where no server can be left running. busy says that something holds its GPUs or the
// study's port.
func (p *place) residents(ctx context.Context, study *tuner.Study, busy bool) (residents, error) {
	s, ok := p.host.(settler)
	if !ok {
		return nil, nil
	}
	list, err := s.Residents(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for servers that sgtune left running: %w", err)
	}
	return append(list, p.servedContainers(ctx, study, busy)...), nil
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
		where := ""
		if one.Port > 0 {
			where = fmt.Sprintf(" on port %d", one.Port)
		}
		out = append(out, fmt.Sprintf("the server%s that sgtune launched when study %s ended (%s); to stop it: %s", where, one.Name, who, at(one.Stop())))
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
