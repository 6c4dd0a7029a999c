package tuner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
)

// Report is what `sgtune check` says: everything that can be known before a minute is spent.
type Report struct {
	Study      string      `json:"study"`
	Simulated  bool        `json:"simulated"`
	Understood []Section   `json:"understood"`
	Space      SpaceReport `json:"space"`
	Host       []Row       `json:"host"`
	Plan       PlanReport  `json:"plan"`
	Notes      []string    `json:"notes"`   // what was decided or could not be checked
	Against    []string    `json:"against"` // why not to leave it alone
	Ready      bool        `json:"ready"`
	Verdict    string      `json:"verdict"` // "Ready to leave alone: yes, because ..."
}

// Section is one table of what was understood.
type Section struct {
	Title string `json:"title"`
	Rows  []Row  `json:"rows"`
}

// Row is one line of a table.
type Row struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// SpaceReport counts configurations.
type SpaceReport struct {
	Configurations int          `json:"configurations"` // different ones: dead knobs do not count
	Admitted       int          `json:"admitted"`
	Exact          bool         `json:"exact"` // false: counted in a sample and scaled up
	Excluded       []RuleReport `json:"excluded"`
	LeftOut        []string     `json:"left_out"` // values a rule took out of the space
}

// RuleReport is what one rule excludes, with the first configuration it met.
type RuleReport struct {
	Rule           string        `json:"rule"`
	Configurations int           `json:"configurations"`
	Example        sglang.Config `json:"example"`
	Text           string        `json:"text"` // why the example is excluded, with its numbers
}

// PlanReport is how the budget is expected to be spent. Times are host time.
type PlanReport struct {
	Ready    time.Duration // start-up of one server
	Trial    time.Duration // one search trial, at most
	Full     time.Duration // one trial that measures every load level, at most
	Learnt   bool          // from trials of this study; else from the file
	Reserve  time.Duration // kept for the confirmation
	Launches int           // confirmation launches each side
	Trials   int           // baseline and search trials that fit, -1 = no limit
	Ends     time.Time     // at the latest, zero = no limit
	Deadline time.Time     // by the budget, zero = none
	RealTime time.Duration // until Ends on this machine's clock (simulated hosts run faster), 0 = the same
	Text     string
}

// CheckInput is what a check looks at beside the study.
type CheckInput struct {
	Facts    HostFacts
	History  []*trial.Trial // of this study, nil before its first run
	Now      time.Time      // host time
	Workload []Row          // summary of the workload file
	Rows     int            // usable rows of the workload, 0 = none
	Reuse    float64        // share of prompt tokens an endless prefix cache would serve
	Flags    []string       // flags the installed server does not take, a line each
	Server   string         // the installed SGLang in words: its version and flags, "" = not known
	Notes    []string       // what could not be checked, and why
	Against  []string       // further reasons not to leave it alone
	Sampled  bool           // count a space of more than a few thousand configurations in a sample: somebody waits
}

// Check puts together what is known about a study before it runs.
func Check(s *Study, in CheckInput) *Report {
	r := &Report{Study: s.Name, Simulated: s.Simulated, Understood: understood(s, in)}
	admission := NewAdmission(s, in.History, in.Facts, nil)
	r.Space = countSpace(s, admission, in.Sampled)
	for _, e := range s.Excluded {
		r.Space.LeftOut = append(r.Space.LeftOut, e.Text)
	}
	r.Host = hostRows(in.Facts)
	if s.Host.Kind == HostSlurm {
		r.Host = s.Host.jobRows(in.Facts)
	}
	r.Plan = planReport(s, in)
	notes, conflicts := combinationNotes(s)
	r.Notes = slices.Concat(s.Notes, checkNotes(s, in), containerNotes(s), notes, in.Notes)
	r.Against = append(against(s, in, r), conflicts...)
	r.Ready = len(r.Against) == 0
	if r.Ready {
		r.Verdict = "Ready to leave alone: yes, because " + readyBecause(s, r)
	} else {
		r.Verdict = "Ready to leave alone: no, because " + strings.Join(r.Against, "; ")
	}
	return r
}

func readyBecause(s *Study, r *Report) string {
	free := "nobody else holds the GPUs"
	switch {
	case s.Host.Kind == HostSlurm:
		free = "Slurm would take their jobs"
	case len(s.Before) > 0:
		free = "before: frees the GPUs"
	}
	end := "the budget ends it"
	switch {
	case r.Plan.RealTime > 0:
		end = fmt.Sprintf("it ends within %s (the simulated host runs %s times faster)", FormatDuration(r.Plan.RealTime), sglang.FormatValue(s.Host.TimeScale))
	case !r.Plan.Ends.IsZero():
		end = "it ends about " + r.Plan.Ends.Format("Mon 15:04")
	}
	admitted := plural(r.Space.Admitted, "configuration is", "configurations are")
	return fmt.Sprintf("%s admitted, %s, and %s", admitted, free, end)
}

