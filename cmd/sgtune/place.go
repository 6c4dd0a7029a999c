package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sgtune/host"
	"sgtune/internal/simulator"
	"sgtune/sglang"
	"sgtune/tuner"
)

// place is where a study runs: its host, that host's clock, and where files lie.
type place struct {
	host   host.Host
	remote *host.Remote // the same host where it is another machine, else nil
	slurm  *slurmHost   // the same host where trials run in jobs, of which it is the login node
	clock  *host.Clock
	name   string // shown: "local", "simulated kimi-8x96"
	files  string // evidence of the study: sgtune.files/STUDY beside the database

	secrets []string // exact values that no file in it may hold
}

// evidenceFolder holds the evidence of a database's studies, a folder each.
func evidenceFolder(db string) string { return filepath.Join(filepath.Dir(db), "sgtune.files") }

// newPlace opens the host of a study. origin is the host time to start from (a simulated host's
// clock runs faster than ours, so a resumed study goes on where its last row ended). The caller closes it.
func newPlace(s *tuner.Study, db string, origin time.Time) (*place, error) {
	p := &place{
		clock: host.NewClock(origin, 1), name: s.Host.Kind,
		files: filepath.Join(evidenceFolder(db), s.Name), secrets: secrets(s, os.Environ()),
	}
	if s.Host.Kind == tuner.HostSimulated {
		machine, err := simulator.Lookup(s.Host.Profile)
		if err != nil {
			return nil, err
		}
		p.clock = host.NewClock(origin, s.Host.TimeScale)
		p.name = "simulated " + s.Host.Profile
		p.host = host.NewSimulated(host.SimulatedOptions{
			Dir: filepath.Join(p.files, "host"), GPUs: machine.Ranks, GPUTotalMiB: int64(machine.GPUTotalMiB), RAMTotalBytes: int64(s.Host.RAMBytes), Clock: p.clock,
		})
		return p, nil
	}
	if s.Host.Kind == tuner.HostSSH {
		remote, err := openRemote(s, p.clock)
		if err != nil {
			return nil, err
		}
		p.name, p.host, p.remote = "ssh "+s.Host.Address, remote, remote
		return p, nil
	}
	if s.Host.Kind == tuner.HostSlurm {
		slurm, err := openSlurm(s, p.clock)
		if err != nil {
			return nil, err
		}
		p.name, p.host, p.remote, p.slurm = slurmName(s), slurm, slurm.Remote, slurm
		return p, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find sgtune's own program: %w", err)
	}
	probe := &host.Probe{Argv: []string{self, "nvml-probe"}}
	gpus := &host.GPUFacts{NVML: probe, SMI: &host.SMI{}}
	p.host = host.NewLocal(host.LocalOptions{GPUs: gpus.Read, Guard: []string{self, "guard", "--job"}, Clock: p.clock})
	return p, nil
}

// simCommand is the server command of a study on the simulated host that names none of its own:
// this program's sim-server. Shown and exported it is called sgtune; run, by its own path.
func simCommand(s *tuner.Study, program string) []string {
	argv := []string{
		program, "sim-server", "--sim-profile", s.Host.Profile, "--sim-time-scale", sglang.FormatValue(s.Host.TimeScale),
		"--sim-seed", strconv.FormatInt(s.Host.Seed, 10), "--sim-startup", sglang.FormatValue(s.Host.Startup.Seconds()),
	}
	if len(s.Host.Faults) > 0 {
		argv = append(argv, "--sim-fault", strings.Join(s.Host.Faults, ","))
	}
	return argv
}

