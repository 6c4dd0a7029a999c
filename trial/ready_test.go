package trial_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
)

// oldLog is a start of SGLang 0.4.9: nothing in it proves a newer version.
const oldLog = `[2026-01-01 22:00:10] server_args=ServerArgs(model_path='m', mem_fraction_static=0.88, tp_size=2, chunked_prefill_size=256)
[2026-01-01 22:00:20 TP0] Init torch distributed begin.
[2026-01-01 22:00:21 TP0] Load weight begin. avail mem=94.04 GB
[2026-01-01 22:01:00 TP0] Load weight end. type=Fake, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB.
[2026-01-01 22:01:00 TP0] KV Cache is allocated. #tokens: 2000, KV size: 10.42 GB
[2026-01-01 22:01:01 TP0] Memory pool end. avail mem=11.31 GB
[2026-01-01 22:01:05 TP0] max_total_num_tokens=2000, chunked_prefill_size=256, max_prefill_tokens=16384, max_running_requests=64, context_len=4096, available_gpu_mem=5.47 GB
`

const prefillTick = "[2026-01-01 22:03:00 TP0] Prefill batch, #new-seq: 1, #new-token: 256, #cached-token: 0, token usage: 0.10, #running-req: 0, #queue-req: 4, #pending-token: 900, cuda graph: False, input throughput (token/s): 90.00\n"

// together runs subtests at once, however few processors there are: they sleep most of the time.
type together struct {
	t *testing.T
	sync.WaitGroup
}

func (g *together) run(name string, f func(t *testing.T)) { g.Go(func() { g.t.Run(name, f) }) }

// TestReadiness is the one rule of design 5 against a server that lives or lies.
func TestReadiness(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	for _, c := range []struct {
		name   string
		script script
		ready  bool
		wrong  string // pattern of the monitor_wrong finding, "" = none
	}{
		{"both witnesses and a token", script{log: startLog}, true, ""},
		{"loads for a while", script{log: startLog, load: 150 * time.Millisecond}, true, ""},
		{"a body is never parsed", script{log: startLog, body: "not ok"}, true, ""},
		{"nor wanted", script{log: startLog, body: "ok"}, true, ""},
		{"log level hides the ready line", script{log: startLog, noReady: true}, true, "no ready line .*, while /health answered 200"},
		{
			"/health says 503 for ever",
			script{log: startLog, health: http.StatusServiceUnavailable},
			true,
			`/health says 503 \(log line 9 "The server is fired up and ready to roll!" at 22:01:31, while /health answered 503 (once|\d+ times) `,
		},
		{"/health does not exist", script{log: startLog, health: http.StatusNotFound}, true, "/health says 404"},
		{"/health never answers", script{log: startLog, stalls: time.Hour}, true, "^health_busy_timeout: .*/health did not answer in time"},
		{"neither, but a token", script{log: startLog, noReady: true, health: http.StatusServiceUnavailable}, true, "^health_starting: .*while /health answered 503 .*times between"},
		{
			"503 while prefill lines come",
			script{log: startLog, health: http.StatusServiceUnavailable, tokens: 1500 * time.Millisecond, ticks: prefillTick},
			true,
			`^health_busy_timeout: .*\(log line \d+ "Prefill batch, .*" at 22:03:00, while /health answered 503 `,
		},
		{"0.4.x, by /health_generate", script{log: oldLog, old: true}, true, ""},
		{"0.4.x, its own warm-up takes long", script{log: oldLog, old: true, noReady: true, stalls: 300 * time.Millisecond, tokens: 300 * time.Millisecond}, true, "no ready line .*, while /health_generate answered 200"},
		{"older than all we know", script{log: oldLog}, true, ""},
		{"no token", script{log: startLog, noToken: true}, false, ""},
		{"dies", script{log: startLog, dies: "gone\n"}, false, ""},
	} {
		all.run(c.name, func(t *testing.T) {
			h, store := newFakeHost(t, c.script), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial()
			r.Load.Canary = 0
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if ready := tr.Startup > 0; ready != c.ready {
				t.Errorf("ready %t, want %t: %s", ready, c.ready, tr.Verdict.Text)
			}
			if c.ready != (tr.State == trial.Complete) {
				t.Errorf("state %s", tr.State)
			}
			var wrong []string
			for _, f := range tr.Verdict.Findings {
				if f.Name == "monitor_wrong" {
					wrong = append(wrong, f.Text)
				}
			}
			switch {
			case c.wrong == "" && len(wrong) > 0:
				t.Errorf("findings %q", wrong)
			case c.wrong != "" && !slices.ContainsFunc(wrong, regexp.MustCompile(c.wrong).MatchString):
				t.Errorf("findings %q lack %s", wrong, c.wrong)
			}
		})
	}
}

