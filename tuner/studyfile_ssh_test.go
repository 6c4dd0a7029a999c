package tuner_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/tuner"
)

// TestSSHHost: paths of the host stay as they are, wherever the section stands; those of this machine start at the file.
func TestSSHHost(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `server: {model: ./models/m, command: [bin/serve, --port, "{port}"]}
before: [./stop.sh]
space: {hicache-size: [0]}
workload: {file: prompts.jsonl}
host: {kind: ssh, address: me@gpu-box, ssh_config: ssh_config, work_dir: '~/tuning', tuner_gone: 20m, replay_from: here, ram_budget: 400GB, ram_floor: 3GB}
`)
	dir := filepath.Dir(s.Workload.File)
	if !filepath.IsAbs(dir) {
		t.Errorf("workload %s", s.Workload.File)
	}
	got := []any{s.Host.Kind, s.Host.Address, s.Host.SSHConfig, s.Host.WorkDir, s.Host.TunerGone, s.Host.ReplayFrom, s.Server.Model, s.Server.Command[0], s.Before[0], s.Simulated, s.Host.RAMFloorBytes}
	want := []any{tuner.HostSSH, "me@gpu-box", filepath.Join(dir, "ssh_config"), "~/tuning", 20 * time.Minute, tuner.ReplayHere, "./models/m", "bin/serve", "./stop.sh", false, 3e9}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	other := mustParse(t, "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\nhost: {kind: ssh, address: other}\n")
	if d := tuner.DiffIdentity(s.Identity(), other.Identity()); len(d) == 0 {
		t.Error("another machine is the same study")
	}
}
