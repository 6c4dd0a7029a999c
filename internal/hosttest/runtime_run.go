package hosttest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stampLayout has nine digits, as the runtimes print them.
const stampLayout = "2006-01-02T15:04:05.000000000Z07:00"

// containerEnv marks what runs in a container of the fake runtime: where there are no namespaces, that is how all of
// it is found when its main process ends.
const containerEnv = "SGTUNE_FAKE_CONTAINER"

// run makes a container and starts it.
func (r fakeRuntime) run(args []string) (int, error) {
	if d, err := time.ParseDuration(r.seam(RuntimeDelay)); err == nil {
		time.Sleep(d)
	}
	c := fakeContainer{ID: fmt.Sprintf("%d%d", time.Now().UnixNano(), os.Getpid()), Keep: true, Labels: map[string]string{}}
	detached, rest, err := c.parse(args)
	if err != nil {
		return runtimeFailed, err
	}
	programs, err := r.programs(rest[0])
	if err != nil {
		return runtimeFailed, err
	}
	if _, err := r.find(c.Name); err == nil {
		return runtimeFailed, fmt.Errorf("the name %s is in use", c.Name)
	}
	c.Argv, c.dir = rest[1:], filepath.Join(r.dir, "c-"+c.ID)
	b, err := json.Marshal(c)
	if err = errors.Join(err, os.Mkdir(c.dir, 0o700), c.write("spec", string(b))); err != nil {
		return runtimeFailed, err
	}
	program, ok := programs[c.Argv[0]]
	if !ok { // made, but not started
		return 127, fmt.Errorf("exec: %q: no such file or directory", c.Argv[0])
	}
	self, err := os.Executable()
	if err != nil {
		return runtimeFailed, err
	}
	cmd := exec.Command(self, "_hold", c.ID, program)
	cmd.Args[0], cmd.SysProcAttr = filepath.Join(filepath.Dir(r.dir), "bin", "docker"), &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return runtimeFailed, err
	}
	for !c.has("pid") && !c.has("exit") {
		time.Sleep(5 * time.Millisecond)
	}
	if detached {
		fmt.Println(c.ID)
		return 0, nil
	}
	status, err := r.logs([]string{"-f", c.ID})
	if !c.Keep {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return status + c.number("exit"), err
}

// parse reads the flags of run; what follows them is the image and the command.
func (c *fakeContainer) parse(args []string) (detached bool, rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") {
			return detached, args[i:], nil
		}
		switch name {
		case "-d":
			detached = true
			continue
		case "--rm":
			c.Keep = false
			continue
		}
		if !inline {
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		switch name {
		case "--name":
			c.Name = value
		case "--label":
			label, v, _ := strings.Cut(value, "=")
			c.Labels[label] = v
		case "-e", "--env":
			variable, v, given := strings.Cut(value, "=")
			if !given {
				v = os.Getenv(variable)
			}
			c.Env = append(c.Env, variable+"="+v)
		case "-m", "--memory":
			mb, err := strconv.Atoi(strings.TrimSuffix(value, "m"))
			if err != nil {
				return false, nil, fmt.Errorf("memory %q: the fake knows only 64m", value)
			}
			c.Memory = int64(mb) << 20
		case "--restart":
			c.Restart = value != "no"
		case "--network", "--pull", "--oom-score-adj", "-w", "-v", "--gpus", "--ipc":
		default:
			return false, nil, fmt.Errorf("unknown flag: %s", name)
		}
	}
	return false, nil, errors.New("run needs an image")
}

