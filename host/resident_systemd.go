package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// systemdTime bounds one call of systemd's programs.
const systemdTime = 20 * time.Second

// systemd is what this machine's systemd lets us do. The keeper becomes a transient unit: nothing is written to disk for
// it, and nothing of it is left after a restart of the machine.
type systemd struct {
	booted bool   // the machine runs it
	root   bool   // we may start units of the system
	linger bool   // our own units outlive our logout
	user   string // our name, for advice
	path   string // folder of systemd's programs, "" = PATH
}

// thisSystemd looks what this process may.
func thisSystemd() systemd {
	s := systemd{root: os.Geteuid() == 0}
	if info, err := os.Lstat("/run/systemd/system"); err != nil || !info.IsDir() { // as sd_booted(3) does
		return s
	}
	if _, err := exec.LookPath("systemd-run"); err != nil {
		return s
	}
	s.booted = true
	if me, err := user.Current(); err == nil {
		s.user = me.Username
		_, err := os.Stat(filepath.Join("/var/lib/systemd/linger", filepath.Base(me.Username)))
		s.linger = err == nil
	}
	return s
}

// unitKind is whose unit the keeper becomes.
type unitKind struct{ own bool }

// kinds are the kinds of units that outlive us, the best first.
func (s systemd) kinds() []unitKind {
	var list []unitKind
	if s.booted && s.root {
		list = append(list, unitKind{})
	}
	if s.booted && s.linger {
		list = append(list, unitKind{own: true})
	}
	return list
}

// unusable says why there is no unit, "" where there is no systemd.
func (s systemd) unusable() string {
	if !s.booted || len(s.kinds()) > 0 {
		return ""
	}
	return fmt.Sprintf("%s may start no unit that outlives a logout; \"loginctl enable-linger %[1]s\" changes that", s.user)
}

func unitName(name string) string { return "sgtune-" + name + ".service" }

// start has systemd run words. A keeper that fails is started again; one that was told to end is not.
func (s systemd) start(ctx context.Context, kind unitKind, unit string, words []string) error {
	argv := []string{
		"--unit=" + unit, "--collect", "--quiet", "--description=SGLang server left running by sgtune",
		"--property=Restart=on-failure", "--property=RestartSec=2", "--property=KillMode=mixed", "--property=OOMPolicy=continue",
		"--property=TasksMax=infinity", "--property=TimeoutStopSec=" + strconv.Itoa(int(dismissTime.Seconds())),
	}
	argv = append(argv, limitProperties()...)
	return s.call(ctx, kind, "systemd-run", slices.Concat(argv, []string{"--"}, words))
}

// stop takes a unit back that did not come up. It is a tidying: what comes next does without the unit.
func (s systemd) stop(ctx context.Context, kind unitKind, unit string) {
	_ = s.call(ctx, kind, "systemctl", []string{"stop", unit})
}

func (s systemd) call(ctx context.Context, kind unitKind, program string, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, systemdTime)
	defer cancel()
	if kind.own {
		argv = append([]string{"--user"}, argv...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.path, program), argv...)
	cmd.Env = probeEnv()
	if kind.own && os.Getenv("XDG_RUNTIME_DIR") == "" { // a session that pam did not open
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR=/run/user/"+strconv.Itoa(os.Getuid()))
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = errors.New("no answer in time")
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.Join(strings.Fields(string(out[:min(len(out), 300)])), " "))
	}
	return nil
}

// limitProperties give the unit the limits that this process has and its trials had: systemd's own are others.
func limitProperties() []string {
	var list []string
	for _, limit := range []struct {
		name string
		kind int
	}{{"NOFILE", unix.RLIMIT_NOFILE}, {"MEMLOCK", unix.RLIMIT_MEMLOCK}, {"NPROC", unix.RLIMIT_NPROC}, {"STACK", unix.RLIMIT_STACK}, {"CORE", unix.RLIMIT_CORE}} {
		var r unix.Rlimit
		if unix.Getrlimit(limit.kind, &r) == nil {
			list = append(list, fmt.Sprintf("--property=Limit%s=%s:%s", limit.name, limitText(r.Cur), limitText(r.Max)))
		}
	}
	return list
}

func limitText(n uint64) string {
	if n == ^uint64(0) { // RLIM_INFINITY
		return "infinity"
	}
	return strconv.FormatUint(n, 10)
}
