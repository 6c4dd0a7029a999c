package trial_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

// expect is the file beside a fixture log; see testdata/verdict/README.md.
type expect struct {
	Context struct {
		Alive     bool           `json:"alive"`
		ExitCode  *int           `json:"exit_code"`
		Elapsed   float64        `json:"elapsed_s"`
		Timeout   float64        `json:"ready_timeout_s"`
		HostRAM   float64        `json:"host_ram_gb"`
		Flags     map[string]any `json:"flags"`
		KernelOOM *int64         `json:"kernel_oom_kills"`
		CgroupOOM *int64         `json:"cgroup_oom_kills"`
		StoppedBy string         `json:"stopped_by"`
		Probes    []struct {
			Path    string `json:"path"`
			Status  any    `json:"status"`
			Count   int    `json:"count"`
			Refusal string `json:"verdict_of_old_monitor"`
		} `json:"probes"`
	} `json:"context"`
	Outcome  trial.Outcome  `json:"outcome"`
	Phase    sglang.Phase   `json:"phase"`
	Cause    string         `json:"cause"`
	Blames   trial.Blame    `json:"blames_config"`
	Numbers  map[string]any `json:"numbers"`
	Findings []string       `json:"findings"`
	Line     int            `json:"evidence_line"`
	Also     []int          `json:"evidence_also"`
	Advice   []string       `json:"advice"`
}

// facts are what a classifier gets: the log's bytes and the context, nothing else.
func (e *expect) facts(log []byte) trial.Facts {
	c := &e.Context
	f := trial.Facts{
		First: map[string]sglang.Event{}, Last: map[string]sglang.Event{}, Flags: sglang.Config{}, KernelOOM: -1, CgroupOOM: -1,
		Exit: trial.Exit{Alive: c.Alive}, HostRAM: int64(c.HostRAM * 1e9),
		Elapsed: time.Duration(c.Elapsed) * time.Second, Timeout: time.Duration(c.Timeout) * time.Second,
	}
	reader := sglang.NewReader()
	for _, ev := range append(reader.Feed(log), reader.Close()...) {
		if _, seen := f.First[ev.Kind]; !seen {
			f.First[ev.Kind] = ev
		}
		f.Last[ev.Kind] = ev
	}
	f.Log = reader.Facts()
	for name, value := range c.Flags {
		f.Flags[strings.TrimPrefix(name, "--")] = value
	}
	if code := c.ExitCode; code != nil && *code < 0 {
		f.Exit.Exit = host.Exit{Code: -1, Signal: -*code, Known: true}
	} else if code != nil {
		f.Exit.Exit = host.Exit{Code: *code, Known: true}
	}
	if c.KernelOOM != nil {
		f.KernelOOM = *c.KernelOOM
	}
	if c.CgroupOOM != nil {
		f.CgroupOOM = *c.CgroupOOM
	}
	if c.StoppedBy != "" {
		f.Ending, f.Reason = trial.EndOutside, c.StoppedBy
	}
	for _, p := range c.Probes {
		status, _ := p.Status.(float64)
		f.Probes = append(f.Probes, trial.Probe{Path: p.Path, Status: int(status), Count: p.Count, Refusal: p.Refusal})
	}
	return f
}

func TestClassifyFixtures(t *testing.T) {
	t.Parallel()
	logs, err := filepath.Glob("testdata/verdict/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, path := range logs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".log"), func(t *testing.T) {
			t.Parallel()
			log, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(strings.TrimSuffix(path, ".log") + ".expect.json")
			if err != nil {
				t.Fatal(err)
			}
			var want expect
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			checkVerdict(t, trial.Classify(want.facts(log)), &want)
		})
	}
}

func checkVerdict(t *testing.T, got trial.Verdict, want *expect) {
	t.Helper()
	if got.Outcome != want.Outcome || got.Phase != want.Phase || got.Cause != want.Cause || got.Blames != want.Blames {
		t.Errorf("verdict %s / %s / %s, blames %s; want %s / %s / %s, blames %s\n%s",
			got.Outcome, got.Phase, got.Cause, got.Blames, want.Outcome, want.Phase, want.Cause, want.Blames, got.Text)
	}
	if got.Line != want.Line && !slices.Contains(want.Also, got.Line) {
		t.Errorf("evidence line %d (%s), want %d", got.Line, got.Evidence, want.Line)
	}
	if !slices.Equal(got.Advice, want.Advice) {
		t.Errorf("advice %v, want %v", got.Advice, want.Advice)
	}
	for name, v := range want.Numbers {
		number, ok := v.(float64)
		if !ok {
			continue // lists of ranks and flags belong to the dialects' issue
		}
		if have, ok := got.Numbers[name]; !ok || math.Abs(have-number) > 0.005*math.Max(1, math.Abs(number)) {
			t.Errorf("number %s = %v (there: %t), want %v", name, have, ok, number)
		}
	}
	for _, name := range want.Findings {
		if name == "ansi_colours" { // a remark about the log, not about the trial
			continue
		}
		if !slices.ContainsFunc(got.Findings, func(f trial.Finding) bool { return f.Name == name }) {
			t.Errorf("finding %s is missing from %v", name, got.Findings)
		}
	}
	if got.Text == "" {
		t.Error("no sentence for a person")
	}
}
