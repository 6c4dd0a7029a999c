package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Container has a command run in a container of its own. The runtime's command line is what Docker and Podman have in
// common: run, wait, logs, inspect, stop, kill, rm and ps.
type Container struct {
	Runtime string   `json:"runtime"` // docker or podman: a program's name or path
	Image   string   `json:"image"`   // must be on the machine already: nothing is pulled while a trial runs
	Args    []string `json:"args,omitempty"`
}

const (
	containerLabel  = "sgtune.trial" // its value is the marker
	containerPrefix = "sgtune-"      // of the name, the marker follows
)

// ServiceLabel is the label of a container that stays after a study (Container.ServiceWords); its value is the study.
const ServiceLabel = "sgtune.served"

func containerName(marker string) string { return containerPrefix + marker }

// runWords is the whole command line that makes and starts the container of c, and what its own environment needs
// beside the runtime's. Our words come after the user's, so that they win. A variable's value is handed over in the
// environment, where nobody else can read it, unless it would mean something to the runtime itself.
func runWords(c Command) (argv, env []string) {
	argv = []string{c.Container.Runtime, "run", "-d"}
	if !hasFlag(c.Container.Args, "--oom-score-adj") { // the kernel's first victims, like all of a guarded trial
		argv = append(argv, "--oom-score-adj", strconv.Itoa(victimScore))
	}
	argv = append(argv, commonWords(*c.Container)...)
	argv = append(argv, "--name", containerName(c.Marker), "--label", containerLabel+"="+c.Marker)
	more, env := envWords(c.Env)
	argv = append(argv, more...)
	// As on a Local: setproctitle must not overwrite the environment and the marker with it.
	argv = append(argv, "-e", MarkerEnv+"="+c.Marker, "-e", "SPT_NOENV=1")
	if c.Dir != "" {
		argv = append(argv, "-w", c.Dir)
	}
	return append(append(argv, c.Container.Image), c.Argv...), env
}

// commonWords are the words of run that every container of ours has: the user's, the machine's own network (the port
// is chosen there, and no proxy stands between the load and the server), and no pull.
func commonWords(c Container) []string {
	var words []string
	if !hasFlag(c.Args, "--pull") {
		words = append(words, "--pull", "never")
	}
	if !hasFlag(c.Args, "--network") && !hasFlag(c.Args, "--net") {
		words = append(words, "--network", "host")
	}
	return append(words, c.Args...)
}

func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(w string) bool { return w == name || strings.HasPrefix(w, name+"=") })
}

// runtimeOwn are the beginnings of names that a runtime's program itself heeds.
var runtimeOwn = []string{
	"PATH", "HOME", "TMPDIR", "LD_", "DOCKER_", "CONTAINER", "STORAGE_", "REGISTR", "XDG_", "HTTP", "http", "NO_PROXY", "no_proxy", "GO", "BUILDAH", "PODMAN", "_CONTAINERS",
}