// hold is the process beside a container that notes what it prints and how it ends, like conmon or a shim, and starts it
// again where that was asked for.
func (r fakeRuntime) hold(args []string) (int, error) {
	c, err := r.find(args[0])
	if err != nil {
		return 1, err
	}
	log, err := os.OpenFile(c.file("log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 1, err
	}
	for starts := 1; ; starts++ {
		status, err := c.once(args[1], log)
		if !c.Restart || c.has("stopped") || err != nil {
			return 0, errors.Join(err, c.write("exit", status))
		}
		time.Sleep(100 * time.Millisecond) // as the runtimes do
		if err := c.write("restarts", starts); err != nil {
			return 1, err
		}
	}
}

// once runs the container's program to its end.
func (c fakeContainer) once(program string, log io.Writer) (status int, err error) {
	cmd := exec.Command(program, c.Argv[1:]...)
	cmd.Args[0] = c.Argv[0]
	cmd.Env = append(c.Env, containerEnv+"="+c.ID, "PATH="+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err1 := cmd.StdoutPipe()
	words, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return 127, err
	}
	_ = c.write("pid", cmd.Process.Pid)
	var copying sync.WaitGroup
	var mu sync.Mutex
	for _, stream := range []io.Reader{out, words} {
		copying.Go(func() { stamp(stream, log, &mu) })
	}
	over := make(chan struct{})
	copying.Go(func() { c.watchMemory(cmd.Process.Pid, over) })
	if state, err := cmd.Process.Wait(); err == nil {
		if status = state.ExitCode(); status < 0 {
			status = 128 + int(state.Sys().(syscall.WaitStatus).Signal())
		}
	}
	close(over)
	c.sweep()
	copying.Wait()
	return status, nil
}

// stamp notes each line with its time, as the runtimes do: only once it is complete.
func stamp(in io.Reader, log io.Writer, mu *sync.Mutex) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			mu.Lock()
			_, _ = fmt.Fprintf(log, "%s %s\n", time.Now().Format(stampLayout), strings.TrimSuffix(line, "\n"))
			mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// watchMemory is the container's memory limit.
func (c fakeContainer) watchMemory(pid int, over <-chan struct{}) {
	for c.Memory > 0 {
		select {
		case <-over:
			return
		case <-time.After(20 * time.Millisecond):
		}
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if f := strings.Fields(string(b)); len(f) > 1 {
			if pages, _ := strconv.ParseInt(f[1], 10, 64); pages*int64(os.Getpagesize()) > c.Memory {
				_ = c.write("oom", 1)
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return
			}
		}
	}
}

// sweep ends what the main process left, as the end of a pid namespace does.
func (c fakeContainer) sweep() {
	for range 3 {
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, f := range files {
			b, err := os.ReadFile(f)
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			if err == nil && slices.Contains(strings.Split(string(b), "\x00"), containerEnv+"="+c.ID) && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// logs prints the log, with -f until the container has ended.
func (r fakeRuntime) logs(args []string) (int, error) {
	follow, stamps := slices.Contains(args, "-f"), slices.Contains(args, "--timestamps")
	since := time.Time{}
	if i := slices.Index(args, "--since"); i >= 0 {
		t, err := time.Parse(time.RFC3339Nano, args[i+1])
		if err != nil {
			return 1, err
		}
		since = t
	}
	c, err := r.find(args[len(args)-1])
	if err != nil {
		return 1, err
	}
	left, err := strconv.Atoi(cmp.Or(r.seam(RuntimeBreak), "-1"))
	if err != nil || !follow {
		left = -1
	}
	var log *bufio.Reader
	rest := ""
	for {
		ended := c.has("exit")
		if log == nil {
			if f, err := os.Open(c.file("log")); err == nil {
				log = bufio.NewReader(f)
			}
		}
		for log != nil {
			piece, err := log.ReadString('\n')
			if rest += piece; err != nil {
				break
			}
			line := rest
			rest = ""
			when, text, _ := strings.Cut(line, " ")
			if at, err := time.Parse(time.RFC3339Nano, when); err == nil && at.Before(since) {
				continue
			}
			if !stamps {
				line = text
			}
			fmt.Print(line)
			if left--; left == 0 {
				return 1, errors.New("the daemon went away")
			}
		}
		if ended || !follow {
			return 0, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}
