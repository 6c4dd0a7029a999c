package nights_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/internal/freeport"
	"sgtune/sglang"
	"sgtune/tuner"
)

// startLog starts sim-server at one fraction and returns what its log says once it is ready.
func startLog(t *testing.T, flags ...string) sglang.LogFacts {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"sim-server", "--model-path", "any", "--tp-size", "8", "--port", fmt.Sprint(freeport.For(t)),
		"--sim-startup", "30", "--sim-time-scale", "100",
	}, flags...)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	}()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := sglang.NewReader()
		r.Feed(text)
		if f := r.Facts(); f.Ready {
			return f
		}
	}
	t.Fatal("the simulated server did not become ready in a minute")
	return sglang.LogFacts{}
}

// TestFoundingMemory predicts the founding case's starts from the log of one simulated start at 0.85.
func TestFoundingMemory(t *testing.T) {
	t.Parallel()
	f := startLog(t, "--mem-fraction-static", "0.85")
	if f.Memory.Tokens != 116171 {
		t.Errorf("0.85 bf16: %d tokens, want 116171", f.Memory.Tokens)
	}
	c, err := sglang.Calibrate(f.Memory)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		config sglang.Config
		tokens float64
		freeGB float64
	}{
		{sglang.Config{"mem-fraction-static": 0.88}, 159277, 5.47},
		{sglang.Config{"mem-fraction-static": 0.90, "kv-cache-dtype": "fp8_e4m3"}, 376029, 3.52},
		{sglang.Config{"mem-fraction-static": 0.93}, 231120, 0.82},
	} {
		p := c.Predict(want.config)
		if !p.Tokens.Contains(want.tokens) || p.Tokens.HalfWidth() > 0.0015*p.Tokens.Mid {
			t.Errorf("%v: tokens %+v, want an interval of at most ±0.15%% that contains %.0f", want.config, p.Tokens, want.tokens)
		}
		if d := p.FreeAfterGraphGiB.Mid - want.freeGB; d < -0.15 || d > 0.15 {
			t.Errorf("%v: %.2f GB free after graphs, want %.2f within 0.15", want.config, p.FreeAfterGraphGiB.Mid, want.freeGB)
		}
	}
}

// TestFoundingRAM checks the host RAM rule with the founding machine's numbers.
func TestFoundingRAM(t *testing.T) {
	t.Parallel()
	s := &tuner.Study{Server: sglang.Server{Flags: sglang.Config{"tp-size": 8.0}}}
	facts := tuner.HostFacts{MemTotal: 449e9, MemAvailable: 440e9, CgroupHeadroom: -1}
	admit := tuner.NewAdmission(s, nil, facts, nil).Admit
	for gb, admitted := range map[float64]bool{48: true, 56: false, 300: false} {
		err := admit(sglang.Config{"mem-fraction-static": 0.85, "hicache-size": gb})
		if (err == nil) != admitted {
			t.Errorf("hicache-size %g x 8: %v, admitted should be %v", gb, err, admitted)
		}
		if err != nil && (!strings.Contains(err.Error(), fmt.Sprint(gb*8)) || !strings.Contains(err.Error(), "440")) {
			t.Errorf("the refusal of %g GB does not name both numbers: %v", gb, err)
		}
	}
}

// TestFoundingFailure runs 0.93 through a grid: it must die of OOM in prefill under load, and the study goes on; fp8
// is in the space, never proposed, and its exclusion is an event.
func TestFoundingFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("slow tier: make test-nights runs it")
	}
	study, db := copyStudy(t, "quickstart.yaml", func(s string) string {
		from, to := strings.Index(s, "space:"), strings.Index(s, "workload:")
		s = s[:from] + "space:\n  mem-fraction-static: [0.93, 0.88]\n  kv-cache-dtype: [bf16, fp8_e4m3]\nsampler: grid\n\n" + s[to:]
		return strings.NewReplacer("study: quickstart", "study: founding", "launches: 5", "launches: 1").Replace(s)
	})
	r := sgtune(t, "tune", study, "--db", db, "--web", "off")
	if r.code != 0 && r.code != 1 {
		t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	s := show(t, db, "founding")
	var died, ran, excluded bool
	for _, tr := range s.Trials {
		if tr.Config["kv-cache-dtype"] == "fp8_e4m3" {
			t.Errorf("trial %d was launched with fp8", tr.Number)
		}
		switch tr.Config["mem-fraction-static"] {
		case 0.93:
			died = tr.Outcome == "gpu_oom" && tr.Phase == "prefill" && tr.Cause == "prefill_activation"
			if !died {
				t.Errorf("0.93 ended %s / %s / %s, want gpu_oom / prefill / prefill_activation", tr.Outcome, tr.Phase, tr.Cause)
			}
		case 0.88:
			ran = ran || tr.Outcome == "ok"
		}
	}
	for _, e := range s.Events {
		excluded = excluded || strings.Contains(e.Text, "quality") && strings.Contains(e.Text, "fp8_e4m3")
	}
	if !died || !ran || !excluded || s.State != "complete" {
		t.Errorf("0.93 died %v, 0.88 ran %v, fp8 excluded by an event %v, state %s", died, ran, excluded, s.State)
	}
}
