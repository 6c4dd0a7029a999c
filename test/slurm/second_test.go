package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/host"
)

// TestSecondTuner: a study on a cluster whose login node has a tuner is refused with exit 3, who that is and since when,
// and has submitted nothing.
func TestSecondTuner(t *testing.T) {
	n := newNight(t, "second", "1s")
	first := host.NewLocal(host.LocalOptions{StateDir: filepath.Join(n.Path("state"), "sgtune")})
	release, err := first.Lease(t.Context(), "study first")
	if err != nil {
		t.Fatal(err)
	}
	r := n.Start()
	n.finish(r, 3)
	out, err := os.ReadFile(r.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"study first"`, fmt.Sprintf("(pid %d)", os.Getpid()), "since 20"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s lacks %q", out, want)
		}
	}
	if jobs := n.jobs(); len(jobs) != 0 {
		t.Errorf("submitted %v", jobs)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
