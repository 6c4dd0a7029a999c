package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
	"sgtune/tuner"
)

func left() *reclaiming {
	id := host.ID{PID: 4711, Marker: "night.3.1", Argv: []string{"python3", "--api-key", "hunter2hunter2"}}
	return &reclaiming{
		place: &place{name: "ssh gpu-box"},
		found: []host.Leftover{
			{ID: id, Age: 2 * time.Hour, Memory: 45e9, Ports: []int{30001}},
			{ID: host.ID{PID: 12, Marker: "other.1.1", Argv: []string{"python3"}}, Age: time.Minute, Memory: -1, Owner: "pid 11 (sgtune)"},
		},
		files: []host.RemainsOf{
			{Path: "/dev/shm/psm_1", Bytes: 16e6}, {Path: "/tmp/tmpab", Socket: true}, {Path: "/dev/shm/psm_2", Bytes: 1e9, Why: "in use by pid 5 (py)"},
		},
		folder: &host.WorkFolder{Path: "/home/me/.cache/sgtune", Ended: 2, Living: 1, Bytes: 9e6, Program: true},
		facts: tuner.HostFacts{GPUs: []tuner.GPUFact{
			{Index: 1, Total: 95e9, Used: 71.2e9, Holders: []string{"pid 4711 (python3) 71.2 GB"}}, {Index: 2, Total: 95e9, Used: 20e9}, {Index: 3, Total: 95e9, Used: 1e9},
		}, GPUNote: "a note"},
	}
}

func TestReclaimShows(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := left().print(&out, false); err != nil {
		t.Fatal(err)
	}
	want := `pid 4711 of trial night.3.1: python3 --api-key *** (for 2h00m, 45.0 GB of memory, GPU 1, port 30001)
pid 12 of trial other.1.1: python3 (for 1m00s, of a sgtune that lives, pid 11 (sgtune): left alone)
/dev/shm/psm_1: a dead trial's shared memory, 16.0 MB
/tmp/tmpab: a dead trial's socket
/dev/shm/psm_2: a dead trial's shared memory, 1.0 GB, in use by pid 5 (py)
/home/me/.cache/sgtune of sgtune-agent: 2 commands that ended, 1 that run, 9.0 MB
GPU 1: 71.2 GB of 95.0 GB used by pid 4711 (python3) 71.2 GB
GPU 2: 20.0 GB of 95.0 GB used and no process is listed: the holder is outside this container or VM, or the driver has not let go
a note
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := left().print(&out, true); err != nil || strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), `"owner":"pid 11 (sgtune)"`) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestReclaimNothing: a host without anything of ours is clean and nothing would be freed; a trial whose sgtune lives is nothing.
func TestReclaimNothing(t *testing.T) {
	t.Parallel()
	r := left()
	if !r.something() {
		t.Error("nothing to free?")
	}
	r.found, r.files, r.folder = r.found[1:], nil, nil
	if r.something() {
		t.Error("a living sgtune's trial would be freed")
	}
	r = left()
	r.files, r.folder, r.found[1].Owner = nil, nil, ""
	r.place, r.study = &place{slurm: &slurmHost{}}, &tuner.Study{Name: "other"}
	if why := []string{r.spared(r.found[0]), r.spared(r.found[1])}; why[0] == "" || why[1] != "" {
		t.Errorf("on Slurm, with the study named other: %q", why)
	}
}

func TestReclaimDirty(t *testing.T) {
	t.Parallel()
	r := left()
	if err := r.failed(); err != nil {
		t.Error(err)
	}
	r.dirty = []string{"port 30001 is still listened on, by pid [9]", "another"}
	err := r.failed()
	if exitCode(err) != exitHost || err.Error() != "ssh gpu-box is not clean: port 30001 is still listened on, by pid [9]; another" {
		t.Errorf("%d %v", exitCode(err), err)
	}
}

func TestReclaimAsks(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "": false, "yes please\n": false} {
		var out strings.Builder
		sure, err := confirmed(strings.NewReader(answer), &out)
		var coded *exitError
		if sure != want || sure != (err == nil) || !sure && (!errors.As(err, &coded) || coded.code != exitFailed) || !strings.Contains(out.String(), "[y/N]") {
			t.Errorf("%q: %v, %v", answer, sure, err)
		}
	}
}
