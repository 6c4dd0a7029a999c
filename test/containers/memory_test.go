package containers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hungry gives the study a knob that has its server take all of the container's memory. The guard wants 1 GiB left of it,
// so a real container is larger.
func hungry(text string) string {
	limit := "300m"
	if bed.real {
		limit = "1500m"
	}
	return strings.NewReplacer(
		"4000m", limit, "mem-fraction-static: {values: [0.79, 0.90]}", "mem-fraction-static: {values: [0.79]}",
		"chunked-prefill-size: {values: [512, 8192]}", `env.EAT_MB: {values: ["6000"]}`,
		"trials: 2", "trials: 6", // those that others on the machine make void are made again
	).Replace(short(text))
}

// TestStudyOutOfMemory: a server that fills its container ends as out of host memory, by the container's limit, and the
// study goes on. In a real container the guard is faster than the kernel; the fake runtime has no cgroup that the guard
// could watch, ends the server by its own limit and says OOMKilled.
func TestStudyOutOfMemory(t *testing.T) {
	n := newNight(t, "hungry", "", "", hungry)
	out, _ := n.command(t.Context(), "tune", n.file(), "--web", "off").CombinedOutput() // what came of it is read below
	s := n.show()
	i := slices.IndexFunc(s.Trials, func(x shownTrial) bool { return x.Outcome == "host_oom" })
	if s.State != "complete" || i < 0 || s.Trials[i].Cause != "cgroup_limit" || s.Trials[i].Config["env.EAT_MB"] != "6000" {
		t.Fatalf("%+v\n%s", s, out)
	}
	want := "the kernel killed a rank"
	if bed.real {
		want = "the guard ended the server before the kernel"
	}
	if shown := n.sgtune(0, "show", n.name, fmt.Sprint(i)); !strings.Contains(shown, want) {
		t.Errorf("trial %d does not say %q:\n%s", i, want, shown)
	}
	if first := s.Trials[0].Outcome; first != "ok" && first != "degraded" && first != "bench_invalid" {
		t.Errorf("the baseline, which needs little, is %s", first)
	}
}
