package tuner

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sgtune/sglang"
)

// Identity is what must not change when a study is continued: section to canonical text, one
// "name: value" a line, sorted. Secrets are not part of it, so they may be renewed.
func (s *Study) Identity() map[string]string {
	h := s.Host
	host := lines{"kind": h.Kind}
	host.set("ram_budget", h.RAMBudgetText)
	host.set("address", h.Address)
	host.set("work_dir", h.WorkDir)
	host.set("replay_from", h.ReplayFrom)
	if h.Kind == HostSlurm { // limits of time and how many at once may change
		host.set("partition", h.Slurm.Partition)
		host.set("gres", h.Slurm.Gres)
		if h.Slurm.CPUs > 0 {
			host.set("cpus", fmt.Sprint(h.Slurm.CPUs))
		}
		if h.Slurm.Memory > 0 {
			host.set("memory", FormatSize(h.Slurm.Memory))
		}
	}
	if h.Kind == HostSimulated {
		host["profile"], host["time_scale"], host["startup"] = h.Profile, sglang.FormatValue(h.TimeScale), h.Startup.String()
		host["seed"], host["ram"] = fmt.Sprint(h.Seed), FormatSize(h.RAMBytes)
		host.set("faults", strings.Join(h.Faults, " "))
	}
	server := lines{"command": words(s.Server.Command), "model": s.Server.Model}
	if c := s.Server.Container; c != nil {
		server["container"] = c.Runtime + " " + c.Image + " " + words(maskedRunArgs(c.Args))
	}
	server.config("flags", s.Server.Flags)
	server.config("baseline", s.Baseline)
	server.config("passed", s.Passed)
	for name, v := range s.Server.Env {
		if secretName(name) {
			v = "***"
		}
		server["env."+name] = v
	}
	if s.Port > 0 {
		server["flags.port"] = fmt.Sprint(s.Port)
	}
	w := s.Workload
	workload := lines{
		"file": filepath.Base(w.File) + " " + digest(w.File), "concurrency": fmt.Sprint(w.Concurrency),
		"target": sglang.FormatValue(w.Target), "cap": w.Cap.String(), "window": s.Measure.Window.String(),
		"canary": s.Measure.Canary.String(), "fill": s.Measure.Fill.String(),
	}
	objective := lines{"metric": s.Objective.Metric}
	objective.set("ttft_p95", duration(s.Objective.SLO.TTFTP95))
	objective.set("tpot_p95", duration(s.Objective.SLO.TPOTP95))
	objective.set("e2e_p95", duration(s.Objective.SLO.E2EP95))
	return map[string]string{
		"server": server.text(), "host": host.text(), "workload": workload.text(),
		"objective": objective.text(), "quality": s.Quality,
	}
}

// DiffIdentity lists what differs between two identities, one line a difference, none when they
// are the same study.
func DiffIdentity(before, now map[string]string) []string {
	sections := map[string]bool{}
	for name := range before {
		sections[name] = true
	}
	for name := range now {
		sections[name] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if before[name] != now[name] {
			out = append(out, diffLines(name, before[name], now[name])...)
		}
	}
	return out
}

func diffLines(section, before, now string) []string {
	was, is := byName(before), byName(now)
	all := maps.Clone(was)
	maps.Copy(all, is)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, hadIt := was[name]
		b, hasIt := is[name]
		where := strings.TrimSuffix(section+"."+name, ".")
		switch {
		case hadIt && hasIt && a != b:
			out = append(out, fmt.Sprintf("%s was %s, is %s", where, clip(oneLine(a)), clip(oneLine(b))))
		case hadIt && !hasIt:
			out = append(out, fmt.Sprintf("%s was %s, is gone", where, clip(oneLine(a))))
		case hasIt && !hadIt:
			out = append(out, fmt.Sprintf("%s is new: %s", where, clip(oneLine(b))))
		}
	}
	return out
}

func byName(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok {
			out[name] = v
		} else if line != "" {
			out[""] = line
		}
	}
	return out
}

// lines is a section's canonical text in the making.
type lines map[string]string

func (l lines) set(name, v string) {
	if v != "" {
		l[name] = v
	}
}

func (l lines) config(name string, c sglang.Config) {
	for _, knob := range c.Names() {
		v := c.Text(knob)
		if secretName(knob) {
			v = "***"
		}
		l[name+"."+knob] = v
	}
}

func (l lines) text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.ReplaceAll(l[name], "\n", `\n`))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func words(list []string) string {
	b, err := json.Marshal(list)
	if err != nil {
		return strings.Join(list, " ")
	}
	return sglang.Mask(string(b))
}

func duration(d fmt.Stringer) string {
	if t := d.String(); t != "0s" {
		return t
	}
	return ""
}

// digest names a file's content, so that a workload that was edited is another one.
func digest(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unreadable"
	}
	defer f.Close() //nolint:errcheck // read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unreadable"
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)[:12])
}
