package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

// defaultPort is where SGLang listens when nobody says otherwise.
const defaultPort = 30000

// mostDeaths is how often the server launched at the end may die before it was ever ready.
const mostDeaths = 3

// finishPoll is real time between two looks at a server that is coming up.
const finishPoll = 500 * time.Millisecond

var errNotUp = errors.New("did not come up")

// finish is the launch of the server that stays.
type finish struct {
	*loopHost
	settler
	spec   host.ResidentSpec
	target benchmark.Target
}

// Launch implements tuner.Host: the server that stays after the study carries no trial marker, and a keeper starts it
// again when it dies. It is done when one real token came. What runs already, from a sgtune that was killed at this very
// step, is not started twice.
func (h *loopHost) Launch(ctx context.Context, c sglang.Config) (string, error) {
	s, ok := h.place.host.(settler)
	if !ok || h.place.slurm != nil {
		return "", fmt.Errorf("on %s no server can be left running", h.place.name)
	}
	f := &finish{loopHost: h, settler: s}
	if err := f.prepare(c); err != nil {
		return "", err
	}
	begun := h.place.clock.Now()
	r, err := f.settle(ctx)
	if err != nil {
		return "", err
	}
	f.target, err = f.reach(ctx, c)
	if err == nil {
		r, err = f.awaitToken(ctx, r)
	}
	if err != nil {
		return "", f.failed(r, err)
	}
	return fmt.Sprintf("pid %d on port %d, ready: one token came after %s: %s; %s", r.Server.PID, r.Port,
		short(h.place.clock.Now().Sub(begun)), f.shown(), f.care(r)), nil
}

// prepare makes the command line: the user's own, without what trials add.
func (f *finish) prepare(c sglang.Config) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find sgtune's own program: %w", err)
	}
	port := f.study.Port
	if port == 0 {
		port = defaultPort
	}
	argv, placed := f.server.Argv(c), f.study.Port == 0
	for i, word := range argv {
		if strings.Contains(word, "{port}") {
			argv[i], placed = strings.ReplaceAll(word, "{port}", strconv.Itoa(port)), true
		}
	}
	if !placed {
		argv = append(argv, "--port", strconv.Itoa(port))
	}
	f.spec = host.ResidentSpec{
		Name: f.study.Name, Command: host.Command{Argv: argv, Env: f.server.Environ(c)}, Port: port, Secrets: f.place.secrets, Keeper: []string{self, "stay"},
	}
	return nil
}

// settle starts the server, unless it runs already or its port is somebody else's.
func (f *finish) settle(ctx context.Context) (host.Resident, error) {
	list, err := f.Residents(ctx)
	if err != nil {
		return host.Resident{}, err
	}
	if !slices.ContainsFunc(list, func(r host.Resident) bool { return r.Name == f.spec.Name }) {
		end, err := f.place.host.Reach(ctx, f.spec.Port)
		if err != nil {
			return host.Resident{}, err
		}
		if end.Listening { // its answers would be taken for those of the server started here
			return host.Resident{}, fmt.Errorf("port %d is held by another process (pid %v), nothing was started", f.spec.Port, end.Owners)
		}
	}
	return f.Settle(ctx, f.spec)
}

// reach is the way to the server.
func (f *finish) reach(ctx context.Context, c sglang.Config) (benchmark.Target, error) {
	end, err := f.place.host.Reach(ctx, f.spec.Port)
	if err != nil {
		return benchmark.Target{}, err
	}
	return trial.ServerTarget(end, f.server, c), nil
}

// awaitToken waits until the server gives a token, within the study's ready_timeout.
func (f *finish) awaitToken(ctx context.Context, r host.Resident) (host.Resident, error) {
	before := r.Starts
	limit := f.place.clock.After(f.study.ReadyTimeout)
	for {
		err := f.token(ctx)
		list, told := f.Residents(ctx)
		i := slices.IndexFunc(list, func(one host.Resident) bool { return one.Name == f.spec.Name })
		switch {
		case told != nil:
			return r, told
		case i < 0:
			return r, fmt.Errorf("%w: somebody stopped it", errNotUp)
		}
		r = list[i]
		if died := r.Starts - before; err == nil && died == 0 || err == nil && r.Server.PID > 0 {
			return r, f.ours(ctx, r)
		} else if died >= mostDeaths || died == mostDeaths-1 && r.Server.PID == 0 {
			return r, f.giveUp(ctx, r)
		}
		select {
		case <-limit:
			return r, fmt.Errorf("%w within %s; it is still starting, and %s", errNotUp, short(f.study.ReadyTimeout), f.care(r))
		case <-ctx.Done():
			return r, fmt.Errorf("%w in the time there was (%w); it is still starting, and %s", errNotUp, context.Cause(ctx), f.care(r))
		case <-time.After(finishPoll):
		}
	}
}

// token asks for one, once the server says that it is there.
func (f *finish) token(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	status, err := f.target.HealthAt(ctx, sglang.HealthGenerate) // before 0.5.2 /health answers 200 while the weights load
	if err == nil && status != 200 {
		err = fmt.Errorf("%s answered %d", sglang.HealthGenerate, status)
	}
	if err != nil {
		return err
	}
	return f.target.OneToken(ctx)
}

// ours makes sure that the token came from the server that was launched, where that can be read.
func (f *finish) ours(ctx context.Context, r host.Resident) error {
	end, err := f.place.host.Reach(ctx, f.spec.Port)
	if err != nil {
		return err
	}
	if len(end.Owners) > 0 && !slices.ContainsFunc(end.Owners, func(pid int) bool { return slices.Contains(r.PIDs, pid) }) {
		return fmt.Errorf("port %d is answered by another process (pid %v); %s", f.spec.Port, end.Owners, f.care(r))
	}
	return nil
}

// giveUp ends a server that dies over and over before it is ready.
func (f *finish) giveUp(ctx context.Context, r host.Resident) error {
	err := fmt.Errorf("%w: it died %s, last with %s; it was given up", errNotUp, count(mostDeaths, "time"), r.Ended)
	if last := lastLine(r.Tail); last != "" {
		err = fmt.Errorf("%w; its last words: %s", err, maskText(last, f.place.secrets))
	}
	if left := f.Dismiss(context.WithoutCancel(ctx), r.Name); left != nil {
		err = fmt.Errorf("%w, but %w", err, left)
	}
	return err
}

func (f *finish) failed(r host.Resident, err error) error {
	return fmt.Errorf("%s: %w; its log is %s", f.shown(), err, f.logOf(r))
}

// lastLine is the last line of a log that the server wrote itself.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, host.KeeperSays) {
			return line
		}
	}
	return ""
}

func (f *finish) shown() string {
	return maskText(strings.Join(f.spec.Command.Argv, " "), f.place.secrets)
}

// care says who keeps the server running, how to stop it, and where its log is.
func (f *finish) care(r host.Resident) string {
	who := fmt.Sprintf("a keeper (pid %d)", r.Keeper.PID)
	if r.Unit != "" {
		who = "systemd's unit " + r.Unit
	}
	text := fmt.Sprintf("%s starts it again when it dies, until the machine is restarted; to stop it: %s; log: %s", who, f.place.machine(f.study)(r.Stop()), f.logOf(r))
	if r.NoUnit != "" {
		text += "; it is no unit of systemd, because " + r.NoUnit
	}
	return text
}

func (f *finish) logOf(r host.Resident) string {
	if f.place.remote != nil {
		return f.study.Host.Address + ":" + r.Log
	}
	return r.Log
}
