package trial_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/trial"
)

// adoptable is a fakeHost whose processes can be taken over: the living one is as seen says.
type adoptable struct {
	*fakeHost
	seen    func(id *host.ID) // what the host has of it, nil = what was started
	refused error             // the host's own proof fails
	asked   []string          // log path of each question
}

func (h *adoptable) Adopt(_ context.Context, id host.ID, logPath string, _ *host.GuardLimits) (host.Process, error) {
	h.asked = append(h.asked, logPath)
	if h.refused != nil {
		return nil, h.refused
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.living[id.PID]
	if p == nil {
		return nil, host.ErrNotProven
	}
	found := adoptedPart{fakePart: p, id: p.id}
	if h.seen != nil {
		h.seen(&found.id)
	}
	return found, nil
}

// Reach names the server's main process as the owner of its port.
func (h *adoptable) Reach(ctx context.Context, port int) (host.Endpoint, error) {
	e, err := h.fakeHost.Reach(ctx, port)
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid, p := range h.living {
		if e.Listening && p.main == nil {
			e.Owners = []int{pid}
		}
	}
	return e, err
}

type adoptedPart struct {
	*fakePart
	id host.ID
}

func (p adoptedPart) ID() host.ID { return p.id }

// killed has a sgtune die right after its first level was stored, and returns the next one's runner with the row it finds.
func killed(t *testing.T, s script) (h *fakeHost, store *fakeStore, r *trial.Runner, row *trial.Trial) {
	t.Helper()
	for range 5 { // a busy machine holds the client up, and such a level is the last of its trial
		h, store = newFakeHost(t, s), &fakeStore{}
		if r, row = killedOnce(t, h, store); row.Levels[0].Report.Invalid != benchmark.InvalidClientHung {
			break
		}
	}
	return h, store, r, row
}

func killedOnce(t *testing.T, h *fakeHost, store *fakeStore) (*trial.Runner, *trial.Trial) {
	t.Helper()
	c := newCrash(t, "", false)
	tr := newTrial(2, 4)
	r := newRunner(t, h, store)
	r.Server.Flags["api-key"] = "TOPSECRET"
	g := &gate{host: h, store: store, rule: func(ctx context.Context, call string, after bool) error {
		if after && strings.HasPrefix(call, "save@measure") && len(store.last().Levels) == 1 {
			call = ""
		}
		return c.rule(ctx, call, false)
	}}
	next := *r
	r.Host, r.Store = g, g
	go func() { _ = r.Run(t.Context(), tr) }() // it hangs until the test is over
	select {
	case <-c.dead:
	case <-time.After(30 * time.Second):
		t.Fatalf("no level was stored: %v", store.steps())
	}
	row := store.last()
	next.Who = "sgtune 9 (pid 7)"
	return &next, &row
}

// TestAdopt: a sgtune dies after its first level was stored. The next one goes on with the living server: it ends what runs
// there, flushes, takes the canary and measures the second level only, with texts that this server has not seen.
func TestAdopt(t *testing.T) {
	t.Parallel()
	h, _, r, row := killed(t, script{log: startLog, load: 50 * time.Millisecond, version: "0.5.10"})
	a := &adoptable{fakeHost: h}
	r.Host = a
	was, first, before := *row, row.Levels[0], h.happened()
	if err := os.WriteFile(filepath.Join(r.Files, row.Dir, "level-4.samples.jsonl"), []byte("half a level\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	goOn, err := r.Adopt(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	if row.Adopted {
		t.Error("the row changed before it went on")
	}
	if err := goOn(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	after := h.happened()[len(before):]
	if n := begun(after, "start"); n != 0 || begun(before, "start") != 1 {
		t.Errorf("%d further launches", n)
	}
	if i, j, k := slices.Index(after, "abort all"), slices.Index(after, "flush"), firstPrompt(after); i < 0 || j < i || k < j {
		t.Errorf("abort all, flush and the first prompt came in the order %d, %d, %d", i, j, k)
	}
	old := map[string]bool{}
	for _, e := range before {
		old[e] = strings.HasPrefix(e, "prompt ")
	}
	for _, e := range after {
		if old[e] {
			t.Errorf("sent twice in the server's life: %s", e)
		}
	}
	if row.State != trial.Complete && row.Verdict.Outcome != trial.BenchInvalid || row.Release != trial.ReleaseVerified || h.alive() != 0 {
		t.Errorf("state %s, release %s, %d processes left: %s", row.State, row.Release, h.alive(), row.Verdict.Text)
	}
	if len(row.Levels) != 2 || row.Levels[0].Report != first.Report || row.Levels[1].Concurrency != 4 || row.Levels[1].Report.Requests.Sent == 0 {
		t.Errorf("levels: %+v", row.Levels)
	}
	if !row.Adopted || len(row.Adoptions) != 1 || row.Adoptions[0].By != "sgtune 9 (pid 7)" || row.Adoptions[0].At.IsZero() {
		t.Errorf("adopted %v: %+v", row.Adopted, row.Adoptions)
	}
	if !slices.ContainsFunc(row.Verdict.Findings, func(f trial.Finding) bool { return f.Name == "adopted" && strings.Contains(f.Text, "sgtune 9 (pid 7)") }) {
		t.Errorf("findings %+v", row.Verdict.Findings)
	}
	if row.Memory.Tokens != 2000 || row.OwnRAM != was.OwnRAM || row.Startup != was.Startup || row.LowWater != 5*gib || row.GPUBaseline == nil {
		t.Errorf("facts of the launch were lost: start-up %s, %d tokens, own RAM %d, low water %d, GPUs %v", row.Startup, row.Memory.Tokens, row.OwnRAM, row.LowWater, row.GPUBaseline)
	}
	checkAdoptedEvidence(t, r, row)
}

func firstPrompt(events []string) int {
	return slices.IndexFunc(events, func(e string) bool { return strings.HasPrefix(e, "prompt ") })
}

// checkAdoptedEvidence: the log is there once, from its first line to its last, and masked; no sample of the level that
// was cut short is left.
func checkAdoptedEvidence(t *testing.T, r *trial.Runner, row *trial.Trial) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Files, row.Dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(b)
	if strings.Count(log, "server_args=") != 1 || strings.Count(log, "fired up") != 1 || strings.Contains(log, "TOPSECRET") {
		t.Errorf("evidence: %.300s", log)
	}
	b, err = os.ReadFile(filepath.Join(r.Files, row.Dir, "level-4.samples.jsonl"))
	if err != nil || len(b) == 0 || strings.Contains(string(b), "half a level") {
		t.Errorf("samples of the second level: %v, %.100s", err, b)
	}
	if _, err := os.Stat(filepath.Join(r.Scratch, "sgtune-"+row.Marker)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unmasked log is left: %v", err)
	}
}

// TestNotAdopted: with one fact missing or wrong nothing is adopted, the reason names it, the row is as it was, and Recover
// reclaims what runs.
func TestNotAdopted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(h *adoptable, r *trial.Runner, row *trial.Trial)
		script func(s *script)
		want   string
	}{
		{"another boot", func(h *adoptable, _ *trial.Runner, _ *trial.Trial) {
			h.seen = func(id *host.ID) { id.BootID = "later" }
		}, nil, "the machine was started anew"},
		{"boot not stored", func(h *adoptable, _ *trial.Runner, row *trial.Trial) {
			row.Process.BootID = ""
			h.seen = func(id *host.ID) { id.BootID = "" }
		}, nil, "the machine was started anew"},
		{"another pid", func(h *adoptable, _ *trial.Runner, _ *trial.Trial) { h.seen = func(id *host.ID) { id.PID++ } }, nil, "it has pid"},
		{"pid is gone", func(_ *adoptable, _ *trial.Runner, row *trial.Trial) { row.Process.PID += 1000 }, nil, "not proven"},
		{"pid reused", func(h *adoptable, _ *trial.Runner, _ *trial.Trial) { h.seen = func(id *host.ID) { id.StartTicks++ } }, nil, "was given to another process"},
		{"no marker", func(h *adoptable, _ *trial.Runner, _ *trial.Trial) { h.seen = func(id *host.ID) { id.Marker = "" } }, nil, "does not carry the trial's marker"},
		{"another trial's marker", func(_ *adoptable, _ *trial.Runner, row *trial.Trial) { row.Process.Marker = "night.6.1" }, nil, "does not carry the trial's marker"},
		{"another argv", func(h *adoptable, _ *trial.Runner, _ *trial.Trial) {
			h.seen = func(id *host.ID) { id.Argv = append(slices.Clone(id.Argv), "--tp-size", "1") }
		}, nil, "has another command line than was launched"},
		{"no argv", func(h *adoptable, _ *trial.Runner, _ *trial.Trial) { h.seen = func(id *host.ID) { id.Argv = nil } }, nil, "has another command line"},
		{"flags of today are others", func(_ *adoptable, r *trial.Runner, _ *trial.Trial) { r.Instruments = []string{"--enable-metrics"} }, nil, "another command line today"},
		{"not past wait", func(_ *adoptable, _ *trial.Runner, row *trial.Trial) { row.Step = trial.StepWait }, nil, "step wait"},
		{"being stopped", func(_ *adoptable, _ *trial.Runner, row *trial.Trial) { row.Step = trial.StepStop }, nil, "step stop"},
		{"guard is gone", func(h *adoptable, _ *trial.Runner, _ *trial.Trial) {
			h.refused = errors.New("its guard is gone")
		}, nil, "its guard is gone"},
		{"another version", func(_ *adoptable, _ *trial.Runner, row *trial.Trial) { row.SGLang = "0.5.9" }, nil, `it says that it is SGLang "0.5.10" and was 0.5.9`},
		{"flush is refused", nil, func(s *script) { s.refuseAfter = 1 }, "the cache could not be flushed"},
		{"a host that proves nothing", func(h *adoptable, r *trial.Runner, _ *trial.Trial) { r.Host = h.fakeHost }, nil, "this kind of host cannot prove"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := script{log: startLog, version: "0.5.10"}
			if c.script != nil {
				c.script(&s)
			}
			h, store, r, row := killed(t, s)
			a := &adoptable{fakeHost: h}
			r.Host = a
			if c.change != nil {
				c.change(a, r, row)
			}
			was, prompts := *row, begun(h.happened(), "prompt ")
			goOn, err := r.Adopt(t.Context(), row)
			if goOn != nil || !errors.Is(err, trial.ErrNotAdopted) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if row.Adopted || row.Step != was.Step || row.State != trial.Running || len(row.Levels) != 1 {
				t.Errorf("the row changed: %+v", row)
			}
			if h.alive() == 0 || begun(h.happened(), "prompt ") != prompts {
				t.Error("the server was stopped, or was sent something")
			}
			if _, err := trial.Recover(t.Context(), h, h.clock, "night", []*trial.Trial{row}, store); err != nil || h.alive() != 0 || row.Verdict.Outcome != trial.Aborted {
				t.Errorf("recovery: %v, %d alive, %s", err, h.alive(), row.Verdict.Outcome)
			}
		})
	}
}

