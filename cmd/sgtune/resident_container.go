package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sgtune/host"
	"sgtune/tuner"
)

// servedTime bounds the look for containers that studies left (real time): a runtime that hangs must not hold up a study
// that does not need it.
const servedTime = 20 * time.Second

// servedContainers are the servers that studies left to a container runtime on the host. The study's own runtime is
// asked; others only when something holds the GPUs or the port (busy): on a free machine none is started for nothing. One
// that gives no answer is no trouble here.
func (p *place) servedContainers(ctx context.Context, study *tuner.Study, busy bool) []host.Resident {
	var runtimes []string
	if c := study.Server.Container; c != nil {
		runtimes = append(runtimes, c.Runtime)
	}
	if busy {
		for _, name := range []string{"docker", "podman"} {
			if !slices.ContainsFunc(runtimes, func(r string) bool { return filepath.Base(r) == name }) {
				runtimes = append(runtimes, name)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, servedTime)
	defer cancel()
	ask := p.ask()
	var list []host.Resident
	for _, runtime := range runtimes {
		names, err := ask(ctx, []string{runtime, "ps", "-a", "--filter", "label=" + host.ServiceLabel, "--format", "{{.Names}}"}, nil)
		if err != nil {
			continue
		}
		for _, name := range strings.Fields(names) {
			if r, ok := servedContainer(ctx, ask, runtime, name); ok {
				list = append(list, r)
			}
		}
	}
	return list
}

// ask is how a program is asked on the host.
func (p *place) ask() asker {
	if p.remote != nil {
		return askOn(p.remote)
	}
	return askHere
}

// servedContainer asks for one container by its name; false when it serves no more.
func servedContainer(ctx context.Context, ask asker, runtime, name string) (host.Resident, bool) {
	text, err := ask(ctx, []string{runtime, "inspect", name}, nil)
	if err != nil {
		return host.Resident{}, false
	}
	s, err := readServed(text)
	if err != nil || !s.there() {
		return host.Resident{}, false
	}
	r := s.resident(runtime, name)
	if r.Server.PID > 0 {
		r.PIDs = containerPIDs(ctx, ask, runtime, name, r.Server.PID)
	}
	return r, true
}

// containerPIDs are the processes of a container by their numbers on the host, at least its main process.
func containerPIDs(ctx context.Context, ask asker, runtime, name string, main int) []int {
	words := []string{runtime, "top", name, "-eo", "pid"}
	if filepath.Base(runtime) == "podman" {
		words = []string{runtime, "top", name, "hpid"}
	}
	pids := []int{main}
	text, _ := ask(ctx, words, nil) // the runtime needs ps for it; without, the main process is what is known
	for word := range strings.FieldsSeq(text) {
		if pid, err := strconv.Atoi(word); err == nil && pid != main {
			pids = append(pids, pid)
		}
	}
	return pids
}

// served is what the runtime tells of a container.
type served struct {
	State struct {
		Status    string
		Running   bool
		Pid       int
		ExitCode  int
		StartedAt string
		Error     string
	}
	RestartCount int
	Config       struct {
		Labels map[string]string
		Cmd    []string
	}
}

// readServed reads what inspect tells of one container.
func readServed(inspected string) (served, error) {
	var all []served
	if err := json.Unmarshal([]byte(inspected), &all); err != nil || len(all) != 1 {
		return served{}, fmt.Errorf("nothing that is understood: %w", err)
	}
	return all[0], nil
}

// there reports whether it runs, or waits to be started again.
func (s served) there() bool { return s.State.Running || s.State.Status == "restarting" }

// resident is the container as a server that sgtune left. Its port is that of its command line, 0 where none stands there.
func (s served) resident(runtime, name string) host.Resident {
	r := host.Resident{
		Name: s.Config.Labels[host.ServiceLabel], Port: portOf(s.Config.Cmd), Starts: 1 + s.RestartCount, StopBy: runtime + " stop " + name,
	}
	if at, err := time.Parse(time.RFC3339Nano, s.State.StartedAt); err == nil {
		r.Since = at
	}
	if s.State.Running {
		r.Server.PID = s.State.Pid
	} else {
		r.Ended = fmt.Sprintf("exit status %d", s.State.ExitCode)
	}
	return r
}

func portOf(argv []string) int {
	port := 0
	for i, word := range argv {
		value, inline := strings.CutPrefix(word, "--port=")
		if word == "--port" && i+1 < len(argv) {
			value, inline = argv[i+1], true
		}
		if n, err := strconv.Atoi(value); inline && err == nil {
			port = n
		}
	}
	return port
}
