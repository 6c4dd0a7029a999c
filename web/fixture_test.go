package web_test

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

// keep is a folder to write the studies of these tests into, for a look at their pages: go test ./web -run
// TestEveryState -keep DIR, then sgtune serve --db DIR/sgtune.db.
var keep = flag.String("keep", "", "folder that keeps the studies of the tests")

// states are the studies of the fixture: one for each way a study can stand.
var states = []string{"better", "keep", "worse", "unconfirmed", "dirty", "dirty-better", "running", "begun", "allfailed", "stopped", "broken-log"}

var (
	todayConfig  = sglang.Config{"mem-fraction-static": 0.85}
	betterConfig = sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0}
)

// fixture is a real database with studies in some of the states, all of them unless named, and their evidence.
type fixture struct {
	t    testing.TB
	db   *store.DB
	path string
	root *os.Root
}

func newFixture(t testing.TB, studies ...string) *fixture {
	t.Helper()
	dir := t.TempDir()
	if *keep != "" && strings.HasPrefix(t.Name(), "TestEveryState") {
		dir = *keep
	}
	f := &fixture{t: t, path: filepath.Join(dir, "sgtune.db")}
	var err error
	if f.db, err = store.Open(t.Context(), f.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.db.Close() })
	evidence := filepath.Join(dir, "sgtune.files")
	if err := os.MkdirAll(evidence, 0o700); err != nil {
		t.Fatal(err)
	}
	if f.root, err = os.OpenRoot(evidence); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.root.Close() })
	if len(studies) == 0 {
		studies = states
	}
	for i, name := range studies {
		f.study(name, night.Add(-time.Duration(i)*24*time.Hour))
	}
	return f
}

// handler serves the pages of the fixture.
func (f *fixture) handler() *web.Handler {
	return web.New(f.db, web.Options{DB: "sgtune.db", Evidence: f.root.Name(), Version: "v1", Commands: f.db})
}

// study stores one study in the state of its name.
func (f *fixture) study(name string, at time.Time) {
	r := &tuner.Record{
		Name: name, State: tuner.StudyComplete, Host: "gpu-box", Objective: "output_tok_s", BaselineConfig: todayConfig, Confirm: 5,
		CreatedAt: at, StartedAt: at, EndedAt: at.Add(8*time.Hour + 31*time.Minute), Releases: "clean: verified after the last trial",
		Server: sglang.Server{Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "/models/K", Flags: sglang.Config{"tp-size": 8.0, "trust-remote-code": true}},
	}
	low, high := 0.116, 0.169
	v := &tuner.Verdict{
		Answer: benchmark.AnswerBetter, Gain: 0.142, Low: &low, High: &high, Trial: 2, Config: betterConfig, BaselineValue: 1842.4, Value: 2104.2, Level: 120, Launches: 5,
		Why: "trial 2 has the highest value, 2104", Text: "better: trial 2 makes more", Looked: 0.03, Detectable: 0.021,
		Notes: []string{"All 88,000 requests in 22.4 h instead of 29.8 h."},
	}
	r.Verdict = v
	const held = "dirty: the host is not clean: GPU 3 still holds 71.2 GB (pid 48213, python3); free it (sgtune reclaim), then run sgtune tune again"
	switch name {
	case "keep":
		v.Answer, v.Gain, low, high, v.Notes = benchmark.AnswerNoDifference, 0.008, -0.011, 0.026, nil
	case "worse":
		v.Answer, v.Gain, low, high, v.Notes = benchmark.AnswerWorse, -0.024, -0.039, -0.010, nil
	case "unconfirmed":
		v.Answer, v.Low, v.High, v.Launches, v.Notes, r.Simulated = benchmark.AnswerNotConfirmed, nil, nil, 1, nil, true
		v.Text = "not confirmed: trial 2 makes 2,104 output tok/s at 120 clients against the baseline's 1,842 output tok/s (+14.2%), but only 1 launch of each side; an answer needs 3"
	case "dirty":
		r.Verdict, r.State, r.Releases, r.Reason = nil, tuner.StudyStopped, held, "the host is not clean"
	case "dirty-better":
		r.Releases = held
	case "running", "begun":
		r.Verdict, r.State, r.EndedAt, r.Releases = nil, tuner.StudyRunning, time.Time{}, ""
	case "allfailed":
		r.Verdict, r.State, r.Reason = nil, tuner.StudyStopped, "stopped: the same failure came 3 times before anything ran: gpu_oom / prefill / prefill_activation (GPU 3 ran out); repair that, then run the study again"
	case "stopped":
		r.Verdict, r.State, r.Reason = nil, tuner.StudyStopped, "stopped by a person"
	}
	if err := f.db.SaveStudy(f.t.Context(), r); err != nil {
		f.t.Fatal(err)
	}
	if name != "begun" {
		f.trials(r, at)
	}
}

