package nights_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGPUsHeldBySomebodyElse plays another program that holds a GPU of the simulated host: tune starts nothing, names
// the holder and exits 3.
func TestGPUsHeldBySomebodyElse(t *testing.T) {
	t.Parallel()
	study, db := copyStudy(t, "quickstart.yaml", func(s string) string { return s })
	claims := filepath.Join(filepath.Dir(db), "sgtune.files", "quickstart", "host")
	if err := os.MkdirAll(claims, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(claims, fmt.Sprintf("0-%d", os.Getpid()))
	if err := os.WriteFile(file, []byte("71200 live"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sgtune(t, "tune", study, "--db", db, "--web", "off")
	oneLine(t, r, 3, "GPU 0", fmt.Sprintf("pid %d", os.Getpid()), "before:")
	if s := show(t, db, "quickstart"); len(s.Trials) > 0 || s.State != "stopped" {
		t.Errorf("%d trials, state %s; want none and stopped", len(s.Trials), s.State)
	}
	check := sgtune(t, "check", study, "--db", db)
	last := strings.TrimSpace(check.stdout)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	if check.code != 0 || !strings.HasPrefix(last, "Ready to leave alone: no, because ") || !strings.Contains(check.stdout, fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("check: exit %d, last line %q", check.code, last)
	}
}

// TestFreshWithoutTrials changes a study that never got to a trial: --fresh must begin anew, as the refusal says.
func TestFreshWithoutTrials(t *testing.T) {
	t.Parallel()
	study, db := copyStudy(t, "quickstart.yaml", func(s string) string { return s })
	claims := filepath.Join(filepath.Dir(db), "sgtune.files", "quickstart", "host")
	if err := os.MkdirAll(claims, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(claims, fmt.Sprintf("0-%d", os.Getpid())), []byte("71200 live"), 0o600); err != nil {
		t.Fatal(err)
	}
	oneLine(t, sgtune(t, "tune", study, "--db", db, "--web", "off"), 3, "GPU 0")
	text, err := os.ReadFile(study)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(study, []byte(strings.Replace(string(text), "max: 120s", "max: 100s", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	oneLine(t, sgtune(t, "tune", study, "--db", db, "--web", "off"), 2, "--fresh")
	r := sgtune(t, "tune", study, "--db", db, "--web", "off", "--fresh", "--trials", "1")
	if r.code == 2 {
		t.Errorf("--fresh: exit %d\n%s", r.code, r.stderr)
	}
	if old := show(t, db, "quickstart.old-1"); old.State != "stopped" || len(old.Trials) > 0 {
		t.Errorf("the earlier study: %s with %d trials", old.State, len(old.Trials))
	}
}