// envWords names variables for run. The values of env stand in the runtime's own environment.
func envWords(vars map[string]string) (argv, env []string) {
	names := make([]string, 0, len(vars))
	for name := range vars {
		if name != MarkerEnv {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.ContainsFunc(runtimeOwn, func(own string) bool { return strings.HasPrefix(name, own) }) {
			argv = append(argv, "-e", name+"="+vars[name])
			continue
		}
		argv, env = append(argv, "-e", name), append(env, name+"="+vars[name])
	}
	return argv, env
}

// AskWords is a command line that runs argv in a container that is removed at its end, for questions to the program of an
// image; name is the container's. What env returns belongs into the environment of that command.
func (c Container) AskWords(name string, argv []string, vars map[string]string) (words []string, env map[string]string) {
	more, pairs := envWords(vars)
	words = slices.Concat([]string{c.Runtime, "run", "--rm", "--name", name}, commonWords(c), more, []string{c.Image}, argv)
	return words, pairMap(pairs)
}

// ServiceWords is a command line that starts argv as a service which the runtime keeps running, also after a restart of
// the machine where the runtime itself is started with it. The container has a fixed name per study and no marker of a trial.
func (c Container) ServiceWords(study string, argv []string, vars map[string]string) (words []string, env map[string]string) {
	more, pairs := envWords(vars)
	words = slices.Concat([]string{c.Runtime, "run", "-d", "--restart", "unless-stopped"}, commonWords(c),
		[]string{"--name", ServiceName(study), "--label", ServiceLabel + "=" + study}, more, []string{c.Image}, argv)
	return words, pairMap(pairs)
}

// ServiceName is the name of the container that stays after a study.
func ServiceName(study string) string { return "sgtune-served-" + study }

func pairMap(pairs []string) map[string]string {
	env := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// containerState is what inspect tells of a container; Docker and Podman spell it alike.
type containerState struct {
	Status     string // created, running, paused, restarting, stopping, stopped, exited, dead, removing
	OOMKilled  bool
	PID        int `json:"Pid"` // of its main process on this machine, 0 when none runs
	ExitCode   int
	Error      string
	FinishedAt time.Time
}

// over reports whether its main process has ended.
func (s containerState) over() bool {
	switch s.Status {
	case "exited", "dead", "stopped", "removing":
		return true
	}
	return false
}

// unborn reports whether it was made and never ran.
func (s containerState) unborn() bool {
	switch s.Status {
	case "created", "configured", "initialized":
		return true
	}
	return false
}

// exit is how its main process ended. Runtimes tell a death by signal N as status 128 + N.
func (s containerState) exit(now time.Time) Exit {
	e := Exit{Code: s.ExitCode, OOMKilled: s.OOMKilled, At: s.FinishedAt, Known: true}
	if e.At.Year() < 2000 { // it never ran
		e.At = now
	}
	if signal := s.ExitCode - 128; signal > 0 && signal < 32 {
		e.Code, e.Signal = -1, signal
	}
	return e
}

// Limits of one word to a runtime, real time. A busy machine with a big image takes its time to remove a container.
const (
	askLimit    = 30 * time.Second
	removeLimit = 2 * time.Minute
)

// runtimeCommand is a command of the runtime. Its own helpers must not carry a trial's marker: they would be swept
// away before they have noted how the container ended.
func runtimeCommand(ctx context.Context, argv, env []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, MarkerEnv+"=") || strings.HasPrefix(pair, simulatedEnv+"=") || strings.HasPrefix(pair, "SPT_NOENV=")
	})
	cmd.Env = append(cmd.Env, env...)
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// tell runs a short command of the runtime and returns what it printed. apart has it run in a session of its own, so
// that a Ctrl-C meant for sgtune does not end it half-way.
func tell(ctx context.Context, limit time.Duration, apart bool, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer after %s", limit))
	defer cancel()
	cmd := runtimeCommand(ctx, argv, nil)
	if apart {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), fmt.Errorf("%s %s: %w%s", argv[0], argv[1], err, lastWords(words.Bytes()))
}

// lastWords is the end of what a program complained, ready to stand behind an error.
func lastWords(b []byte) string {
	text := strings.TrimSpace(string(b[max(0, len(b)-1000):]))
	if text == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
}

// look asks for the container with the label of the marker: whether it is there, and how it is.
func (c *contained) look(ctx context.Context) (state containerState, there bool, err error) {
	list, err := c.tell(ctx, askLimit, "ps", "-a", "--filter", "label="+containerLabel+"="+c.spec.Marker, "--format", "{{.ID}}")
	if err != nil || strings.TrimSpace(list) == "" {
		return state, false, err
	}
	text, err := c.tell(ctx, askLimit, "inspect", "--format", "{{json .State}}", strings.Fields(list)[0])
	if err != nil {
		return state, true, err
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil || state.Status == "" {
		return state, true, fmt.Errorf("%s inspect: not understood: %.200q: %w", c.spec.Runtime, text, err)
	}
	return state, true, nil
}
