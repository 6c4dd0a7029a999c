package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// kernelThread is PF_KTHREAD of the kernel's task flags (field 9 of /proc/PID/stat).
const kernelThread = 0x00200000

// procStat is what /proc/PID/stat tells that we use.
type procStat struct {
	pid, ppid, pgrp, session int
	comm                     string
	state                    byte // R S D Z T …
	flags                    uint64
	threads                  int
	startTicks               uint64 // since boot; tells two users of one pid apart

	ticks, childTicks   int64 // of CPU, in hundredths of a second; of children that were waited for
	faults, childFaults int64 // pages that had to be read from storage
	resident            int64 // pages in memory
}

// gone reports whether only the exit status is left of the process. A main thread can be a zombie
// while other threads still run (and still hold GPU memory): that is not gone.
func (s procStat) gone() bool {
	return s.state == 'X' || s.state == 'x' || s.state == 'Z' && s.threads <= 1
}

func (s procStat) String() string {
	return fmt.Sprintf("%d (%s, state %c)", s.pid, s.comm, s.state)
}

// parseStat reads one line of /proc/PID/stat. The command name stands in parentheses and may hold
// spaces and parentheses itself, so the fields are counted after the last ')'.
func parseStat(b []byte) (procStat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return procStat{}, fmt.Errorf("no command name in %q", b)
	}
	s := procStat{comm: string(b[open+1 : end])}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return procStat{}, fmt.Errorf("%d fields after the command name in %q", len(f), b)
	}
	s.state = f[0][0]
	ints := []struct {
		to   *int
		text string
	}{
		{&s.pid, string(bytes.TrimSpace(b[:open]))},
		{&s.ppid, f[1]},
		{&s.pgrp, f[2]},
		{&s.session, f[3]},
		{&s.threads, f[17]},
	}
	s.faults, s.childFaults = total(f[9]), total(f[10])
	s.ticks, s.childTicks = total(f[11], f[12]), total(f[13], f[14])
	if len(f) > 21 {
		s.resident = total(f[21])
	}
	for _, x := range ints {
		n, err := strconv.Atoi(x.text)
		if err != nil {
			return procStat{}, fmt.Errorf("field %q: %w", x.text, err)
		}
		*x.to = n
	}
	var err1, err2 error
	s.flags, err1 = strconv.ParseUint(f[6], 10, 64)
	s.startTicks, err2 = strconv.ParseUint(f[19], 10, 64)
	return s, errors.Join(err1, err2)
}

// total adds up counters; one that cannot be read, which no kernel writes, is 0.
func total(counters ...string) int64 {
	var sum int64
	for _, text := range counters {
		n, _ := strconv.ParseInt(text, 10, 64)
		sum += n
	}
	return sum
}

func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(b)
}

// scan reads the stat of every process. Those that end meanwhile are left out.
func scan() (map[int]procStat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make(map[int]procStat, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			all[pid] = s
		}
	}
	return all, nil
}

// lineage is this process and its ancestors: never found, never signalled, whatever they carry.
func lineage(all map[int]procStat) map[int]bool {
	line := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !line[pid]; pid = all[pid].ppid {
		line[pid] = true
	}
	return line
}

// readEnviron returns the environment the process was started with; nil when it cannot be read
// (another user's, or ended). Right after exec both its environment and its arguments read as
// empty for a moment; such a process is asked again.
func readEnviron(ctx context.Context, pid int) []byte {
	for range 50 {
		env, err := os.ReadFile(procPath(pid, "environ"))
		if err != nil || len(env) > 0 {
			return env
		}
		if cmd, err := os.ReadFile(procPath(pid, "cmdline")); err != nil || len(cmd) > 0 {
			return nil
		}
		if s, err := readStat(pid); err != nil || s.gone() || !pause(ctx, time.Millisecond) {
			return nil
		}
	}
	return nil
}

// envValue finds a variable in NUL-separated NAME=VALUE pairs.
func envValue(environ []byte, name string) (string, bool) {
	for pair := range bytes.SplitSeq(environ, []byte{0}) {
		if v, ok := bytes.CutPrefix(pair, []byte(name+"=")); ok {
			return string(v), true
		}
	}
	return "", false
}

// erased reports whether a process has overwritten its environment block, as Python's setproctitle
// does to get room for a long title.
func erased(environ []byte) bool {
	return len(environ) > 0 && !bytes.ContainsRune(environ, '=')
}

func readArgv(pid int) []string {
	b, err := os.ReadFile(procPath(pid, "cmdline"))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// BootIDEnv is an environment variable that names the file of the boot id, in place of the kernel's: a test has a machine
// start anew by writing another one into it.
const BootIDEnv = "SGTUNE_BOOT_ID_FILE"

// bootID is the kernel's name for this start of the machine, read from file; "" = that of BootIDEnv, or the kernel's.
func bootID(file string) (string, error) {
	if file == "" {
		file = os.Getenv(BootIDEnv)
	}
	if file == "" {
		file = "/proc/sys/kernel/random/boot_id"
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func procPath(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

// pause waits d of real time; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
