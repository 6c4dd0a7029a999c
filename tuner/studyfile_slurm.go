package tuner

import (
	"regexp"
	"strings"
)

// mostParallel bounds SlurmSpec.Parallel.
const mostParallel = 64

// slurmWord is what a name of a partition or account, or a gres, is made of: sbatch gets it as a part of one word.
var slurmWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:,=()@+/-]*$`)

// slurmKeys read the keys that only a Slurm host has.
func (d *decoder) slurmKeys() map[string]handler {
	s := &d.study.Host.Slurm
	word := func(name, example string, to *string) handler {
		return func(g field) {
			w, ok := d.word(g, "host."+name, example)
			switch {
			case !ok:
			case !slurmWord.MatchString(w):
				d.wrong(g.value, "`host.%s` cannot be %s; write what you would give to sbatch, like %s", name, quote(w), example)
			default:
				*to = w
			}
		}
	}
	return map[string]handler{
		"partition": word("partition", "gpu", &s.Partition),
		"account":   word("account", "my-project", &s.Account),
		"gres":      word("gres", "gpu:h200:8", &s.Gres),
		"cpus": func(g field) {
			if v, ok := d.whole(g, "host.cpus", 1, 1<<20); ok {
				s.CPUs = v
			}
		},
		"memory": func(g field) {
			if v, ok := d.size(g, "host.memory"); ok {
				s.Memory = v
			}
		},
		"time_limit": func(g field) {
			if v, ok := d.positive(g, "host.time_limit"); ok {
				s.TimeLimit = v
			}
		},
		"queue_limit": func(g field) { s.QueueLimit = d.orOff(g, "host.queue_limit", s.QueueLimit) },
		"parallel": func(g field) {
			if v, ok := d.whole(g, "host.parallel", 1, mostParallel); ok {
				s.Parallel = v
			}
		},
	}
}

// checkSlurm refuses keys of a Slurm host at another, and what a Slurm host cannot do.
func (d *decoder) checkSlurm(kindAt field, slurmOnly []field) {
	h := d.study.Host
	if h.Kind != HostSlurm {
		if kindAt.value == nil || kindAt.value.kind == scalar {
			for _, g := range slurmOnly {
				d.at(g.line, g.col, "`host.%s` is for Slurm hosts; remove it, or write kind: slurm", g.name)
			}
		}
		return
	}
	if strings.ContainsAny(h.WorkDir, "%\\\n") { // sbatch fills in what begins with %, and takes \ off
		d.wrong(kindAt.value, "`host.work_dir` %s cannot be used with Slurm; write a path on the file system that the nodes share, without %% and \\", quote(h.WorkDir))
	}
}

// jobRows are what can be known of the nodes before there is a job.
func (h HostSpec) jobRows(f HostFacts) []Row {
	memory := "what the site gives, which is not known before; host.memory asks for an amount"
	if f.CgroupHeadroom >= 0 {
		memory = FormatSize(float64(f.CgroupHeadroom)) + " a job, by host.memory"
	}
	return []Row{{"name", f.Name}, {"nodes", "each trial's is known once its job runs: GPUs, free memory, who else is there"}, {"memory", memory}}
}

// slurmText says in one line what a Slurm host asks for.
func (h HostSpec) slurmText() string {
	s, words := h.Slurm, []string{HostSlurm}
	add := func(name, text string) {
		if text != "" {
			words = append(words, name+" "+text)
		}
	}
	add("through", h.Address)
	add("partition", s.Partition)
	add("account", s.Account)
	add("gres", s.Gres)
	if s.CPUs > 0 {
		words = append(words, plural(s.CPUs, "CPU", "CPUs"))
	}
	if s.Memory > 0 {
		add("memory", FormatSize(s.Memory))
	}
	if s.TimeLimit > 0 {
		add("time limit", FormatDuration(s.TimeLimit))
	}
	if s.QueueLimit > 0 {
		add("waits at most", FormatDuration(s.QueueLimit))
	}
	return strings.Join(words, ", ") + "; " + plural(s.Parallel, "trial", "trials") + " at once"
}
