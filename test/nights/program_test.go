package nights_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the path of the built sgtune.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sgtune-nights-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "sgtune")
	build := exec.Command("go", "build", "-o", program, "sgtune/cmd/sgtune")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building sgtune:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// result is what one run of the program did.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// sgtune runs the program to its end, at most ten minutes.
func sgtune(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environ(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	r := result{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(start)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("running sgtune %v: %v", args, err)
	}
	return r
}

// environ gives each test its own folder for leases and simulated hosts.
func environ(t *testing.T) []string {
	t.Helper()
	return append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(stateDir(t), "state"), "NO_COLOR=1")
}

func stateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "sgtune-"+strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())+fmt.Sprintf("-%d", os.Getpid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// shown is `sgtune show --json` as scripts see it.
type shown struct {
	Study     string `json:"study"`
	Simulated bool   `json:"simulated"`
	State     string `json:"state"`
	Verdict   struct {
		Answer string   `json:"answer"`
		Gain   float64  `json:"gain"`
		Low    *float64 `json:"gain_low"`
		High   *float64 `json:"gain_high"`
		Trial  int      `json:"trial"`
	} `json:"verdict"`
	Trials []struct {
		Number  int            `json:"number"`
		Adopted bool           `json:"adopted"`
		Role    string         `json:"role"`
		State   string         `json:"state"`
		Outcome string         `json:"outcome"`
		Phase   string         `json:"phase"`
		Cause   string         `json:"cause"`
		Config  map[string]any `json:"config"`
		Value   *float64       `json:"value"`
		EndedAt string         `json:"ended_at"`
	} `json:"trials"`
	Events []struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	} `json:"events"`
}

// winner is the configuration that the verdict is about, nil where it names no trial that is there.
func (s shown) winner() map[string]any {
	for _, trial := range s.Trials {
		if trial.Number == s.Verdict.Trial {
			return trial.Config
		}
	}
	return nil
}

func show(t *testing.T, db, study string) shown {
	t.Helper()
	r := sgtune(t, "show", study, "--db", db, "--json")
	if r.code != 0 {
		t.Fatalf("show: exit %d: %s", r.code, r.stderr)
	}
	var s shown
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatalf("show --json: %v\n%s", err, r.stdout)
	}
	return s
}

// leftovers lists living processes whose environment carries the marker of a study.
func leftovers(t *testing.T, study string) []string {
	t.Helper()
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(env, []byte("SGTUNE_TRIAL="+study)) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(d, "stat"))
		if i := bytes.LastIndexByte(stat, ')'); i > 0 && i+2 < len(stat) && stat[i+2] == 'Z' {
			continue
		}
		found = append(found, filepath.Base(d))
	}
	return found
}

// copyStudy copies an example study and its workload into a folder of the test and edits it.
func copyStudy(t *testing.T, example string, edit func(string) string) (study, db string) {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("../../examples", example))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("../../examples/quickstart.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "quickstart.jsonl"), rows, 0o600); err != nil {
		t.Fatal(err)
	}
	study = filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(study, []byte(edit(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return study, filepath.Join(dir, "sgtune.db")
}
