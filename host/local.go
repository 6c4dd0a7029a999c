package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// simulatedEnv marks the processes of a simulated host with its folder, so that a study on the
// real machine never takes them for its own, nor one simulated host those of another.
const simulatedEnv = "SGTUNE_SIMULATED"

// GPUReader reads the GPUs now. An empty list comes with a note that says why.
type GPUReader func(ctx context.Context) (gpus []GPU, note string)

// LocalOptions are the settings of a Local host. The zero value works.
type LocalOptions struct {
	StateDir  string    // where the lease lies; "" = $XDG_STATE_HOME/sgtune or ~/.local/state/sgtune
	LeaseName string    // "" = "local"
	GPUs      GPUReader // usually (*Probe).Read; nil = no GPU facts
	Guard     []string  // how to run GuardMain beside a command, usually sgtune's own path, "guard" and "--job"; nil = Command.Guard is refused
	Clock     *Clock    // nil = real time
	Self      []string  // how to run ContainMain, "contain FOLDER" follows; nil = the running program
	// BootIDFile holds the name of this start of the machine, for tests of a restart; "" = that of BootIDEnv, or the kernel's.
	BootIDFile string
}

// Local is the machine sgtune itself runs on.
type Local struct {
	boot      string
	stateDir  string
	leaseName string
	gpus      GPUReader
	guard     []string
	clock     *Clock
	self      []string

	simulated string            // folder of the simulated host, "" for the real machine
	env       map[string]string // forced on every process
	counters  func() counters   // out-of-memory kills so far
	notes     notes             // of files that its processes will leave
}

var _ Host = (*Local)(nil)

// NewLocal returns the host sgtune runs on.
func NewLocal(opts LocalOptions) *Local {
	// A machine without a boot id has no /proc either; Start, Find and Usage report that.
	boot, _ := bootID(opts.BootIDFile)
	l := &Local{
		boot: boot, stateDir: opts.StateDir, leaseName: opts.LeaseName, gpus: opts.GPUs, guard: opts.Guard, clock: opts.Clock, self: opts.Self,
		counters: machineCounters,
	}
	if l.leaseName == "" {
		l.leaseName = "local"
	}
	if l.gpus == nil {
		l.gpus = func(context.Context) ([]GPU, string) { return nil, "no GPU facts: this host has no GPU reader" }
	}
	if l.clock == nil {
		l.clock = NewClock(time.Now(), 1)
	}
	return l
}

// Start starts c; see Host.
func (l *Local) Start(ctx context.Context, c Command) (Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, errors.New("start: no command given")
	}
	if c.Container != nil {
		return l.startContained(ctx, c)
	}
	cmd, err := l.command(c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	p := &process{
		host: l, cmd: cmd, logPath: c.LogPath, before: l.counters(), done: make(chan struct{}),
		id: ID{BootID: l.boot, Marker: c.Marker, Argv: c.Argv},
	}
	if c.LogPath != "" {
		log, size, err := openLog(c.LogPath)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
		}
		defer func() { _ = log.Close() }() // the child has its own descriptor
		cmd.Stdout, cmd.Stderr, p.logBase = log, log, size
	}
	if c.Guard != nil {
		if p.guard, err = l.readyGuard(ctx, c); err != nil {
			return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Argv[0], err), p.guard.dismiss())
	}
	return l.started(ctx, p)
}

// started takes the identity of a process that was just started, and has it guarded.
func (l *Local) started(ctx context.Context, p *process) (Process, error) {
	p.id.PID, p.id.PGID = p.cmd.Process.Pid, p.cmd.Process.Pid // Setsid made it the leader of both
	s, err := readStat(p.id.PID)                               // cannot be reaped yet: we are the parent
	p.id.StartTicks = s.startTicks
	go p.reap()
	if err != nil {
		err = errors.Join(fmt.Errorf("read identity of pid %d: %w", p.id.PID, err), p.guard.dismiss())
	} else if p.guard != nil {
		err = p.guard.watch(ctx, p)
	}
	if err != nil {
		p.killGroup()
		<-p.done
		return nil, fmt.Errorf("start %s: %w", p.id.Argv[0], err)
	}
	return p, nil
}

