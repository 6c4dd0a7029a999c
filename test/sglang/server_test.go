package sglang_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/internal/freeport"
	"sgtune/sglang"
)

// live is one real server, started as a person would start it: not by sgtune, its output in one file.
type live struct {
	cmd     *exec.Cmd
	port    int
	log     string
	started time.Time
	ended   chan struct{}
}

// start launches the real server. It and everything it leaves behind end with the test.
func start(t *testing.T, argv []string, port int) *live {
	t.Helper()
	s := &live{port: port, log: filepath.Join(t.TempDir(), "server.log"), started: time.Now(), ended: make(chan struct{})}
	out, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.Env = append(os.Environ(), "SGLANG_PYSPY_DUMP_BEFORE_CRASH=0", "SGLANG_CUDA_COREDUMP_BEFORE_CRASH=0")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		_ = out.Close()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			text, _ := os.ReadFile(s.log)
			t.Logf("%s\n%s", strings.Join(argv, " "), text)
		}
	})
	return s
}

// serve launches the small model with extra flags on a port of its own.
func serve(t *testing.T, dir string, flags ...string) *live {
	t.Helper()
	port := freeport.For(t)
	return start(t, append([]string{filepath.Join(dir, "serve"), "--port", strconv.Itoa(port)}, flags...), port)
}

// kill ends the whole group, also what a dead launcher left behind, and waits for the launcher.
func (s *live) kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
}

// until waits for a text in the log.
func (s *live) until(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if b, err := os.ReadFile(s.log); err == nil && bytes.Contains(b, []byte(text)) {
			return
		}
		select {
		case <-s.ended:
			t.Fatalf("the server ended before its log said %q", text)
		default:
		}
	}
	t.Fatalf("the log never said %q", text)
}

// exit waits for the launcher's end and returns its code, negative for a signal.
func (s *live) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(3 * time.Minute):
		t.Fatal("the server did not end within three minutes")
	}
	if ws, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return s.cmd.ProcessState.ExitCode()
}

// child is the pid of the scheduler, found in the server's own group.
func (s *live) child(t *testing.T) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		title, err := os.ReadFile(filepath.Join(d, "cmdline"))
		group, _ := syscall.Getpgid(pid)
		if err == nil && group == s.cmd.Process.Pid && bytes.HasPrefix(title, []byte("sglang::scheduler")) {
			return pid
		}
	}
	t.Fatal("no process of the group is called sglang::scheduler")
	return 0
}

func (s *live) url() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

// facts is the context of a diagnosis: what a person beside the machine can know.
type facts map[string]any

func (s *live) alive() facts {
	return facts{"alive": true, "exit_code": nil, "elapsed_s": time.Since(s.started).Seconds(), "ready_timeout_s": 900, "kernel_oom_kills": 0}
}

func (s *live) dead(code int) facts {
	return facts{"alive": false, "exit_code": code, "elapsed_s": time.Since(s.started).Seconds(), "ready_timeout_s": 900, "kernel_oom_kills": 0}
}

func (f facts) with(key string, value any) facts {
	f[key] = value
	return f
}

type verdict struct {
	Outcome, Phase, Cause string
	Blames                string `json:"blames_config"`
	Numbers               map[string]any
	Advice                []string
	Line                  int `json:"evidence_line"`
}

// diagnose runs `sgtune diagnose` over the server's log and checks its answer.
func (s *live) diagnose(t *testing.T, bin string, context facts, want string) verdict {
	t.Helper()
	file := filepath.Join(t.TempDir(), "context.json")
	text, err := json.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := sgtune(t, bin, "diagnose", s.log, "--context", file, "--json")
	if code != 0 {
		t.Fatalf("diagnose: exit %d\n%s%s", code, stdout, stderr)
	}
	var v verdict
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("diagnose --json: %v\n%s", err, stdout)
	}
	if got := fmt.Sprintf("%s / %s / %s, blames %s", v.Outcome, v.Phase, v.Cause, v.Blames); got != want {
		t.Errorf("verdict %s\nwant    %s\n%s", got, want, stdout)
	}
	person, _, _ := sgtune(t, bin, "diagnose", s.log, "--context", file)
	t.Logf("%s", person)
	return v
}

func (v verdict) tokens(t *testing.T) float64 {
	t.Helper()
	n, _ := v.Numbers["max_total_num_tokens"].(float64)
	if n == 0 {
		n = math.NaN()
		t.Error("no max_total_num_tokens in the verdict's numbers")
	}
	return n
}

func post(t *testing.T, url, body string, timeout time.Duration) (status int, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return 0, "timeout"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func health(t *testing.T, s *live) any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sglang.HealthTimeout)
	defer cancel()
	status, err := benchmark.Target{URL: s.url()}.Health(ctx)
	if err != nil {
		return "timeout"
	}
	return status
}
