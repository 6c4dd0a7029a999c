package webbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// States are the ways in which a study can stand; Stand makes each.
var States = []string{"better", "keep", "worse", "unconfirmed", "dirty", "dirty-better", "running", "begun", "allfailed", "stopped", "broken-log"}

// Nasty is what stands in texts of the studies of Stand and must stay text on every page.
const Nasty = `<script>alert(1)</script></textarea>`

// Evidence is the line of a log that says why trial 1 of a study of Stand failed.
const Evidence = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."

var (
	today  = sglang.Config{"mem-fraction-static": 0.85}
	better = sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0}
)

// Stand stores a study in the state of its name, begun at a time, with its trials and some of their evidence.
func Stand(ctx context.Context, db *store.DB, evidence *os.Root, name string, at time.Time) error {
	r := &tuner.Record{
		Name: name, State: tuner.StudyComplete, Host: "gpu-box", Objective: "output_tok_s", BaselineConfig: today, Confirm: 5,
		CreatedAt: at, StartedAt: at, EndedAt: at.Add(8*time.Hour + 31*time.Minute), Releases: "clean: verified after the last trial",
		Server: sglang.Server{Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "/models/K", Flags: sglang.Config{"tp-size": 8.0, "trust-remote-code": true}},
	}
	low, high := 0.116, 0.169
	v := &tuner.Verdict{
		Answer: benchmark.AnswerBetter, Gain: 0.142, Low: &low, High: &high, Trial: 2, Config: better, BaselineValue: 1842.4, Value: 2104.2, Level: 120, Launches: 5,
		Why: "trial 2 has the highest value, 2,104 output tok/s", Text: "better: trial 2 makes more", Looked: 0.03, Detectable: 0.021,
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
	night := Night{Record: r}
	if name != "begun" {
		night.stand(at)
	}
	if err := Fill(ctx, db, night); err != nil || name == "begun" || name == "allfailed" {
		return err
	}
	return writeLog(evidence, filepath.Join(name, "1"))
}

// stand gives a night the trials and events of the state of its name.
func (n *Night) stand(at time.Time) {
	start, name := at, n.Record.Name
	save := func(t *trial.Trial) {
		t.Study, t.CreatedAt, t.Dir = name, start, fmt.Sprint(t.Number)
		t.StartedAt = start
		if t.State.Finished() {
			start = start.Add(14 * time.Minute)
			t.EndedAt = start
		}
		n.Trials = append(n.Trials, t)
	}
	if name == "allfailed" {
		for i := range 3 {
			t := ranOut(i, 0.93)
			t.Role = trial.RoleBaseline
			save(t)
		}
		return
	}
	save(Measured(0, trial.RoleBaseline, today, 1842.4, 4100))
	save(ranOut(1, 0.93))
	save(Measured(2, trial.RoleSearch, better, 2121, 4400))
	save(ranOut(3, 0.915))
	busy := ranOut(4, 0.87)
	busy.Verdict = trial.Verdict{Outcome: trial.EnvFault, Phase: sglang.PhaseLaunch, Cause: "port_in_use", Blames: trial.BlameNo, Text: "port 30000 is in use by pid 811 (" + Nasty + ")"}
	save(busy)
	pruned := Measured(5, trial.RoleSearch, sglang.Config{"mem-fraction-static": 0.8, "env.X": Nasty}, 1500, 4000)
	pruned.State, pruned.Void = trial.Pruned, "another process used the GPUs "+Nasty
	save(pruned)
	if name == "running" {
		now := Measured(6, trial.RoleSearch, sglang.Config{"mem-fraction-static": 0.89}, 0, 0)
		now.State, now.Step, now.Value, now.Best, now.Plan = trial.Running, trial.StepMeasure, nil, 0, []int{80, 120, 160}
		save(now)
		n.Events = []tuner.Event{
			{Kind: "plan", Text: "trial 5 is pruned. 11 more trials of 14 min fit, then 10 confirmation launches (2 h 20 min); done about 06:40"},
			{Kind: "finding", Text: Nasty},
		}
		return
	}
	for i := range 5 {
		save(Measured(6+2*i, trial.RoleConfirm, today, 1842.4+float64(i), 4100+float64(40*i)))
		save(Measured(7+2*i, trial.RoleConfirm, better, 2104.2+float64(i), 4380-float64(30*i)))
	}
	n.Events = []tuner.Event{{At: at, Kind: "reject", Text: "host RAM: hicache-size 56 takes 8 ranks x 56.0 GB = 448.0 GB of host pools " + Nasty}}
}

// ranOut is a trial that ran out of GPU memory.
func ranOut(n int, fraction float64) *trial.Trial {
	return &trial.Trial{
		Number: n, Role: trial.RoleSearch, State: trial.Failed, Config: sglang.Config{"mem-fraction-static": fraction, "hicache-size": 48.0}, Step: trial.StepCanary,
		Steps: map[trial.Step]time.Duration{trial.StepWait: 531 * time.Second, trial.StepCanary: 58 * time.Second}, Release: trial.ReleaseVerified,
		Verdict: trial.Verdict{
			Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Blames: trial.BlameYes, Advice: []string{"lower_mem_fraction"},
			Text: "GPU 3 ran out of memory in prefill, 6 min 12 s into the load: it wanted 1.75 GiB, 0.82 GB was free", Evidence: Evidence + Nasty, Line: 2481, Also: []int{2490},
		},
	}
}

// Measured is a trial that ran.
func Measured(n int, role trial.Role, c sglang.Config, value, ttft float64) *trial.Trial {
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
		Why:  "explores mem-fraction-static " + Nasty,
	}
}

// writeLog writes a log of 2,632 lines whose evidence is line 2,481.
func writeLog(evidence *os.Root, folder string) error {
	var b strings.Builder
	for i := 1; i <= 2632; i++ {
		switch {
		case i == 2481:
			fmt.Fprintf(&b, "[2026-01-01 22:12:09 TP3] %s%s\n", Evidence, Nasty)
		case i == 2490:
			fmt.Fprintf(&b, "[2026-01-01 22:12:09 TP4] %s\n", Evidence)
		case i == 2483:
			b.WriteString("\x1b[31mred\x1b[0m \xff\xfe " + strings.Repeat("x", 9000) + "\n")
		case i%500 == 0:
			fmt.Fprintf(&b, "[2026-01-01 22:00:00 TP%d] WARNING: line %d\n", i%8, i)
		default:
			fmt.Fprintf(&b, "[2026-01-01 22:00:00 TP%d] Decode batch, #running-req: 41, line %d\n", i%8, i)
		}
	}
	if err := evidence.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	if err := evidence.WriteFile(filepath.Join(folder, "server.log"), []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	return nil
}
