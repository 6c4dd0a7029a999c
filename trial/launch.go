package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sgtune/host"
	"sgtune/sglang"
)

// Ends of a trial before a server of ours lives.
var (
	errPortTaken  = errors.New("the port is taken")
	errNotStarted = errors.New("the server could not be started")
	errHostLost   = errors.New("the host could not be read")
)

// admit takes what the launch will be compared with (memory in use, kill counters) and refuses GPUs that
// are not fit and a taken port. Nothing on the host has changed when it returns.
func (a *attempt) admit(ctx context.Context) error {
	if a.unsettled != nil {
		return fmt.Errorf("%w: %w", errHostLost, a.unsettled)
	}
	usage, err := a.Host.Usage(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errHostLost, err)
	}
	a.baseline = &usage
	if err := errors.Join(a.refuse(usage), a.refuseLittleMemory(usage)); err != nil {
		return err
	}
	for _, g := range usage.GPUs {
		a.t.GPUBaseline = append(a.t.GPUBaseline, g.Used)
	}
	end, err := a.Host.Reach(ctx, a.port())
	if err != nil {
		return fmt.Errorf("%w: %w", errHostLost, err)
	}
	if end.Listening {
		a.t.Port, a.holder = end.Port, holders(end.Owners)
		return fmt.Errorf("%w: port %d is held by %s", errPortTaken, end.Port, a.holder)
	}
	a.t.Port = end.Port
	a.target = ServerTarget(end, a.Server, a.t.Config)
	a.t.Marker = marker(a.t)
	return nil
}

// port is the port the user fixed, 0 for none.
func (a *attempt) port() int {
	if p, ok := a.Server.Flags.Float("port"); ok && a.Port == 0 {
		return int(p)
	}
	return a.Port
}

// marker is the value of host.MarkerEnv of a trial: STUDY.NUMBER.CREATED. It is unique also when a
// database is thrown away and a study of the same name begins again.
func marker(t *Trial) string {
	return fmt.Sprintf("%s.%d.%d", t.Study, t.Number, t.CreatedAt.UnixNano())
}

// studyOf returns the study a marker belongs to, "" when it is no marker of ours.
func studyOf(marker string) string {
	parts := strings.Split(marker, ".")
	if len(parts) < 3 {
		return ""
	}
	for _, number := range parts[len(parts)-2:] {
		if _, err := strconv.ParseInt(number, 10, 64); err != nil {
			return ""
		}
	}
	return strings.Join(parts[:len(parts)-2], ".")
}

func holders(pids []int) string {
	if len(pids) == 0 {
		return "a process that cannot be seen from here"
	}
	words := make([]string, len(pids))
	for i, pid := range pids {
		words[i] = "pid " + strconv.Itoa(pid)
	}
	return strings.Join(words, ", ")
}

// launch starts the server and stores its identity at once. The marker was stored before this step
// began, so a crash of sgtune at any instant leaves nothing that Recover cannot find.
func (a *attempt) launch(ctx context.Context) error {
	if err := os.MkdirAll(a.dir(), 0o700); err != nil {
		a.find("evidence_incomplete", "the evidence folder could not be made: "+err.Error())
	}
	raw, err := a.rawLog()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotStarted, err)
	}
	argv := a.argv()
	a.t.Argv = a.maskArgv(argv)
	a.t.StartedAt = a.Clock.Now()
	a.launched, a.started = a.t.StartedAt, true
	a.process, err = a.Host.Start(ctx, host.Command{
		Argv: argv, Env: a.environ(), LogPath: raw, Marker: a.t.Marker, Guard: a.guardLimits(), Container: container(a.Server.Container),
	})
	if err != nil {
		a.process = nil
		return fmt.Errorf("%w: %w", errNotStarted, err)
	}
	a.watchedFrom = a.Clock.Now()
	a.t.Process = a.process.ID()
	a.t.Process.Argv = a.t.Argv
	if err := a.save(ctx); err != nil {
		return err
	}
	a.startWatch(ctx)
	return nil
}

// container is a study's container as its host knows it.
func container(c *sglang.Container) *host.Container {
	if c == nil {
		return nil
	}
	return &host.Container{Runtime: c.Runtime, Image: c.Image, Args: c.Args}
}

// argv is the command line of this launch: the configuration, our address and the instruments.
// {port} in the user's command stands for the port.
func (a *attempt) argv() []string {
	argv := a.Server.Argv(a.t.Config)
	port, placed := strconv.Itoa(a.t.Port), false
	for i, word := range argv {
		if strings.Contains(word, "{port}") {
			argv[i], placed = strings.ReplaceAll(word, "{port}", port), true
		}
	}
	has := func(flag string) bool {
		return slices.ContainsFunc(argv, func(w string) bool { return w == flag || strings.HasPrefix(w, flag+"=") })
	}
	if !has("--host") {
		argv = append(argv, "--host", "127.0.0.1")
	}
	if !placed && !has("--port") {
		argv = append(argv, "--port", port)
	}
	return append(argv, a.Instruments...)
}

func (a *attempt) environ() map[string]string {
	env := maps.Clone(a.InstrumentEnv)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, a.Server.Environ(a.t.Config))
	return env
}

// maskArgv replaces secrets. A flag and its value are two words, so each word is looked at together
// with the one before it.
func (a *attempt) maskArgv(argv []string) []string {
	out := make([]string, len(argv))
	for i, word := range argv {
		word = a.hidden(word)
		out[i] = word
		if i > 0 && strings.HasPrefix(argv[i-1], "-") && !strings.Contains(argv[i-1], " ") {
			both := argv[i-1] + " " + word
			if masked := sglang.Mask(both); masked != both && strings.HasPrefix(masked, argv[i-1]+" ") {
				out[i] = strings.TrimPrefix(masked, argv[i-1]+" ")
			}
		}
	}
	return out
}

// rawLog makes the private folder where the server writes its log as it is. The watch copies it,
// masked, into the evidence; the raw one is removed when the server is gone.
func (a *attempt) rawLog() (string, error) {
	dir := scratch(a.Scratch, a.t.Marker)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("private folder for the server's log: %w", err)
	}
	return rawLog(dir), nil
}

// rawLog is the unmasked log in the private folder of a launch.
func rawLog(dir string) string { return filepath.Join(dir, "server.log") }

// scratch is the private folder of one launch; its name follows from the marker, so that Recover
// can remove it.
func scratch(parent, marker string) string {
	if parent == "" {
		parent = os.TempDir()
	}
	return filepath.Join(parent, "sgtune-"+marker)
}

// sinceLaunch is host time since the launch, 0 before it.
func (a *attempt) sinceLaunch() time.Duration {
	if a.launched.IsZero() {
		return 0
	}
	return a.Clock.Now().Sub(a.launched)
}