// against lists the reasons not to go to bed.
func against(s *Study, in CheckInput, r *Report) []string {
	var out []string
	f := in.Facts
	if r.Space.Admitted == 0 {
		out = append(out, "no configuration of the space is admitted")
	}
	if held := holders(f); len(held) > 0 && len(s.Before) == 0 {
		out = append(out, "GPU memory is held by "+strings.Join(held, ", ")+", and there is no before: to free it")
	}
	if len(f.Residents) > 0 && len(s.Before) == 0 {
		out = append(out, strings.Join(f.Residents, "; ")+", and there is no before: to do that")
	}
	if f.GPUFault != "" {
		out = append(out, f.GPUFault)
	}
	if why := guardAgainst(s, f); why != "" {
		out = append(out, why)
	}
	if len(f.PortHolders) > 0 && len(s.Before) == 0 {
		out = append(out, fmt.Sprintf("port %d is taken by %s", s.Port, strings.Join(f.PortHolders, ", ")))
	}
	if f.Lease != "" {
		out = append(out, "another sgtune holds this host: "+f.Lease)
	}
	if r.Plan.Trials >= 0 && r.Plan.Trials < 2 {
		out = append(out, fmt.Sprintf("the budget has room for %d trials beside the confirmation; it takes at least 2, the baseline and one more", max(0, r.Plan.Trials)))
	}
	out = append(out, in.Flags...)
	return append(out, in.Against...)
}

// heldBytes is GPU memory in use above which somebody must be using it: drivers alone take less.
const heldBytes = 1 << 30

// holders says who holds GPU memory.
func holders(f HostFacts) []string {
	var out []string
	for _, g := range f.GPUs {
		switch {
		case len(g.Holders) > 0:
			for _, h := range g.Holders {
				out = append(out, fmt.Sprintf("%s on GPU %d", h, g.Index))
			}
		case g.Used > heldBytes:
			out = append(out, fmt.Sprintf("somebody outside this container or machine on GPU %d (%s in use)", g.Index, gib(g.Used)))
		}
	}
	return out
}

func checkNotes(s *Study, in CheckInput) []string {
	var out []string
	f := in.Facts
	if f.Available() < 0 {
		out = append(out, "Free host RAM is not known, so only ram_budget limits host pools.")
	}
	if f.GPUNote != "" && s.Host.Kind != HostSlurm {
		out = append(out, "No GPU facts: "+strings.TrimPrefix(f.GPUNote, "no GPU facts: ")+". Trials will end \"release not verified\".")
	}
	for _, own := range f.Residents {
		if len(s.Before) > 0 {
			out = append(out, "Still running: "+own+". A before: that does not stop it leaves the host held.")
		}
	}
	if f.Leftovers > 0 {
		out = append(out, fmt.Sprintf("%d processes of an earlier run are still there; tune ends them first.", f.Leftovers))
	}
	if d, searched := s.Space.Dim(hicacheSize); searched && len(d.Values) > 1 && in.Rows > 0 && in.Reuse < leastReuse {
		out = append(out, fmt.Sprintf("The workload repeats %.1f%% of its prompt tokens: the hierarchical cache has nothing to keep, so no fill is made.", 100*in.Reuse))
	}
	return out
}

// leastReuse is the share of repeated prompt tokens below which the hierarchical cache is worth neither a fill
// nor a trial.
const leastReuse = 0.02

const (
	exactLimit = 200_000 // configurations that are all looked at
	sampleSize = 20_000
)

// countSpace asks the admission about every configuration, or about a sample of a large space.
func countSpace(s *Study, a *Admission, sampled bool) SpaceReport {
	limit := exactLimit
	if sampled {
		limit = sampleSize
	}
	r := SpaceReport{Exact: s.Space.Size() <= limit}
	byRule := map[string]*RuleReport{}
	var order []*RuleReport
	base := s.SearchBase()
	judge := func(point sglang.Config) {
		r.Configurations++
		c := Canonical(sglang.Merge(base, point))
		err := a.Admit(c)
		if err == nil {
			r.Admitted++
			return
		}
		rule, text := "other", err.Error()
		var why *Infeasible
		if errors.As(err, &why) {
			rule, text = why.Rule, why.Text
		}
		e := byRule[rule]
		if e == nil {
			e = &RuleReport{Rule: rule, Example: point, Text: text}
			byRule[rule] = e
			order = append(order, e)
		}
		e.Configurations++
	}
	if r.Exact {
		for c := range s.Space.All() {
			judge(c)
		}
	} else {
		sample(s.Space, judge)
		scale := float64(s.Space.Size()) / float64(sampleSize)
		r.Configurations, r.Admitted = s.Space.Size(), ofWhole(r.Admitted, scale)
		for _, e := range order {
			e.Configurations = ofWhole(e.Configurations, scale)
		}
	}
	for _, e := range order {
		r.Excluded = append(r.Excluded, *e)
	}
	return r
}

// ofWhole is a count of a sample as one of the whole, which may be larger than any number.
func ofWhole(n int, scale float64) int { return int(min(float64(n)*scale, 1e18)) }

func sample(space Space, judge func(sglang.Config)) {
	draw := rand.New(rand.NewPCG(1, 2)) // the same sample at every check
	index := make([]int, len(space))
	for range sampleSize {
		for i, d := range space {
			index[i] = draw.IntN(len(d.Values))
		}
		judge(space.Config(index))
	}
}
