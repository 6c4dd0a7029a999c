package tuner

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sgtune/sglang"
)

// understood spells the study as it will run, defaults included.
func understood(s *Study, in CheckInput) []Section {
	return []Section{
		{Title: "Server", Rows: serverRows(s, in.Server)},
		{Title: "Space", Rows: spaceRows(s)},
		{Title: "Workload", Rows: workloadRows(s, in)},
		{Title: "Measuring", Rows: measureRows(s, in)},
		{Title: "Ending", Rows: endRows(s, in)},
	}
}

func workloadRows(s *Study, in CheckInput) []Row {
	rows := []Row{
		{"file", filepath.Base(s.Workload.File)},
		{"load levels", fmt.Sprintf("%s clients", join(s.Workload.Concurrency))},
		{"a level ends", fmt.Sprintf("at an interval of ±%s%%, at the latest after %s behind its warm-up", sglang.FormatValue(100*s.Workload.Target), FormatDuration(s.Workload.Cap))},
	}
	if s.Workload.Total > 0 {
		rows = append(rows, Row{"whole job", plural(s.Workload.Total, "request", "requests") + ": results say its hours, now and after"})
	}
	return append(rows, in.Workload...)
}

func serverRows(s *Study, installed string) []Row {
	command := s.Server.Command
	if len(command) == 0 {
		command = []string{"sgtune", "sim-server"}
	}
	shown := sglang.Server{Command: command, Model: s.Server.Model, Flags: s.Server.Flags, Version: s.Server.Version}
	for name := range shown.Flags {
		if secretName(name) {
			shown.Flags = sglang.Merge(shown.Flags, sglang.Config{name: "***"})
		}
	}
	rows := []Row{
		{"launch", sglang.Mask(strings.Join(shown.Argv(nil), " "))},
		{"baseline adds", pairs(s.Baseline)},
		{"other trials add", strings.TrimPrefix(pairs(outside(s.SearchBase(), s.Space))+", and the knobs of the space", "nothing, and ")},
		{"instruments", strings.Join(sglang.InstrumentNames(), ", ") + " (same for every trial, no part of a configuration)"},
		{"environment", env(s.Server.Env)},
		{"ranks", fmt.Sprint(Ranks(sglang.Merge(s.Server.Flags, s.Baseline)))},
		{"ready within", FormatDuration(s.ReadyTimeout)},
	}
	if installed != "" {
		rows = slices.Insert(rows, 0, Row{"installed", installed})
	}
	if c := s.Server.Container; c != nil {
		rows = append(rows, Row{"container", containerText(c)})
	}
	if s.Port > 0 {
		rows = append(rows, Row{"port", fmt.Sprint(s.Port)})
	}
	host := s.Host.Kind
	if host == HostSSH {
		host += " " + s.Host.Address
	}
	if host == HostSlurm {
		host = s.Host.slurmText()
	}
	if host == HostSimulated {
		host = fmt.Sprintf("SIMULATED %s, %s times faster than real, start-up %s", s.Host.Profile, sglang.FormatValue(s.Host.TimeScale), FormatDuration(s.Host.Startup))
	}
	return append([]Row{{"host", host}}, rows...)
}

func spaceRows(s *Study) []Row {
	var rows []Row
	for _, d := range s.Space {
		text := plural(len(d.Values), "value", "values") + ": " + some(d.Values)
		if knob, ok := sglang.Lookup(d.Name); ok && knob.Unit != "" {
			text += " " + knob.Unit
		}
		if d.Log {
			text += ", on a log scale"
		}
		rows = append(rows, Row{d.Name, text})
	}
	return rows
}

func measureRows(s *Study, in CheckInput) []Row {
	objective := s.Objective.Metric
	if limits := s.Objective.SLO.limits(); len(limits) > 0 {
		objective += " where " + strings.Join(limits, " and ") + " hold"
		if len(limits) == 1 {
			objective += "s"
		}
	}
	return []Row{
		{"objective", objective},
		{"quality", s.Quality + ": settings that may change answers stay out"},
		{"window", FormatDuration(s.Measure.Window)},
		{"canary", orNone(s.Measure.Canary)},
		{"fill", orNone(fillTime(s, in))},
		{"sampler", fmt.Sprintf("%s, seed %d", s.Sampler, s.Seed)},
	}
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return FormatDuration(d) + " at most"
}

