package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// A job's name leads to its study and to no other, fits into what Slurm takes, and is another one for each trial.
func TestJobName(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)
	long := strings.Repeat("x", 127)
	seen := map[string]string{}
	for _, study := range []string{"night", "night.1", "night.1.2", "-odd_.name-", long + "a", long + "b"} {
		row := &trial.Trial{Study: study, Number: 12, CreatedAt: time.Unix(0, 1796034936954866185)}
		name := jobName(row)
		if !valid.MatchString(name) || studyOfJob(name) != jobStudy(study) || name != jobName(row) {
			t.Errorf("%s: %s, of study %s", study, name, studyOfJob(name))
		}
		if other := seen[name]; other != "" {
			t.Errorf("%s and %s have the same job", study, other)
		}
		seen[name] = study
	}
	for _, name := range []string{"sgtune", "sgtune-check", "other-night.1.2", ""} {
		if study := studyOfJob(name); study != "" {
			t.Errorf("%q is taken for a job of %s", name, study)
		}
	}
}

// Before there is a job nothing is known of a node but what is asked for, and nothing is guessed.
func TestSlurmFacts(t *testing.T) {
	t.Parallel()
	s := &tuner.Study{Host: tuner.HostSpec{Kind: tuner.HostSlurm}}
	if f := slurmFacts("slurm", s); f.Available() >= 0 || f.MemTotal >= 0 || len(f.GPUs) != 0 || f.GPUNote == "" {
		t.Errorf("%+v", f)
	}
	s.Host.Slurm.Memory = 400e9
	if f := slurmFacts("slurm", s); f.Available() != 400e9 {
		t.Errorf("%+v", f)
	}
}
