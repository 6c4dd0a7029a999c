package nights_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sgtune/sglang"
	"sgtune/test/nights/virtual"
	"sgtune/tuner"
)

// agree is how far virtual time may be off what was measured through HTTP.
const agree = 0.03

// TestNightAgrees runs one of the nights that are judged in virtual time through the program, its processes and
// HTTP: both must end with configurations of equal worth.
func TestNightAgrees(t *testing.T) {
	if os.Getenv("SGTUNE_NIGHTS") == "" {
		t.Skip("ten minutes: make test-long runs it; make test-nights compares the quickstart night")
	}
	folder := filepath.Join("..", "..", "examples")
	text, err := os.ReadFile(filepath.Join(folder, "kimi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(filepath.Join(folder, "kimi.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path, db := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "sgtune.db")
	text = regexp.MustCompile(`(?m)^  wall: .*$`).ReplaceAll(text, nil) // thirty trials, however long they take
	for name, b := range map[string][]byte{path: text, filepath.Join(dir, "kimi.jsonl"): rows} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := sgtune(t, "tune", path, "--db", db, "--web", "off")
	t.Logf("the night took %s, exit %d", r.took, r.code)
	if r.code != 0 {
		t.Fatalf("exit %d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	s := show(t, db, "kimi-overnight")
	checkAgrees(t, path, s)

	study, err := tuner.ReadStudy(path)
	if err != nil {
		t.Fatal(err)
	}
	judge, err := virtual.NewJudge(study)
	if err != nil {
		t.Fatal(err)
	}
	night, err := judge.Run(t.Context(), virtual.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	worth := func(c sglang.Config) float64 {
		o, err := judge.Long().Value(t.Context(), c, 0, virtual.Noise{Free: true})
		if err != nil {
			t.Fatal(err)
		}
		return o.Value
	}
	winner := sglang.Config(s.winner())
	if len(winner) == 0 {
		t.Fatalf("the verdict names no trial that is there: %+v", s.Verdict)
	}
	through, inside := worth(winner), worth(night.Config)
	t.Logf("worth %.1f through HTTP (%v), %.1f in virtual time (%v)", through, winner, inside, night.Config)
	if math.Abs(math.Log(through/inside)) > agree {
		t.Errorf("the night through HTTP ends at %.1f, the one in virtual time at %.1f: want 3%% at most", through, inside)
	}
}

// checkAgrees launches every configuration of a night that ran through the program, its processes and HTTP again in
// virtual time, where hundreds of nights are judged (./test/nights/virtual), and wants the same figures: within 3%
// in the mean over all trials, and for either side of the confirmation, beside what the scatter of launches explains. Of a study with several load levels only
// trials that measured all of them are compared.
func checkAgrees(t *testing.T, path string, s shown) {
	t.Helper()
	study, err := tuner.ReadStudy(path)
	if err != nil {
		t.Fatal(err)
	}
	judge, err := virtual.NewJudge(study)
	if err != nil {
		t.Fatal(err)
	}
	type side struct {
		n                 int
		sum, square, most float64 // of log(virtual / measured)
	}
	sides := map[string]*side{}
	for _, tr := range s.Trials {
		if tr.State != "complete" || tr.Value == nil || tr.Role == "search" && len(study.Workload.Concurrency) > 1 {
			continue
		}
		o, err := judge.Value(t.Context(), sglang.Config(tr.Config), int64(tr.Number), virtual.Noise{})
		if err != nil {
			t.Fatal(err)
		}
		if o.Failure != "" {
			t.Errorf("trial %d ran through HTTP and fails in virtual time: %s", tr.Number, o.Failure)
			continue
		}
		off := math.Log(o.Value / *tr.Value)
		names := []string{"all trials"}
		if tr.Role == "confirm" {
			names = append(names, "confirmation of "+sglang.Config(tr.Config).Key())
		}
		for _, name := range names {
			if sides[name] == nil {
				sides[name] = &side{}
			}
			sides[name].n++
			sides[name].sum += off
			sides[name].square += off * off
			sides[name].most = math.Max(sides[name].most, math.Abs(off))
		}
	}
	if len(sides) < 3 {
		t.Fatalf("%d sides to compare, want all trials and two of the confirmation", len(sides))
	}
	for name, x := range sides {
		mean := x.sum / float64(x.n)
		t.Logf("virtual time against HTTP, %s: %+.1f%% in the mean of %d, %.1f%% at most", name, 100*mean, x.n, 100*x.most)
		// Launches scatter: at a time scale of 150 a stall of 0.1 s of this machine is 15 s of a level. What their
		// own scatter explains of the mean (two standard errors) is no disagreement.
		n := float64(x.n)
		scatter := 2 * math.Sqrt(math.Max(0, x.square/n-mean*mean)/math.Max(n-1, 1))
		if math.Abs(mean) > agree+scatter {
			t.Errorf("%s: virtual time is off by %+.1f%%, want 3%% and %.1f%% of scatter at most", name, 100*mean, 100*scatter)
		}
	}
}
