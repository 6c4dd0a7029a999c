package hosttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RuntimeDirEnv is the folder of the containers of a fake runtime, for a caller that names it without its folder. The
// test binary, called by a link named docker or podman, is one: its containers are real processes of this machine
// without any isolation, and it knows only what sgtune says to it. What it was told stands in the file "calls" of its
// folder, a JSON list a line.
const RuntimeDirEnv = "SGTUNE_FAKE_RUNTIME"

// Seams of the fake runtime: files in the folder of its containers.
const (
	RuntimeBreak = "break" // "logs -f" ends after so many lines
	RuntimeDelay = "delay" // how long "run" takes
	RuntimeDown  = "down"  // while it is there, nothing is answered
)

// fakeImage tells which programs an image holds: path inside to path on this machine. It is the file of that name in
// the folder of images.
type fakeImage map[string]string

// FakeRuntime makes a folder with a fake docker and podman that knows one image, and returns the folder for PATH and
// the folder of the containers. Programs are those of the image: path inside to path on this machine.
func FakeRuntime(dir, image string, programs map[string]string) (path, containers string, err error) {
	path, containers = filepath.Join(dir, "bin"), filepath.Join(dir, "containers")
	err = errors.Join(os.MkdirAll(path, 0o700), os.MkdirAll(filepath.Join(containers, "images"), 0o700))
	self, notFound := os.Executable()
	err = errors.Join(err, notFound)
	for _, name := range []string{"docker", "podman"} {
		err = errors.Join(err, os.Symlink(self, filepath.Join(path, name)))
	}
	b, bad := json.Marshal(fakeImage(programs))
	return path, containers, errors.Join(err, bad, os.WriteFile(filepath.Join(containers, "images", strings.ReplaceAll(image, "/", "_")), b, 0o600))
}

// IsRuntime reports whether this process was called as a container runtime.
func IsRuntime() bool {
	name := filepath.Base(os.Args[0])
	return (name == "docker" || name == "podman") && runtimeDir() != ""
}

func runtimeDir() string {
	if strings.Contains(os.Args[0], "/") {
		return filepath.Join(filepath.Dir(filepath.Dir(os.Args[0])), "containers")
	}
	return os.Getenv(RuntimeDirEnv)
}

// runtimeFailed is the exit status of docker and podman for their own failures.
const runtimeFailed = 125

// RuntimeMain is the fake runtime's main function.
func RuntimeMain() int {
	args := os.Args[1:]
	if len(args) == 0 {
		return runtimeFailed
	}
	r := fakeRuntime{dir: runtimeDir()}
	if args[0] != "_hold" {
		if err := r.noted(args); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			return runtimeFailed
		}
	}
	do := map[string]func([]string) (int, error){
		"run": r.run, "_hold": r.hold, "logs": r.logs, "wait": r.wait, "inspect": r.inspect, "ps": r.ps, "stop": r.stop, "kill": r.kill, "rm": r.rm, "image": r.image,
	}[args[0]]
	if do == nil {
		fmt.Fprintln(os.Stderr, "unknown command", args[0])
		return runtimeFailed
	}
	status, err := do(args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return max(status, 1)
	}
	return status
}

type fakeRuntime struct{ dir string }

