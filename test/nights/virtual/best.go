package virtual

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"sgtune/internal/simulator"
	"sgtune/sglang"
	"sgtune/tuner"
)

// Best is what brute force found out about a study: the figures that a night is judged by.
type Best struct {
	Study    string        `json:"study"`
	Profile  string        `json:"profile"`
	Date     string        `json:"date"`
	Commit   string        `json:"commit"`
	Space    int           `json:"space"`        // configurations, admitted or not
	Admitted int           `json:"admitted"`     // of those, admitted
	Runs     int           `json:"runs"`         // noise-free runs of simulator.Run, different configurations first
	Drawn    int           `json:"drawn"`        // admitted configurations drawn at random and launched as in a night
	Failing  float64       `json:"failing"`      // share of those that did not live
	LongRuns int           `json:"long_runs"`    // noise-free launches of an hour a level: the best of the runs, and the climb
	Screened float64       `json:"best_of_runs"` // long value of the best configuration before the climb
	Config   sglang.Config `json:"config"`       // the best one
	Value    float64       `json:"value"`        // its long value
	LowGiB   float64       `json:"low_gib"`      // free GPU memory that it leaves under load
	Baseline float64       `json:"baseline"`     // long value of what runs today
	Distance float64       `json:"distance"`     // 1 - baseline/value
}

// Sizes of the search for the best.
const (
	drawn     = 1000 // launches for the share that fails
	repeated  = 600  // of the runs, which are run again with other rows first
	finalists = 60   // of those, which are launched at length
	climbers  = 5    // of those, from which a climb starts
)

// finder is the search for the best of one study.
type finder struct {
	*Judge
	long     *Judge
	baseline Outcome
	fill     int // prompt tokens before a run is measured
	admit    func(sglang.Config) error
	judged   map[string]Outcome // long, by key
	show     func(format string, args ...any)
}

// candidate is a configuration with its worth.
type candidate struct {
	c sglang.Config
	o Outcome
}

// FindBest makes at least runs noise-free runs of admitted configurations at the busiest level, launches the best of
// them at length, and climbs from there: one knob at a time to every other value near it, as long as that is
// better. A space of fewer admitted configurations is searched in full, and again with other rows of the workload
// first until the runs are made. Show sees how it goes; it may be nil.
func FindBest(ctx context.Context, s *tuner.Study, runs int, show func(format string, args ...any)) (*Best, error) {
	j, err := NewJudge(s)
	if err != nil {
		return nil, err
	}
	if show == nil {
		show = func(string, ...any) {}
	}
	f := &finder{Judge: j, long: j.Long(), judged: map[string]Outcome{}, show: show}
	if f.baseline, err = f.atLength(ctx, s.Baseline); err != nil {
		return nil, err
	}
	if err := f.rules(ctx); err != nil {
		return nil, err
	}
	b := &Best{Study: s.Name, Profile: s.Host.Profile, Space: s.Space.Size(), Baseline: f.baseline.Value}
	order := f.order(b)
	if err := f.share(ctx, b, order); err != nil {
		return nil, err
	}
	list, err := f.screen(ctx, b, order, runs)
	if err != nil {
		return nil, err
	}
	top, err := f.climb(ctx, b, list)
	if err != nil {
		return nil, err
	}
	b.Config, b.Value, b.LowGiB, b.LongRuns = top.c, top.o.Value, top.o.LowGiB, len(f.judged)
	b.Distance = 1 - b.Baseline/b.Value
	return b, nil
}

// rules are those that hold for a launch whatever was learnt: what the baseline's log says is known.
func (f *finder) rules(ctx context.Context) error {
	base, err := f.Trial(ctx, f.study.Baseline, 0, Noise{Free: true})
	if err != nil {
		return err
	}
	host, err := machineOf(f.study)
	if err != nil {
		return err
	}
	f.fill = int(base.Cache.FillWanted)
	f.admit = tuner.NewAdmission(f.study, tuner.History{base}, host.facts, nil).Admit
	return nil
}

func (f *finder) atLength(ctx context.Context, c sglang.Config) (Outcome, error) {
	if o, known := f.judged[c.Key()]; known {
		return o, nil
	}
	o, err := f.long.Value(ctx, c, 0, Noise{Free: true})
	f.judged[c.Key()] = o
	return o, err
}

