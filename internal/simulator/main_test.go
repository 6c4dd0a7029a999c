package simulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sgtune/internal/freeport"
)

// TestMain lets this test binary be the server: children are started as "PROGRAM sim-server ...".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sim-server" {
		os.Exit(Main(context.Background(), os.Args[2:], os.Stdout))
	}
	os.Exit(m.Run())
}

// process is a sim-server under test, in a process group of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	claims string
	done   chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Write collects the log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// launchProcess starts a server at 300 times real time with a start-up of 60 simulated seconds; flags may override.
func launchProcess(t *testing.T, env []string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, claims: t.TempDir(), done: make(chan struct{})}
	port := freeport.For(t)
	p.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	args := append([]string{"sim-server", "--model-path", "/models/none", "--tp-size", "8", "--port", fmt.Sprint(port), "--sim-time-scale", "300", "--sim-startup", "60"}, flags...)
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), append([]string{"FAKENVML_CLAIMS=" + p.claims, "SGLANG_PYSPY_DUMP_BEFORE_CRASH=0"}, env...)...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = 2 * time.Second // an orphan keeps the pipes
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	})
	return p
}

// ready waits for the "fired up" line.
func (p *process) ready() *process {
	p.t.Helper()
	p.until("ready", func() bool { return strings.Contains(p.log(), "fired up and ready to roll") })
	return p
}

func (p *process) until(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !ok() {
		select {
		case <-p.done:
			if ok() {
				return
			}
			p.t.Fatalf("server ended before %s; log:\n%s", what, tail(p.log()))
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no %s in 15 s; log:\n%s", what, tail(p.log()))
		}
	}
}

// exit waits for the end and returns the status, negative for a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.t.Fatalf("server did not end; log:\n%s", tail(p.log()))
	}
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return -int(ws.Signal())
	}
	return ws.ExitStatus()
}

func (p *process) term() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// children are the pids in the group besides the main process.
func (p *process) children() []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		var pid, ppid, pgid int
		var st string
		rest := string(b[bytes.LastIndexByte(b, ')')+1:])
		fmt.Sscan(string(b), &pid)
		fmt.Sscan(rest, &st, &ppid, &pgid)
		if pgid == p.cmd.Process.Pid && pid != pgid && st != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// do sends a request and returns status and body; status 0 is a refused or broken connection.
func (p *process) do(method, path, body string) (int, string) {
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

func tail(s string) string {
	if len(s) > 4000 {
		return "..." + s[len(s)-4000:]
	}
	return s
}

// together runs subtests at once, however few processors there are: they mostly wait for a process that sleeps.
type together struct {
	t *testing.T
	sync.WaitGroup
}

func (g *together) run(name string, f func(t *testing.T)) { g.Go(func() { g.t.Run(name, f) }) }