// TestNeverReady: what a start that does not become ready is called.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	const shard = "\rLoading safetensors checkpoint shards:   3% Completed | 2/64 [00:12<06:30,  6.30s/it]"
	for _, c := range []struct {
		name    string
		script  script
		limit   time.Duration // ready_timeout
		outcome trial.Outcome
		text    string
	}{
		{"both say ready, no token, silence", script{log: startLog, noToken: true}, time.Hour, trial.Stuck, "gives no token"},
		{"the log says ready, /health fails, no token, silence", script{log: startLog, noToken: true, health: http.StatusServiceUnavailable}, time.Hour, trial.Stuck, "gives no token"},
		{"ready by both and batches run, but no token: that is not stuck", script{log: startLog, tokens: time.Hour, ticks: prefillTick}, 8 * time.Minute, trial.StartupTimeout, "still advancing"},
		{"a load that advances past the limit", script{log: startLog, load: time.Hour, ticks: shard}, 4 * time.Minute, trial.StartupTimeout, ""},
		{"a silent load that reads its disk past the limit", script{log: startLog, silent: true, diskRead: true}, 4 * time.Minute, trial.StartupTimeout, "still advancing"},
		{"a silent load that stands still at the limit", script{log: startLog, silent: true}, 4 * time.Minute, trial.Stuck, "stopped advancing"},
		{"a silent load that stands still before the limit", script{log: startLog, silent: true}, time.Hour, trial.Stuck, "stopped advancing"},
		{"/health says 200, the log says dying", script{log: startLog + readyLine + prefillOOM, noReady: true, noToken: true}, time.Hour, trial.GPUOOM, ""},
		{"0.4.x says 200 to everybody", script{log: oldLog, old: true, noReady: true, stalls: time.Hour, noToken: true}, 4 * time.Minute, trial.Stuck, ""},
	} {
		all.run(c.name, func(t *testing.T) {
			h, store := newFakeHost(t, c.script), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial()
			r.ReadyTimeout = c.limit
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if tr.Verdict.Outcome != c.outcome || tr.Step != trial.StepWait || !strings.Contains(tr.Verdict.Text, c.text) {
				t.Errorf("%s in %s after %s: %s; want %s", tr.Verdict.Outcome, tr.Step, tr.Steps[trial.StepWait], tr.Verdict.Text, c.outcome)
			}
			if tr.Startup > 0 {
				t.Error("it counts as ready")
			}
		})
	}
}

// TestOldHealthIsNoWitness: up to 0.4.9 /health is 200 from the moment the port is open, so nothing may follow from it.
func TestOldHealthIsNoWitness(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	for name, version := range map[string]string{"by its log": "", "by its version": "0.4.6.post5"} {
		all.run(name, func(t *testing.T) {
			log := oldLog
			if version != "" {
				log = startLog // as if it were new: the version is believed
			}
			h, store := newFakeHost(t, script{log: log, old: true, noReady: true, noToken: true, stalls: time.Hour}), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial()
			r.Version, _ = sglang.ParseVersion(version)
			r.ReadyTimeout = 3 * time.Minute
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			log2, err := os.ReadFile(filepath.Join(r.Files, tr.Dir, "server.log"))
			if err != nil || strings.Contains(string(log2), "GET /health HTTP") {
				t.Errorf("%v: /health was asked", err)
			}
			if tr.Verdict.Numbers["health_200_count"] != 0 {
				t.Errorf("numbers %v", tr.Verdict.Numbers)
			}
		})
	}
}

// TestLateReadyLine: up to 0.4.9 a token comes before the server's own first request is over; the ready line
// that follows leaves nothing to disagree about.
func TestLateReadyLine(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: oldLog, old: true, late: 50 * time.Millisecond}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Load.Canary = 0
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.Startup == 0 || len(tr.Levels) != 1 {
		t.Errorf("not measured: %s", tr.Verdict.Text)
	}
	for _, f := range tr.Verdict.Findings {
		if f.Name == "monitor_wrong" {
			t.Errorf("finding %s", f.Text)
		}
	}
}

// TestNobodyAsksHealthUnderLoad: once requests run, tokens are the sign of life.
func TestNobodyAsksHealthUnderLoad(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Load.Canary = 0
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	events := h.happened()
	first := slices.IndexFunc(events, func(e string) bool { return strings.HasPrefix(e, "prompt") })
	if first < 0 {
		t.Fatal("no load")
	}
	if slices.Contains(events[first:], "health") {
		t.Error("/health was called under load")
	}
}

// TestForeignServerIsNotOurs: 200 and tokens from somebody else's server do not make a trial ready, and nobody
// asks it for tokens.
func TestForeignServerIsNotOurs(t *testing.T) {
	t.Parallel()
	other := newFakeHost(t, script{log: startLog})
	h, store := newFakeHost(t, script{log: startLog, silent: true}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial()
	r.ReadyTimeout = 2 * time.Minute
	end, err := h.Reach(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	r.Port = end.Port
	store.at = func(row *trial.Trial) error { // it takes the port right after ours was launched
		if row.Step == trial.StepWait {
			serve(t, other, end.Port)
		}
		return nil
	}
	if err := r.Run(t.Context(), tr); err == nil {
		t.Error("the port is still held and Run says nothing")
	}
	if tr.Startup > 0 || tr.State != trial.Failed {
		t.Errorf("taken for ready: state %s, start-up %s", tr.State, tr.Startup)
	}
	if slices.Contains(other.happened(), "token") {
		t.Error("the other server was asked for a token")
	}
	found := slices.IndexFunc(tr.Verdict.Findings, func(f trial.Finding) bool { return f.Name == "probe_answered_by_other_server" })
	if found < 0 || !strings.Contains(tr.Verdict.Findings[found].Text, "/health on port") || !strings.Contains(tr.Verdict.Findings[found].Text, "pid 4242") {
		t.Errorf("findings %v", tr.Verdict.Findings)
	}
}