func (l *Local) command(c Command) (*exec.Cmd, error) {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	for _, set := range []map[string]string{c.Env, l.env} {
		for name, value := range set {
			env[name] = value
		}
	}
	delete(env, MarkerEnv)
	if c.Marker != "" {
		env[MarkerEnv] = c.Marker
		// Python's setproctitle, which SGLang calls, otherwise overwrites /proc/PID/environ and the
		// marker with it.
		env["SPT_NOENV"] = "1"
	}
	if l.simulated == "" {
		delete(env, simulatedEnv)
	}
	path, err := lookPath(c.Argv[0], env["PATH"])
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd, nil
}

// lookPath finds a bare name in the PATH that the process will have, which may be the study's own.
func lookPath(name, path string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err == nil && filepath.IsAbs(file) && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: %s", exec.ErrNotFound, path)
}

// openLog opens the file for appending, for its owner only: a server may print what it was given.
func openLog(path string) (*os.File, int64, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, 0, fmt.Errorf("create log folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open log: %w", err), f.Close())
	}
	return f, info.Size(), nil
}

// Find lists the marked processes; see Host.
func (l *Local) Find(ctx context.Context, marker string) ([]Process, error) {
	all, err := scan()
	if err != nil {
		return nil, err
	}
	var list []Process
	for _, m := range l.marked(ctx, all, marker) {
		list = append(list, &found{host: l, done: make(chan struct{}), id: ID{
			BootID: l.boot, PID: m.pid, PGID: m.pgrp, StartTicks: m.startTicks, Marker: m.marker, Argv: readArgv(m.pid),
		}})
	}
	containers, err := l.foundContainers(ctx, marker)
	if err != nil {
		return nil, err
	}
	return append(list, containers...), context.Cause(ctx)
}

// Usage reads what the machine uses; see Host.
func (l *Local) Usage(ctx context.Context) (Usage, error) {
	mem, err := readMemory(rootFS)
	if err != nil {
		return Usage{}, err
	}
	marked, err := l.everyMarked(ctx)
	if err != nil {
		return Usage{}, err
	}
	if l.notes.due() {
		l.note(marked)
	}
	u := Usage{
		MemTotal: mem.total, MemAvailable: mem.available, CgroupHeadroom: mem.headroom,
		OOMKills: mem.oom.kernel, CgroupOOMKills: mem.oom.cgroup, Processes: len(marked), DiskRead: diskRead(marked),
		BootID: l.boot, Kernel: kernelRelease(),
	}
	u.GPUs, u.GPUNote = l.gpus(ctx)
	u.At = l.clock.Now()
	return u, context.Cause(ctx)
}

// kernelRelease is what uname -r prints, "" when the kernel does not tell.
func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

func (l *Local) everyMarked(ctx context.Context) ([]candidate, error) {
	all, err := scan()
	if err != nil {
		return nil, err
	}
	return l.marked(ctx, all, ""), nil
}

// diskRead adds up what the processes had read from storage, also through memory maps and network file systems,
// and by children they waited for; -1 when no process can be asked. It falls when one of them ends.
func diskRead(list []candidate) int64 {
	total := int64(-1)
	for _, c := range list {
		b, err := os.ReadFile(procPath(c.pid, "io"))
		if err != nil {
			continue // gone, or somebody else's
		}
		if n := keyed(b, "read_bytes:"); n >= 0 {
			total = max(total, 0) + n
		}
	}
	return total
}

// grace turns a grace of host time into real time. On a fast clock a process still needs real time
// to end, so it gets a second at least (or the whole grace if that is shorter).
func (l *Local) grace(d time.Duration) time.Duration {
	return max(l.clock.real(d), min(d, time.Second))
}
