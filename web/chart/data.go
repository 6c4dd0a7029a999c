package chart

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// Knobs of the map of memory.
const (
	memFraction = "mem-fraction-static"
	hicacheSize = "hicache-size"
)

// Data is a study as its charts see it.
type Data struct {
	Record *tuner.Record
	Rows   []Row // by number
	Events []tuner.Event

	knobs  knobTable
	models []*trial.Trial // what the arithmetic is shown
	newest []*trial.Trial // while trials are collected
	drawn  *Area          // the map of memory, once it was asked for
}

// Row is one trial. Figures that are not there are NaN.
type Row struct {
	Number  int
	Role    trial.Role
	Class   int // index into Classes
	Outcome string
	Void    bool
	Started time.Time // zero until launched
	Ended   time.Time // zero until finished
	Steps   [len(stepNames)]float32

	Value     float64       // objective, in its own unit
	Low, High float64       // 95% interval of Value, where the objective has one
	TTFT      float64       // 95th percentile at the level of Value, seconds
	Clients   int           // that level
	Levels    []Level       // as measured
	Fraction  float64       // mem-fraction-static, as set or as the log resolved it
	Pool      float64       // hicache-size, GB a rank
	knobs     []int16       // index of each knob's value, -1 = not set
	settings  sglang.Config // of a row that raised the best so far, nil else
}

// Level is one measured load level. Figures that are not there are NaN.
type Level struct {
	Clients   int
	Tokens    float64 // output tok/s
	Low, High float64
	TTFT      float64 // 95th percentile, seconds
}

// stepNames are the steps of a trial in order, as the night's bars show them.
var stepNames = [...]trial.Step{
	trial.StepAdmit, trial.StepLaunch, trial.StepWait, trial.StepCanary, trial.StepQuality, trial.StepWarmup, trial.StepMeasure, trial.StepStop,
	trial.StepReclaim, trial.StepSave,
}

// Collect folds a study's trials into rows. walk calls its visitor for each trial, oldest first; a visited trial is
// not kept, but for the facts that the arithmetic of memory needs.
func Collect(r *tuner.Record, events []tuner.Event, walk func(visit func(*trial.Trial) error) error) (*Data, error) {
	d := &Data{Record: r, Events: events, knobs: newKnobTable()}
	best := nan
	err := walk(func(t *trial.Trial) error {
		r := d.row(t)
		if r.Role != trial.RoleConfirm && r.counts() && !(best >= r.Value) {
			best, r.settings = r.Value, t.Config
		}
		d.Rows = append(d.Rows, r)
		d.remember(t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.models = append(d.models, d.newest...)
	slices.SortFunc(d.models, func(a, b *trial.Trial) int { return cmp.Compare(a.Number, b.Number) })
	d.knobs.finish(d.Rows)
	return d, nil
}

// newestKept is how many trials beside the proven failures of memory the arithmetic is shown.
const newestKept = 1000

// remember keeps what memory arithmetic needs of a trial: of every failure for want of memory, and of the newest others.
func (d *Data) remember(t *trial.Trial) {
	m := &trial.Trial{
		Number: t.Number, Role: t.Role, State: t.State, Config: t.Config, Void: t.Void, Value: t.Value, Best: t.Best,
		Verdict: trial.Verdict{Outcome: t.Verdict.Outcome, Phase: t.Verdict.Phase, Cause: t.Verdict.Cause, Blames: t.Verdict.Blames},
		Memory:  t.Memory, LowWater: t.LowWater, OwnRAM: t.OwnRAM, MinRAM: t.MinRAM, StartedAt: t.StartedAt,
	}
	if c := classOf(t); t.Role == trial.RoleBaseline || c == classGPU || c == classHost {
		d.models = append(d.models, m)
		return
	}
	if d.newest = append(d.newest, m); len(d.newest) == 2*newestKept {
		d.newest = append(make([]*trial.Trial, 0, 2*newestKept), d.newest[newestKept:]...)
	}
}

func (d *Data) row(t *trial.Trial) Row {
	r := Row{
		Number: t.Number, Role: t.Role, Class: classOf(t), Outcome: string(t.Verdict.Outcome), Void: t.Void != "",
		Started: t.StartedAt, Ended: t.EndedAt, Value: math.NaN(), Low: math.NaN(), High: math.NaN(), TTFT: math.NaN(),
		Clients: t.Best, Fraction: math.NaN(), knobs: d.knobs.add(t.Config),
	}
	for i, s := range stepNames {
		r.Steps[i] = float32(t.Steps[s].Seconds())
	}
	if t.State == trial.Complete && t.Value != nil {
		r.Value = *t.Value
	}
	for _, l := range t.Levels {
		if l.Report == nil {
			continue
		}
		level := levelOf(l)
		r.Levels = append(r.Levels, level)
		if l.Concurrency != t.Best || math.IsNaN(r.Value) {
			continue
		}
		r.TTFT = level.TTFT
		if d.Record.Objective == "" || d.Record.Objective == "output_tok_s" {
			r.Low, r.High = level.Low, level.High
		}
	}
	r.place(t)
	return r
}

// place is where a trial stands on the map of memory.
func (r *Row) place(t *trial.Trial) {
	if f, ok := t.Config.Float(memFraction); ok {
		r.Fraction = f
	} else if t.Memory.Fraction > 0 {
		r.Fraction = t.Memory.Fraction
	}
	if p, ok := t.Config.Float(hicacheSize); ok {
		r.Pool = p
	}
}

func levelOf(l trial.Level) Level {
	out := Level{Clients: l.Concurrency, Tokens: l.Report.OutputTokS, Low: math.NaN(), High: math.NaN(), TTFT: math.NaN()}
	if l.Report.OutputHigh > 0 {
		out.Low, out.High = l.Report.OutputLow, l.Report.OutputHigh
	}
	if l.Report.TTFTms != nil {
		out.TTFT = l.Report.TTFTms.P95 / 1000
	}
	return out
}

// counts reports whether a row's value is ranked.
func (r *Row) counts() bool { return !math.IsNaN(r.Value) && !r.Void }

// top is the row to look at: the confirmed candidate after a verdict, else the highest value of the search; nil
// without any.
func (d *Data) top() *Row {
	var best *Row
	for i := range d.Rows {
		r := &d.Rows[i]
		if v := d.Record.Verdict; v != nil && r.Number == v.Trial && r.counts() && v.Trial > 0 {
			return r
		}
		if r.Role != trial.RoleConfirm && r.counts() && (best == nil || r.Value > best.Value) {
			best = r
		}
	}
	return best
}

// first is the baseline row with a value, nil without one.
func (d *Data) first() *Row {
	for i := range d.Rows {
		if r := &d.Rows[i]; r.Role == trial.RoleBaseline && r.counts() {
			return r
		}
	}
	return nil
}

// topConfig is the configuration of top, what runs today without one.
func (d *Data) topConfig() sglang.Config {
	if v, top := d.Record.Verdict, d.top(); v != nil && top != nil && v.Trial == top.Number {
		return v.Config
	} else if top != nil {
		return top.settings
	}
	return d.Record.BaselineConfig
}

// Finished counts the trials that ended.
func (d *Data) Finished() int {
	n := 0
	for i := range d.Rows {
		if c := d.Rows[i].Class; c != classWaiting && c != classRunning {
			n++
		}
	}
	return n
}