// order lists all admitted configurations in random order.
func (f *finder) order(b *Best) []sglang.Config {
	var all []sglang.Config
	for point := range f.study.Space.All() {
		if c := tuner.Canonical(sglang.Merge(f.study.SearchBase(), point)); f.admit(c) == nil {
			all = append(all, c)
		}
	}
	b.Admitted = len(all)
	rng := rand.New(rand.NewPCG(20261130, uint64(b.Space)))
	rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// share launches the first configurations as a night would and counts those that do not live.
func (f *finder) share(ctx context.Context, b *Best, order []sglang.Config) error {
	failed, busiest := 0, f.Busiest()
	for _, c := range order[:min(drawn, len(order))] {
		o, err := busiest.Value(ctx, c, 0, Noise{Free: true})
		if err != nil {
			return err
		}
		b.Drawn++
		if o.Failure != "" {
			failed++
		}
	}
	b.Failing = float64(failed) / float64(max(b.Drawn, 1))
	f.show("%s: %.1f%% of %d launches failed", b.Study, 100*b.Failing, b.Drawn)
	return nil
}

// screen makes the runs and ranks what was run.
func (f *finder) screen(ctx context.Context, b *Best, order []sglang.Config, runs int) ([]candidate, error) {
	var list []candidate
	for _, c := range order[:min(runs, len(order))] {
		o, err := f.run(ctx, b, c, 0)
		if err != nil {
			return nil, err
		}
		list = append(list, candidate{c, o})
	}
	byValue(list)
	again := list[:min(repeated, len(list))]
	for round := 1; round < 2 || b.Runs < runs; round++ { // a small space leaves runs over: its better half again
		if b.Runs+len(again) < runs {
			again = list[:max(len(again), len(list)/2)]
		}
		for i := range again {
			o, err := f.run(ctx, b, again[i].c, round)
			if err != nil {
				return nil, err
			}
			again[i].o.Value += (o.Value - again[i].o.Value) / float64(round+1)
		}
		byValue(again)
	}
	return again, nil
}

// run is one run in virtual time at the busiest level, with the rows that come first chosen by round.
func (f *finder) run(ctx context.Context, b *Best, c sglang.Config, round int) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	w := f.rows.sim
	w.Clients = f.study.Workload.Concurrency[len(f.study.Workload.Concurrency)-1]
	first := round * 997 % len(w.Rows)
	w.Rows = append(slices.Clone(w.Rows[first:]), w.Rows[:first]...)
	r, err := simulator.Run(sglang.Merge(f.study.Server.Flags, c), w, 0, simulator.Options{
		Profile: f.study.Host.Profile, RAMBytes: available(f.study), Canary: true, SettleS: 60, Fill: f.fill, MeasureS: 180, NoiseFree: true,
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("run %s: %w", c.Key(), err)
	}
	if b.Runs++; b.Runs%2000 == 0 {
		f.show("%s: %d runs", b.Study, b.Runs)
	}
	o := Outcome{Value: r.OutputTokS, LowGiB: r.LowWaterGiB, Level: w.Clients}
	if r.Failure != nil {
		o.Value, o.Failure = 0, r.Failure.Cause
	}
	return o, nil
}

// climb launches the best at length and goes from the best of those to better neighbours.
func (f *finder) climb(ctx context.Context, b *Best, list []candidate) (candidate, error) {
	var finals []candidate
	for _, x := range list[:min(finalists, len(list))] {
		o, err := f.atLength(ctx, x.c)
		if err != nil {
			return candidate{}, err
		}
		finals = append(finals, candidate{x.c, o})
	}
	byValue(finals)
	best := finals[0]
	b.Screened = best.o.Value
	f.show("%s: best of %d at length %.1f %s", b.Study, len(finals), best.o.Value, best.c.Key())
	for _, at := range finals[:min(climbers, len(finals))] {
		for better := true; better; {
			better = false
			for _, c := range f.neighbours(at.c) {
				o, err := f.atLength(ctx, c)
				if err != nil {
					return candidate{}, err
				}
				if o.Failure == "" && o.Value > at.o.Value {
					at, better = candidate{c, o}, true
				}
			}
		}
		f.show("%s: climbed to %.1f %s", b.Study, at.o.Value, at.c.Key())
		if at.o.Value > best.o.Value {
			best = at
		}
	}
	return best, nil
}

// neighbours are the admitted configurations that differ in one knob: by up to two steps of an ordered one, in
// any way for a choice.
func (f *finder) neighbours(c sglang.Config) []sglang.Config {
	var out []sglang.Config
	for _, d := range f.study.Space {
		at := d.Index(c[d.Name])
		for i, v := range d.Values {
			if i == at || d.Kind == tuner.Numeric && (i < at-2 || i > at+2) {
				continue
			}
			n := tuner.Canonical(sglang.Merge(c, sglang.Config{d.Name: v}))
			if f.admit(n) == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

func byValue(list []candidate) {
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(y.o.Value, x.o.Value) })
}

// Text is the result in a line.
func (b *Best) Text() string {
	return fmt.Sprintf("%s: best %.1f, baseline %.1f (%.1f%% below), %d runs and %d long ones, %.1f%% of %d random admitted configurations fail; %s",
		b.Study, b.Value, b.Baseline, 100*b.Distance, b.Runs, b.LongRuns, 100*b.Failing, b.Drawn, b.Config.Key())
}