// facts reads the host as admission and check need it.
func (p *place) facts(ctx context.Context, s *tuner.Study) (tuner.HostFacts, error) {
	if p.slurm != nil {
		return slurmFacts(p.name, s), nil
	}
	u, err := p.host.Usage(ctx)
	if err != nil {
		return tuner.HostFacts{}, fmt.Errorf("read the host's GPUs and memory: %w", err)
	}
	f := tuner.HostFacts{
		Name: p.name, MemTotal: u.MemTotal, MemAvailable: u.MemAvailable, CgroupHeadroom: u.CgroupHeadroom,
		GPUNote: u.GPUNote, Leftovers: u.Processes, BootID: u.BootID, Kernel: u.Kernel,
	}
	var end host.Endpoint
	if s.Port != 0 {
		if end, err = p.host.Reach(ctx, s.Port); err != nil {
			return f, fmt.Errorf("look who listens on port %d: %w", s.Port, err)
		}
	}
	busy := end.Listening || slices.ContainsFunc(u.GPUs, func(g host.GPU) bool { return len(g.Processes) > 0 })
	stay, err := p.residents(ctx, s, busy)
	if err != nil {
		return f, err
	}
	f.Residents = stay.texts(p.machine(s))
	if c := s.Server.Container; c != nil {
		f.ContainerLimit = c.Memory
	}
	if fault := host.FaultOf(u.GPUs, u.GPUNote); fault != nil {
		f.GPUFault = fault.Text
	}
	for _, g := range u.GPUs {
		f.Driver = g.Driver
		fact := tuner.GPUFact{Index: g.Index, UUID: g.UUID, Name: g.Name, Total: g.Total, Used: g.Used}
		for _, h := range g.Processes {
			fact.Holders = append(fact.Holders, holderText(h.PID, p.nameOf(h.PID, h.Name), tuner.FormatSize(float64(h.Used)), stay.owner(h.PID)))
		}
		f.GPUs = append(f.GPUs, fact)
	}
	if end.Listening {
		f.PortHolders = []string{fmt.Sprintf("port %d: a process that cannot be named", s.Port)}
		if len(end.Owners) > 0 {
			f.PortHolders = nil
			for _, pid := range end.Owners {
				f.PortHolders = append(f.PortHolders, fmt.Sprintf("port %d: %s", s.Port, holderText(pid, p.nameOf(pid, ""), "", stay.owner(pid))))
			}
		}
	}
	return f, nil
}

// nameOf is the short name of a process, "" when it is not known.
func (p *place) nameOf(pid int, name string) string {
	if name != "" || p.remote != nil { // a number of another machine means something else here
		return name
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// holderText names a process that holds something; one that sgtune itself launched at the end of
// a study is named as ours.
func holderText(pid int, name, used, study string) string {
	parts := []string{fmt.Sprintf("pid %d", pid)}
	if name != "" {
		parts = append(parts, "("+name+")")
	}
	if study != "" {
		parts = append(parts, "launched by sgtune when study "+study+" ended")
	}
	if used != "" {
		parts = append(parts, used)
	}
	return strings.Join(parts, " ")
}

// latest is the newest host time stored of a study: where a simulated clock goes on.
func latest(r *tuner.Record, times ...time.Time) time.Time {
	if r != nil {
		times = append(times, r.CreatedAt, r.StartedAt, r.EndedAt)
	}
	return slices.MaxFunc(append(times, time.Time{}), time.Time.Compare)
}

// commandTimeout bounds before: and after: (real time).
const commandTimeout = 10 * time.Minute

// run runs a before: or after: command on the host; its output lies beside the evidence, where there is room
// for it: after: must run on a full disk too.
func (p *place) run(ctx context.Context, argv []string) error {
	log := filepath.Join(p.files, "commands.log")
	if !writable(log) {
		log = ""
	}
	from := int64(0)
	if info, err := os.Stat(log); err == nil {
		from = info.Size()
	}
	exit, output, err := host.Run(ctx, p.host, host.Command{Argv: argv, LogPath: log}, commandTimeout)
	if hidden := hideSecrets(log, from, p.secrets); err == nil {
		err = hidden
	}
	if err != nil {
		return err
	}
	if exit.Code == 0 {
		return nil
	}
	last := ""
	if lines := strings.Split(strings.TrimSpace(output), "\n"); lines[len(lines)-1] != "" {
		last = ": " + maskText(lines[len(lines)-1], p.secrets)
	}
	if exit.Signal != 0 {
		return fmt.Errorf("ended by signal %d%s", exit.Signal, last)
	}
	return fmt.Errorf("exit status %d%s", exit.Code, last)
}

// writable reports whether a file takes more output, and makes it. A program that cannot print may fail for that.
func writable(path string) bool {
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return false
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // what was written is taken back
	info, err := f.Stat()
	if err != nil {
		return false
	}
	_, err = f.WriteString("\n")
	return errors.Join(err, f.Truncate(info.Size())) == nil
}