// noted writes down what was said, and what of how the container ended was saved by then.
func (r fakeRuntime) noted(args []string) error {
	if _, err := os.Stat(filepath.Join(r.dir, RuntimeDown)); err == nil {
		return errors.New("cannot connect to the daemon")
	}
	f, err := os.OpenFile(filepath.Join(r.dir, "calls"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(args), f.Close())
}

// seam is the text of one of the seams, "" where it is not set.
func (r fakeRuntime) seam(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(b)
}

// fakeContainer is one container of the fake runtime: a folder named by its id.
type fakeContainer struct {
	dir string

	ID, Name string
	Labels   map[string]string
	Argv     []string
	Env      []string
	Memory   int64
	Keep     bool // without --rm
	Restart  bool // with --restart
}

func (c fakeContainer) file(name string) string { return filepath.Join(c.dir, name) }

func (c fakeContainer) has(name string) bool { _, err := os.Stat(c.file(name)); return err == nil }

func (c fakeContainer) number(name string) int {
	b, err := os.ReadFile(c.file(name))
	n, bad := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || bad != nil {
		return 0
	}
	return n
}

func (c fakeContainer) write(name string, v any) error {
	tmp := c.file("." + name)
	return errors.Join(os.WriteFile(tmp, fmt.Appendln(nil, v), 0o600), os.Rename(tmp, c.file(name)))
}

func (r fakeRuntime) all() []fakeContainer {
	files, _ := filepath.Glob(filepath.Join(r.dir, "c-*", "spec"))
	var list []fakeContainer
	for _, f := range files {
		b, err := os.ReadFile(f)
		c := fakeContainer{dir: filepath.Dir(f)}
		if err == nil && json.Unmarshal(b, &c) == nil {
			list = append(list, c)
		}
	}
	return list
}

func (r fakeRuntime) find(name string) (fakeContainer, error) {
	for _, c := range r.all() {
		if c.Name == name || c.ID == name {
			return c, nil
		}
	}
	return fakeContainer{}, fmt.Errorf("no such container: %s", name)
}

func (r fakeRuntime) image(args []string) (int, error) {
	_, err := r.programs(args[len(args)-1])
	return failed(runtimeFailed, err)
}

// failed is the status of a command that may have failed.
func failed(status int, err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	return status, err
}

func (r fakeRuntime) programs(image string) (fakeImage, error) {
	var programs fakeImage
	b, err := os.ReadFile(filepath.Join(r.dir, "images", strings.ReplaceAll(image, "/", "_")))
	if err != nil {
		return nil, fmt.Errorf("%s: image not known", image)
	}
	return programs, json.Unmarshal(b, &programs)
}

func (r fakeRuntime) inspect(args []string) (int, error) {
	c, err := r.find(args[len(args)-1])
	if err != nil {
		return 1, err
	}
	state := map[string]any{"Status": "created", "OOMKilled": c.has("oom"), "Pid": 0, "ExitCode": 0, "FinishedAt": "0001-01-01T00:00:00Z"}
	switch {
	case c.has("exit"):
		info, _ := os.Stat(c.file("exit"))
		state["Status"], state["ExitCode"], state["FinishedAt"] = "exited", c.number("exit"), info.ModTime().Format(time.RFC3339Nano)
	case c.has("pid"):
		info, _ := os.Stat(c.file("pid"))
		state["Status"], state["Running"], state["Pid"], state["StartedAt"] = "running", true, c.number("pid"), info.ModTime().Format(time.RFC3339Nano)
	}
	if slices.Contains(args, "--format") { // {{json .State}}
		return 0, json.NewEncoder(os.Stdout).Encode(state)
	}
	return 0, json.NewEncoder(os.Stdout).Encode([]any{map[string]any{
		"State": state, "RestartCount": c.number("restarts"), "Config": map[string]any{"Labels": c.Labels, "Cmd": c.Argv},
	}})
}

// ps knows the filters label=NAME, label=NAME=VALUE and name=^NAME$.
func (r fakeRuntime) ps(args []string) (int, error) {
	filter := ""
	if i := slices.Index(args, "--filter"); i >= 0 {
		filter = args[i+1]
	}
	kind, rest, _ := strings.Cut(filter, "=")
	label, value, valued := strings.Cut(rest, "=")
	for _, c := range r.all() {
		has, labelled := c.Labels[label]
		switch {
		case kind == "label" && (!labelled || valued && has != value), kind == "name" && rest != "^"+c.Name+"$":
		case slices.Contains(args, "{{.Names}}"):
			fmt.Println(c.Name)
		default:
			fmt.Println(c.ID)
		}
	}
	return 0, nil
}

func (r fakeRuntime) wait(args []string) (int, error) {
	c, err := r.find(args[0])
	for err == nil && !c.has("exit") {
		time.Sleep(10 * time.Millisecond)
		_, err = r.find(args[0])
	}
	fmt.Println(c.number("exit"))
	return 0, err
}

func (r fakeRuntime) stop(args []string) (int, error) {
	grace := 10 * time.Second
	if args[0] == "-t" {
		n, _ := strconv.Atoi(args[1])
		grace, args = time.Duration(n)*time.Second, args[2:]
	}
	c, err := r.find(args[0])
	if err != nil || !c.has("pid") || c.has("exit") {
		return 1, err
	}
	if err := errors.Join(c.write("stopped", 1), syscall.Kill(c.number("pid"), syscall.SIGTERM)); err != nil {
		return 1, err
	}
	for begin := time.Now(); !c.has("exit") && time.Since(begin) < grace; time.Sleep(10 * time.Millisecond) {
	}
	if !c.has("exit") {
		return r.kill(args)
	}
	return 0, nil
}

func (r fakeRuntime) kill(args []string) (int, error) {
	c, err := r.find(args[len(args)-1])
	if err != nil {
		return 1, err
	}
	if !c.has("pid") || c.has("exit") {
		return 1, errors.New("container is not running")
	}
	return failed(1, errors.Join(c.write("stopped", 1), syscall.Kill(c.number("pid"), syscall.SIGKILL)))
}

func (r fakeRuntime) rm(args []string) (int, error) {
	c, err := r.find(args[len(args)-1])
	if err != nil {
		return 1, err
	}
	if c.has("pid") && !c.has("exit") {
		if _, err := r.kill(args); err != nil {
			return 1, err
		}
	}
	return failed(1, os.RemoveAll(c.dir))
}
