package tuner_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/tuner"
)

const slurmFile = `server: {model: ./models/m, command: [bin/serve]}
space: {hicache-size: [0]}
workload: {file: prompts.jsonl}
host: {kind: slurm, `

func TestSlurmHost(t *testing.T) {
	t.Parallel()
	s := mustParse(t, slurmFile+"partition: gpu, account: a-b, gres: 'gpu:h200:8', cpus: 16, memory: 400GB, time_limit: 3h, queue_limit: 12h, parallel: 3, work_dir: shared}\n")
	want := tuner.SlurmSpec{
		Partition: "gpu", Account: "a-b", Gres: "gpu:h200:8", CPUs: 16, Memory: 400e9, TimeLimit: 3 * time.Hour, QueueLimit: 12 * time.Hour, Parallel: 3,
	}
	if d := cmp.Diff(want, s.Host.Slurm); d != "" || s.Host.Kind != tuner.HostSlurm {
		t.Errorf("%s %s", s.Host.Kind, d)
	}
	// Slurm's commands are here, and so is the shared file system: paths start at the study file.
	dir := filepath.Dir(s.Workload.File)
	if s.Host.WorkDir != filepath.Join(dir, "shared") || s.Server.Model != filepath.Join(dir, "models/m") {
		t.Errorf("work_dir %s, model %s", s.Host.WorkDir, s.Server.Model)
	}
	if s.Finish.Launch != "none" {
		t.Errorf("a job ends with its trial, and a server is launched last: %s", s.Finish.Launch)
	}
	d := mustParse(t, slurmFile+"address: login, queue_limit: none}\n")
	if h := d.Host; h.Slurm.QueueLimit != 0 || h.Slurm.Parallel != 1 || h.Address != "login" || d.Server.Model != "./models/m" {
		t.Errorf("defaults: %+v, model %s", h, d.Server.Model)
	}
}

// TestSlurmIdentity: more trials at once or longer jobs are the same study, other GPUs are not.
func TestSlurmIdentity(t *testing.T) {
	t.Parallel()
	id := func(keys string) map[string]string { return mustParse(t, slurmFile+keys).Identity() }
	base := id("gres: 'gpu:1'}\n")
	if d := tuner.DiffIdentity(base, id("gres: 'gpu:1', parallel: 4, time_limit: 9h, account: x, queue_limit: 3h}\n")); len(d) > 0 {
		t.Error(d)
	}
	if d := tuner.DiffIdentity(base, id("gres: 'gpu:2'}\n")); len(d) != 1 {
		t.Errorf("other GPUs: %q", d)
	}
}

func TestSlurmCheckRow(t *testing.T) {
	t.Parallel()
	s := mustParse(t, slurmFile+"address: login, partition: gpu, gres: 'gpu:8', cpus: 1, memory: 400GB, time_limit: 3h, parallel: 2}\n")
	r := tuner.Check(s, tuner.CheckInput{Facts: tuner.HostFacts{MemTotal: -1, MemAvailable: -1, CgroupHeadroom: 400e9}, Now: time.Now()})
	want := "slurm, through login, partition gpu, gres gpu:8, 1 CPU, memory 400.0 GB, time limit 3 h; 2 trials at once"
	if row := r.Understood[0].Rows[0]; row.Name != "host" || row.Text != want {
		t.Errorf("%+v, want %s", row, want)
	}
	if got := r.Host[len(r.Host)-1].Text; got != "400.0 GB a job, by host.memory" {
		t.Errorf("memory: %s", got)
	}
	for _, note := range r.Notes {
		if strings.Contains(note, "GPU facts") {
			t.Errorf("a node is not known yet: %s", note)
		}
	}
}