func endRows(s *Study, in CheckInput) []Row {
	var limits []string
	if s.Budget.Trials > 0 {
		limits = append(limits, fmt.Sprintf("%d trials", s.Budget.Trials))
	}
	if s.Budget.Wall > 0 {
		limits = append(limits, FormatDuration(s.Budget.Wall))
	}
	if s.Budget.Until != "" {
		limits = append(limits, "until "+s.UntilText(in.Now.Location()))
	}
	confirm := fmt.Sprintf("auto: %d to 5 launches each side", autoConfirm)
	if s.Confirm > 0 {
		confirm = fmt.Sprintf("%s each side", plural(s.Confirm, "launch", "launches"))
	}
	rows := []Row{{"budget", strings.Join(limits, ", ") + ", whichever comes first"}, {"confirmation", confirm}}
	if len(limits) == 1 {
		rows[0].Text = limits[0]
	}
	if len(s.Before) > 0 {
		rows = append(rows, Row{"before", strings.Join(s.Before, " ")})
	}
	if len(s.After) > 0 {
		rows = append(rows, Row{"after", strings.Join(s.After, " ")})
	}
	rows = append(rows, Row{"finish", map[string]string{
		"best": "launches the winner if it is better, else the baseline", "baseline": "launches the baseline", "none": "launches nothing",
	}[s.Finish.Launch]})
	rows = append(rows, Row{"after a crash", s.recoverText()})
	rows = append(rows, guardRow(s)...)
	for _, n := range s.Finish.Notify {
		rows = append(rows, Row{"notify", sglang.Mask(n.Name())})
	}
	return rows
}

func hostRows(f HostFacts) []Row {
	rows := []Row{{"name", f.Name}}
	size := func(v int64) string {
		if v < 0 {
			return "not known"
		}
		return FormatSize(float64(v))
	}
	rows = append(rows, Row{"host RAM", size(f.MemAvailable) + " available of " + size(f.MemTotal)})
	if f.CgroupHeadroom >= 0 {
		rows = append(rows, Row{"cgroup", size(f.CgroupHeadroom) + " left under its limit"})
	}
	if f.ContainerLimit > 0 {
		rows = append(rows, Row{"container", FormatSize(float64(f.ContainerLimit)) + " at most, by its memory limit"})
	}
	if len(f.GPUs) == 0 {
		return append(rows, Row{"GPUs", "none seen: " + strings.TrimPrefix(f.GPUNote, "no GPU facts: ")})
	}
	var texts []string
	for _, g := range f.GPUs {
		held := "free"
		if len(g.Holders) > 0 {
			held = "held by " + strings.Join(g.Holders, ", ")
		}
		texts = append(texts, fmt.Sprintf("%s, %s of %s in use, %s", g.Name, gib(g.Used), gib(g.Total), held))
	}
	if len(slices.Compact(slices.Clone(texts))) == 1 && len(texts) > 1 {
		return append(rows, Row{fmt.Sprintf("%d GPUs", len(texts)), texts[0] + ", each"})
	}
	for i, g := range f.GPUs {
		rows = append(rows, Row{fmt.Sprintf("GPU %d", g.Index), texts[i]})
	}
	return rows
}

// gib spells GPU memory, which drivers and SGLang count in GiB.
func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/bytesPerGiB) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// outside is what a configuration sets beside the knobs of the space.
func outside(c sglang.Config, space Space) sglang.Config {
	out := c.Clone()
	for _, d := range space {
		delete(out, d.Name)
	}
	return out
}

func pairs(c sglang.Config) string {
	if len(c) == 0 {
		return "nothing"
	}
	words := make([]string, 0, len(c))
	for _, name := range c.Names() {
		words = append(words, name+" "+c.Text(name))
	}
	return strings.Join(words, ", ")
}

func env(vars map[string]string) string {
	if len(vars) == 0 {
		return "nothing"
	}
	var words []string
	for name, v := range vars {
		if secretName(name) {
			v = "***"
		}
		words = append(words, name+"="+sglang.Mask(v))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func join(levels []int) string {
	words := make([]string, len(levels))
	for i, l := range levels {
		words[i] = fmt.Sprint(l)
	}
	return strings.Join(words, ", ")
}

// some lists values, the middle of a long list left out.
func some(values []any) string {
	const ends = 4
	words := make([]string, 0, 2*ends+1)
	for i, v := range values {
		if len(values) > 2*ends && i >= ends && i < len(values)-1 {
			if i == ends {
				words = append(words, "...")
			}
			continue
		}
		words = append(words, sglang.FormatValue(v))
	}
	return strings.Join(words, ", ")
}
