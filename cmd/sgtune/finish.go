package main

import (
	"cmp"
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
	steward
	argv   []string
	env    map[string]string
	port   int
	target benchmark.Target
}

// steward is who starts the server again when it dies.
type steward interface {
	// begin starts the server, or finds it when it runs already with the same words.
	begin(ctx context.Context) (host.Resident, error)
	// look tells how it is; false when it is not there any more.
	look(ctx context.Context) (host.Resident, bool, error)
	// end ends it for good.
	end(ctx context.Context) error
	// words say who the steward is and where the log is.
	words(r host.Resident) (who, log string)
}

// Launch implements tuner.Host: the server that stays after the study carries no trial marker, and is started again when
// it dies. It is done when one real token came. What runs already, from a sgtune that was killed at this very step, is
// not started twice.
func (h *loopHost) Launch(ctx context.Context, c sglang.Config) (string, error) {
	s, ok := h.place.host.(settler)
	if !ok || h.place.slurm != nil {
		return "", fmt.Errorf("on %s no server can be left running", h.place.name)
	}
	f := &finish{loopHost: h}
	f.prepare(c)
	var err error
	if f.steward, err = f.newSteward(s); err != nil {
		return "", err
	}
	begun := h.place.clock.Now()
	r, err := f.start(ctx)
	if err != nil {
		return "", err
	}
	f.target, err = f.reach(ctx, c)
	if err == nil {
		r, err = f.awaitToken(ctx, r)
	}
	if err != nil {
		_, log := f.words(r)
		return "", fmt.Errorf("%s: %w; its log: %s", f.shown(), err, log)
	}
	return fmt.Sprintf("pid %d on port %d, ready: one token came after %s: %s; %s", r.Server.PID, f.port,
		short(h.place.clock.Now().Sub(begun)), f.shown(), f.care(r)), nil
}

// prepare makes the command line: the user's own, without what trials add.
func (f *finish) prepare(c sglang.Config) {
	f.port = f.study.Port
	if f.port == 0 {
		f.port = defaultPort
	}
	argv, placed := f.server.Argv(c), f.study.Port == 0
	for i, word := range argv {
		if strings.Contains(word, "{port}") {
			argv[i], placed = strings.ReplaceAll(word, "{port}", strconv.Itoa(f.port)), true
		}
	}
	if !placed {
		argv = append(argv, "--port", strconv.Itoa(f.port))
	}
	f.argv, f.env = argv, f.server.Environ(c)
}

// newSteward picks who keeps the server: a container's runtime, or a keeper of ours.
func (f *finish) newSteward(s settler) (steward, error) {
	if f.study.Server.Container != nil {
		return &containerSteward{finish: f}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find sgtune's own program: %w", err)
	}
	return &keeperSteward{settler: s, finish: f, spec: host.ResidentSpec{
		Name: f.study.Name, Command: host.Command{Argv: f.argv, Env: f.env}, Port: f.port, Secrets: f.place.secrets, Keeper: []string{self, "stay"},
	}}, nil
}

// start starts the server, unless it runs already or its port is somebody else's.
func (f *finish) start(ctx context.Context) (host.Resident, error) {
	r, there, err := f.look(ctx)
	if err != nil {
		return r, err
	}
	if !there {
		end, err := f.place.host.Reach(ctx, f.port)
		if err != nil {
			return r, err
		}
		if end.Listening { // its answers would be taken for those of the server started here
			return r, fmt.Errorf("port %d is held by another process (pid %v), nothing was started", f.port, end.Owners)
		}
	}
	if there && (!slices.Equal(r.Argv, f.argv) || r.StopBy == "" && !r.Kept) {
		return r, fmt.Errorf("the server that sgtune launched when study %s ended before still runs, with other flags or without its keeper; to stop it: %s",
			f.study.Name, f.place.machine(f.study)(r.Stop()))
	}
	return f.begin(ctx)
}

// reach is the way to the server.
func (f *finish) reach(ctx context.Context, c sglang.Config) (benchmark.Target, error) {
	end, err := f.place.host.Reach(ctx, f.port)
	if err != nil {
		return benchmark.Target{}, err
	}
	return trial.ServerTarget(end, f.server, c), nil
}

// awaitToken waits until the server gives a token, within the study's ready_timeout.
func (f *finish) awaitToken(ctx context.Context, r host.Resident) (host.Resident, error) {
	before, missing := r.Starts, 0
	limit := f.place.clock.After(f.study.ReadyTimeout)
	for {
		err := f.token(ctx)
		now, there, told := f.look(ctx)
		switch {
		case told != nil:
			return r, told
		case there:
			r, missing = now, 0
		case missing < 2: // a runtime may be about to start it again
			missing++
		default:
			return r, fmt.Errorf("%w: somebody stopped it", errNotUp)
		}
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
	end, err := f.place.host.Reach(ctx, f.port)
	if err != nil {
		return err
	}
	if len(end.Owners) > 0 && len(r.PIDs) > 0 && !slices.ContainsFunc(end.Owners, func(pid int) bool { return slices.Contains(r.PIDs, pid) }) {
		return fmt.Errorf("port %d is answered by another process (pid %v); %s", f.port, end.Owners, f.care(r))
	}
	return nil
}

// giveUp ends a server that dies over and over before it is ready.
func (f *finish) giveUp(ctx context.Context, r host.Resident) error {
	err := fmt.Errorf("%w: it died %s, last with %s; it was given up", errNotUp, count(mostDeaths, "time"), cmp.Or(r.Ended, "a status that is not known"))
	if last := lastLine(r.Tail); last != "" {
		err = fmt.Errorf("%w; its last words: %s", err, maskText(last, f.place.secrets))
	}
	if left := f.end(context.WithoutCancel(ctx)); left != nil {
		err = fmt.Errorf("%w, but %w", err, left)
	}
	return err
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
	return maskText(strings.Join(f.argv, " "), f.place.secrets)
}

// care says who keeps the server running, how to stop it, and where its log is.
func (f *finish) care(r host.Resident) string {
	who, log := f.words(r)
	return fmt.Sprintf("%s; to stop it: %s; log: %s", who, f.place.machine(f.study)(r.Stop()), log)
}

// keeperSteward has our own keeper see to the server, as a unit of systemd where that may be.
type keeperSteward struct {
	settler
	*finish
	spec host.ResidentSpec
}

func (k *keeperSteward) begin(ctx context.Context) (host.Resident, error) {
	return k.Settle(ctx, k.spec)
}

func (k *keeperSteward) look(ctx context.Context) (host.Resident, bool, error) {
	list, err := k.Residents(ctx)
	i := slices.IndexFunc(list, func(r host.Resident) bool { return r.Name == k.spec.Name })
	if err != nil || i < 0 {
		return host.Resident{}, false, err
	}
	return list[i], true, nil
}

func (k *keeperSteward) end(ctx context.Context) error { return k.Dismiss(ctx, k.spec.Name) }

func (k *keeperSteward) words(r host.Resident) (who, log string) {
	who = fmt.Sprintf("a keeper (pid %d) starts it again when it dies, until the machine is restarted", r.Keeper.PID)
	if r.Unit != "" {
		who = "systemd's unit " + r.Unit + " starts it again when it dies, until the machine is restarted"
	}
	if r.NoUnit != "" {
		who += "; it is no unit of systemd, because " + r.NoUnit
	}
	log = r.Log
	if k.place.remote != nil {
		log = k.study.Host.Address + ":" + r.Log
	}
	return who, log
}