// TestAdoptTwice: the sgtune that adopted dies, too. The next one adopts again, under texts of its own.
func TestAdoptTwice(t *testing.T) {
	t.Parallel()
	h, store, r, row := killed(t, script{log: startLog})
	c := newCrash(t, "save@measure", true)
	dying := *r
	g := &gate{host: h, store: store, rule: c.rule}
	dying.Host, dying.Store = &adoptableGate{gate: g, adoptable: &adoptable{fakeHost: h}}, g
	goOn, err := dying.Adopt(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = goOn(t.Context(), row) }() // it hangs until the test is over
	<-c.dead
	again, before := store.last(), h.happened()
	if !again.Adopted || len(again.Adoptions) != 1 || again.Step != trial.StepMeasure {
		t.Fatalf("stored: step %s, adoptions %+v", again.Step, again.Adoptions)
	}
	r.Host = &adoptable{fakeHost: h}
	goOn, err = r.Adopt(t.Context(), &again)
	if err != nil {
		t.Fatal(err)
	}
	if err := goOn(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	if len(again.Adoptions) != 2 || len(again.Levels) != 2 || h.alive() != 0 || begun(h.happened(), "start") != 1 {
		t.Errorf("%d adoptions, %d levels, %d alive", len(again.Adoptions), len(again.Levels), h.alive())
	}
	for _, e := range h.happened()[len(before):] {
		if strings.HasPrefix(e, "prompt ") && slices.Contains(before, e) {
			t.Errorf("sent twice in the server's life: %s", e)
		}
	}
}

// adoptableGate adopts behind a gate.
type adoptableGate struct {
	*gate
	adoptable *adoptable
}

func (g *adoptableGate) Adopt(ctx context.Context, id host.ID, logPath string, limits *host.GuardLimits) (host.Process, error) {
	p, err := g.adoptable.Adopt(ctx, id, logPath, limits)
	if err != nil {
		return nil, err
	}
	return gatedProcess{p, g.gate}, nil
}

func (g *adoptableGate) Reach(ctx context.Context, port int) (host.Endpoint, error) {
	return through(g.gate, ctx, "reach", func() (host.Endpoint, error) { return g.adoptable.Reach(ctx, port) })
}

// begun is how many events begin with a word.
func begun(events []string, word string) int {
	n := 0
	for _, e := range events {
		if strings.HasPrefix(e, word) {
			n++
		}
	}
	return n
}

// serverInfo answers as a server of the script's version.
func (s *fakeServer) serverInfo(w http.ResponseWriter, r *http.Request) {
	if s.script.version == "" {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(`{"version": "` + s.script.version + `"}`))
}
