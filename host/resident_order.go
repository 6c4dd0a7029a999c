package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The folder of a resident, readable by its owner alone:
//
//	order             what is to be kept running (residentOrder)
//	keeper            the keeper's own program: the one it came from may be replaced or removed
//	lock              locked by the keeper as long as it lives
//	state             who runs, since when, how the last one ended (residentState)
//	server.log        what the server wrote, secrets masked; server.log.1 is the part before
//	trouble           what the keeper had to complain about

// residentOrder is the file order. The environment is whole: a unit of systemd inherits nothing from who asked for it.
type residentOrder struct {
	Path    string   `json:"path"`
	Argv    [][]byte `json:"argv"`
	Env     [][]byte `json:"env"`
	Dir     []byte   `json:"dir,omitempty"`
	Port    int      `json:"port"`
	Secrets []string `json:"secrets,omitempty"`
	Unit    string   `json:"unit,omitempty"`
	OwnUnit bool     `json:"own_unit,omitempty"`
	NoUnit  string   `json:"no_unit,omitempty"`
}

// residentState is the file state.
type residentState struct {
	Keeper  ID        `json:"keeper"`
	Server  ID        `json:"server"`
	Starts  int       `json:"starts"`
	Since   time.Time `json:"since"`
	Ended   string    `json:"ended,omitempty"`
	Stopped bool      `json:"stopped,omitempty"`
}

// writeOrder makes the folder anew; the log of an earlier server of the name stays as the older part.
func (l *Local) writeOrder(f runFolder, s ResidentSpec) error {
	if len(s.Command.Argv) == 0 || s.Command.Argv[0] == "" {
		return errors.New("no command given")
	}
	command := s.Command
	command.Marker = ""
	cmd, err := l.command(command)
	if err != nil {
		return fmt.Errorf("start %s: %w", command.Argv[0], err)
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	for _, old := range []string{"state", "trouble", "keeper"} {
		if err := os.Remove(f.path(old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if f.has(residentLogName) {
		if err := os.Rename(f.path(residentLogName), f.path(residentLogName+".1")); err != nil {
			return err
		}
	}
	// SPT_NOENV as for a trial: setproctitle would wipe the mark out.
	o := residentOrder{Path: cmd.Path, Dir: []byte(cmd.Dir), Port: s.Port, Secrets: s.Secrets}
	for _, word := range cmd.Args {
		o.Argv = append(o.Argv, []byte(word))
	}
	for _, pair := range append(cmd.Env, ServerEnv+"="+string(f), "SPT_NOENV=1") {
		o.Env = append(o.Env, []byte(pair))
	}
	if err := f.write("order", o); err != nil {
		return err
	}
	return keepProgram(s.Keeper, f.path("keeper"))
}

// keepProgram puts the keeper's program beside what it keeps: a link where that can be made, else a copy.
func keepProgram(argv []string, to string) error {
	if len(argv) == 0 {
		return errors.New("no keeper given")
	}
	if real, err := filepath.EvalSymlinks(argv[0]); err == nil && os.Link(real, to) == nil {
		return nil
	}
	from, err := os.Open(argv[0])
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // opened for reading
	copied, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, from)
	return errors.Join(err, copied.Close())
}

// startKeeper has systemd run the keeper where it may, so that no logout reaches it; else the keeper gets a session of
// its own.
func (l *Local) startKeeper(ctx context.Context, f runFolder, keeper []string, units systemd) error {
	words := slices.Concat([]string{f.path("keeper")}, keeper[1:], []string{string(f)})
	var order residentOrder
	if err := f.read("order", &order); err != nil {
		return err
	}
	if l.simulated == "" {
		why := units.unusable()
		for _, kind := range units.kinds() {
			order.Unit, order.OwnUnit = unitName(f.key()), kind.own
			if err := f.write("order", order); err != nil {
				return err
			}
			err := units.start(ctx, kind, order.Unit, words)
			if err == nil {
				if err = l.begun(ctx, f); err == nil {
					return nil
				}
				units.stop(context.WithoutCancel(ctx), kind, order.Unit)
			}
			if ctx.Err() != nil {
				return err
			}
			why = err.Error()
		}
		order.NoUnit = why
	}
	order.Unit, order.OwnUnit = "", false
	if err := f.write("order", order); err != nil {
		return err
	}
	return l.startSession(ctx, f, words)
}

// startSession starts the keeper in a session of its own.
func (l *Local) startSession(ctx context.Context, f runFolder, words []string) error {
	trouble, err := os.OpenFile(f.path("trouble"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = trouble.Close() }() // the keeper has its own
	env := slices.DeleteFunc(probeEnv(), func(pair string) bool { return strings.HasPrefix(pair, ServerEnv+"=") })
	cmd := &exec.Cmd{Path: words[0], Args: words, Env: env, Dir: "/", Stderr: trouble, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run the keeper: %w", err)
	}
	go func() { _ = cmd.Wait() }() // collects it; ends with it, or with us
	return l.begun(ctx, f)
}

// begun waits until the keeper says that it is there.
func (l *Local) begun(ctx context.Context, f runFolder) error {
	limit, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("no sign of life within %s: %s", startTime, lastOf(f.path("trouble"))))
	defer cancel()
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		var s residentState
		if f.read("state", &s) == nil && s.Starts > 0 {
			return nil
		}
		if !pause(limit, wait) {
			return fmt.Errorf("wait for the keeper: %w", context.Cause(limit))
		}
	}
}