// trials stores the trials of a study and some of their evidence.
func (f *fixture) trials(r *tuner.Record, at time.Time) {
	start := at
	save := func(t *trial.Trial) {
		t.Study, t.CreatedAt, t.Dir = r.Name, start, fmt.Sprint(t.Number)
		t.StartedAt = start
		if t.State.Finished() {
			start = start.Add(14 * time.Minute)
			t.EndedAt = start
		}
		if err := f.db.SaveTrial(f.t.Context(), t); err != nil {
			f.t.Fatal(err)
		}
	}
	oom := func(n int, fraction float64) *trial.Trial {
		return &trial.Trial{
			Number: n, Role: trial.RoleSearch, State: trial.Failed, Config: sglang.Config{"mem-fraction-static": fraction, "hicache-size": 48.0}, Step: trial.StepCanary,
			Steps: map[trial.Step]time.Duration{trial.StepWait: 531 * time.Second, trial.StepCanary: 58 * time.Second}, Release: trial.ReleaseVerified,
			Verdict: trial.Verdict{
				Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Blames: trial.BlameYes, Advice: []string{"lower_mem_fraction"},
				Text: "GPU 3 ran out of memory in prefill, 6 min 12 s into the load: it wanted 1.75 GiB, 0.82 GB was free", Evidence: evidenceText + nasty, Line: 2481, Also: []int{2490},
			},
		}
	}
	if r.Name == "allfailed" {
		for n := range 3 {
			t := oom(n, 0.93)
			t.Role = trial.RoleBaseline
			save(t)
		}
		return
	}
	save(measured(0, trial.RoleBaseline, todayConfig, 1842.4, 4100))
	save(oom(1, 0.93))
	f.log(r.Name, 1)
	save(measured(2, trial.RoleSearch, betterConfig, 2121, 4400))
	save(oom(3, 0.915))
	busy := oom(4, 0.87)
	busy.Verdict = trial.Verdict{Outcome: trial.EnvFault, Phase: sglang.PhaseLaunch, Cause: "port_in_use", Blames: trial.BlameNo, Text: "port 30000 is in use by pid 811 (" + nasty + ")"}
	save(busy)
	pruned := measured(5, trial.RoleSearch, sglang.Config{"mem-fraction-static": 0.8, "env.X": nasty}, 1500, 4000)
	pruned.State, pruned.Void = trial.Pruned, "another process used the GPUs "+nasty
	save(pruned)
	if r.Name == "running" {
		now := measured(6, trial.RoleSearch, sglang.Config{"mem-fraction-static": 0.89}, 0, 0)
		now.State, now.Step, now.Value, now.Best, now.Plan = trial.Running, trial.StepMeasure, nil, 0, []int{80, 120, 160}
		save(now)
		for _, e := range []tuner.Event{{Kind: "plan", Text: "trial 5 is pruned. 11 more trials of 14 min fit, then 10 confirmation launches (2 h 20 min); done about 06:40"}, {Kind: "finding", Text: nasty}} {
			if err := f.db.AddEvent(f.t.Context(), r.Name, e); err != nil {
				f.t.Fatal(err)
			}
		}
		return
	}
	for i := range 5 {
		save(measured(6+2*i, trial.RoleConfirm, todayConfig, 1842.4+float64(i), 4100+float64(40*i)))
		save(measured(7+2*i, trial.RoleConfirm, betterConfig, 2104.2+float64(i), 4380-float64(30*i)))
	}
	if err := f.db.AddEvent(f.t.Context(), r.Name, tuner.Event{At: at, Kind: "reject", Text: "host RAM: hicache-size 56 takes 8 ranks x 56.0 GB = 448.0 GB of host pools " + nasty}); err != nil {
		f.t.Fatal(err)
	}
}

