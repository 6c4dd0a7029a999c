package replay_test

import (
	"context"
	"encoding/json"
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

// build makes the program and the mock once for all tests.
var build = sync.OnceValues(func() (dir string, err error) {
	dir, err = os.MkdirTemp("", "sgtune-replay")
	if err != nil {
		return "", err
	}
	for _, b := range []struct{ in, out, what string }{{"../..", "sgtune", "./cmd/sgtune"}, {"../peers/mockllm", "mockllm", "."}} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, b.out), b.what)
		cmd.Dir = b.in
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("build %s: %w\n%s", b.out, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := build(); err == nil && dir != "" && code == 0 {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func programs(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("slow tier: make test-replay runs it")
	}
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// mock is a running mock server.
type mock struct{ url string }

// startMock runs the mock with extra flags until the test ends.
func startMock(t *testing.T, dir string, flags ...string) mock {
	t.Helper()
	addr := fmt.Sprint("127.0.0.1:", freeport.For(t))
	cmd := exec.Command(filepath.Join(dir, "mockllm"), append([]string{"-addr", addr}, flags...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	m := mock{"http://" + addr}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(m.url + "/health")
		if err == nil {
			_ = resp.Body.Close()
			return m
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("the mock does not start: %v", err)
		}
	}
}

// truth is what the mock counted itself.
type truth struct {
	Requests, Completed int
	Errors              int     `json:"injected_errors"`
	Tokens              int64   `json:"tokens"`
	Peak                int     `json:"peak_concurrency"`
	Rate                float64 `json:"req_per_s"`
	Duration            float64 `json:"duration_s"`
	TTFT, ITL           struct {
		P99 float64 `json:"p99_ms"`
		Max float64 `json:"max_ms"`
	}
}

func (m mock) truth(t *testing.T) truth {
	t.Helper()
	resp, err := http.Get(m.url + "/mock/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got truth
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return got
}

// report is what replay wrote.
type report struct {
	Requests struct {
		Sent, OK int
		Failed   map[string]int
	}
	Tokens      struct{ Wanted, Got int64 }
	Concurrency struct {
		Peak int
		Mean float64
	}
	TTFT struct{ P99, Max float64 } `json:"ttft_ms"`
	ITL  struct{ Max float64 }      `json:"itl_ms"`
	E2E  struct{ P50, Max float64 } `json:"e2e_ms"`

	Arrivals struct {
		Scheduled float64 `json:"scheduled_rps"`
		Achieved  float64 `json:"achieved_rps"`
	}
	Client struct {
		SendLag struct{ P99 float64 } `json:"send_lag_ms"`
	}
	Valid bool
}

// replay runs the program and reads its report.
func replay(t *testing.T, dir, url string, args ...string) report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "sgtune"), append([]string{
		"replay", "--url", url, "--workload", "random-ids", "--random-input-len", "16",
		"--random-range-ratio", "1", "--warmup", "0", "--out", file,
	}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sgtune %s: %v\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return r
}