// measured is a trial that ran.
func measured(n int, role trial.Role, c sglang.Config, value, ttft float64) *trial.Trial {
	report := &benchmark.Report{OutputTokS: value, OutputLow: 0.989 * value, OutputHigh: 1.011 * value, Valid: true, Seconds: 120, CacheHitRatio: 0.21, CacheState: benchmark.CacheWarm}
	report.Requests.Sent, report.Requests.OK, report.Requests.Failed = 402, 400, map[string]int{"reset": 2}
	report.TTFTms, report.TPOTms = &benchmark.Distribution{P50: ttft / 2, P95: ttft}, &benchmark.Distribution{P50: 31, P95: 48}
	return &trial.Trial{
		Number: n, Role: role, State: trial.Complete, Step: trial.StepSave, Config: c, Value: &value, Best: 120, SGLang: "0.5.10",
		Verdict: trial.Verdict{Outcome: trial.OK, Phase: sglang.PhaseDecode, Cause: "none", Text: "it ran"},
		Levels:  []trial.Level{{Concurrency: 80, Report: report}, {Concurrency: 120, Report: report}, {Concurrency: 160}},
		Memory:  sglang.Observation{TP: 8, KVDtype: "torch.bfloat16", Tokens: 159277, AfterGraphGiB: 5.47, HostPoolGB: 48},
		Steps:   map[trial.Step]time.Duration{trial.StepLaunch: 4 * time.Second, trial.StepWait: 531 * time.Second, trial.StepCanary: 58 * time.Second, trial.StepMeasure: 120 * time.Second},
		Release: trial.ReleaseVerified, LowWater: 2 << 30, MinRAM: 71e9, MaxRunning: 41,
		Argv: []string{"python3", "-m", "sglang.launch_server", "--model-path", "/models/a 'b' <c>", "--mem-fraction-static", "0.88"},
		Why:  "explores mem-fraction-static " + nasty,
	}
}

const evidenceText = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."

// log writes a log of 2,632 lines whose evidence is line 2,481.
func (f *fixture) log(study string, number int) {
	f.t.Helper()
	var b strings.Builder
	for i := 1; i <= 2632; i++ {
		switch {
		case i == 2481:
			fmt.Fprintf(&b, "[2026-01-01 22:12:09 TP3] %s%s\n", evidenceText, nasty)
		case i == 2490:
			fmt.Fprintf(&b, "[2026-01-01 22:12:09 TP4] %s\n", evidenceText)
		case i == 2483:
			b.WriteString("\x1b[31mred\x1b[0m \xff\xfe " + strings.Repeat("x", 9000) + "\n")
		case i%500 == 0:
			fmt.Fprintf(&b, "[2026-01-01 22:00:00 TP%d] WARNING: line %d\n", i%8, i)
		default:
			fmt.Fprintf(&b, "[2026-01-01 22:00:00 TP%d] Decode batch, #running-req: 41, line %d\n", i%8, i)
		}
	}
	f.write(study, number, "server.log", b.String())
}

// write puts a file into a trial's folder.
func (f *fixture) write(study string, number int, name, text string) {
	f.t.Helper()
	dir := filepath.Join(study, fmt.Sprint(number))
	if err := f.root.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := f.root.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// multiply copies a study's last trial until it has so many.
func (f *fixture) multiply(study string, total int) {
	f.t.Helper()
	raw, err := sql.Open("sqlite3", f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	var columns string
	if err := raw.QueryRowContext(f.t.Context(), "SELECT group_concat(name) FROM pragma_table_info('trials') WHERE name NOT IN ('study_id', 'number', 'role')").Scan(&columns); err != nil {
		f.t.Fatal(err)
	}
	_, err = raw.ExecContext(f.t.Context(), `WITH RECURSIVE n(i) AS (SELECT (SELECT max(number) + 1 FROM trials WHERE study_id = (SELECT id FROM studies WHERE name = ?1))
		UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
		INSERT INTO trials (study_id, number, role, `+columns+`) SELECT t.study_id, n.i, 'search', `+columns+` FROM trials AS t, n
		WHERE t.study_id = (SELECT id FROM studies WHERE name = ?1) AND t.number = 2`, study, total)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := raw.ExecContext(f.t.Context(), "UPDATE studies SET revision = revision + 1 WHERE name = ?", study); err != nil {
		f.t.Fatal(err)
	}
}
