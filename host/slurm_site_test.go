package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
)

// fakePlace is a login node whose programs answer as they are told, and whose shell is a real one.
type fakePlace struct {
	*host.SlurmHereLink
	fakeSlurm
}

func (p *fakePlace) RunCommand(ctx context.Context, argv []string, stdin string) (string, int, error) {
	if _, told := p.answers[argv[0]]; told {
		return p.fakeSlurm.RunCommand(ctx, argv, stdin)
	}
	return p.SlurmHereLink.RunCommand(ctx, argv, stdin)
}

func newFakePlace(t *testing.T, answers map[string]fakeAnswer) *fakePlace {
	t.Helper()
	dir := t.TempDir()
	o := sshOptions(t, dir, "") // its agent is this test
	return &fakePlace{&host.SlurmHereLink{Work: filepath.Join(dir, "work it's"), Agent: o.Agent}, fakeSlurm{answers: answers}}
}

// The agent is put where the nodes see it, once, whole, and for its owner alone.
func TestSlurmHereLinkPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := []byte("#!/bin/sh\n")
	sum := sha256.Sum256(program)
	link := func() *host.SlurmHereLink {
		return &host.SlurmHereLink{Work: dir, Agent: func(string) ([]byte, string, error) { return program, hex.EncodeToString(sum[:]), nil }}
	}
	work, agent, err := link().Placed(t.Context())
	if err != nil || work != dir || filepath.Dir(agent) != filepath.Join(dir, "bin") {
		t.Fatalf("%s %s %v", work, agent, err)
	}
	old, recent := filepath.Join(dir, "bin", "sgtune-agent-old"), filepath.Join(dir, "bin", "sgtune-agent-recent")
	for _, file := range []string{old, recent} {
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	week := time.Now().Add(-8 * 24 * time.Hour)
	if err := errors.Join(os.Chtimes(old, week, week), os.WriteFile(agent, []byte("damaged"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := link().Placed(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(agent)
	if b, _ := os.ReadFile(agent); err != nil || string(b) != string(program) || info.Mode().Perm() != 0o700 {
		t.Errorf("%q, %v, %v", b, info, err)
	}
	files, err := os.ReadDir(filepath.Join(dir, "bin"))
	if len(files) != 2 || err != nil { // the one that an older job may still run stays
		t.Errorf("%v, %v", files, err)
	}
	none := &host.SlurmHereLink{Work: "/proc/nowhere", Agent: link().Agent}
	if _, _, err := none.Placed(t.Context()); err == nil || !strings.Contains(err.Error(), "host.work_dir") {
		t.Errorf("a folder that cannot be made: %v", err)
	}
}

// Through ssh the work folder and the agent are those of the bootstrap.
func TestSSHPlaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := sshOptions(t, dir, "echo Welcome")
	link, err := host.NewSSH(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := link.Placed(t.Context()); err == nil {
		t.Error("placed before it was")
	}
	c, err := link.Open(t.Context(), "serve")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	work, agent, err := link.Placed(t.Context())
	if err != nil || work != o.Work || filepath.Dir(agent) != filepath.Join(o.Work, "bin") {
		t.Errorf("%s %s %v", work, agent, err)
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
}

func TestSlurmSite(t *testing.T) {
	t.Parallel()
	p := newFakePlace(t, map[string]fakeAnswer{
		"sinfo":  {text: "debug\ngpu*\n"},
		"sbatch": {text: "sbatch: Job 12 to start at 2026-01-01T00:00:00 using 8 processors on nodes n1 in partition gpu\n"},
	})
	s := host.NewSlurmSite(host.SlurmSiteOptions{Place: p, Request: host.SlurmRequest{Partition: "gpu", CPUs: 8, Memory: 1 << 30}, Lease: time.Minute})
	t.Cleanup(func() { _ = s.Close() })
	if names, err := s.Partitions(t.Context()); !slices.Equal(names, []string{"gpu", "debug"}) || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	said, err := s.Test(t.Context())
	if err != nil || !strings.HasPrefix(said, "Job 12 to start") {
		t.Errorf("%q, %v", said, err)
	}
	call := p.calls[len(p.calls)-1]
	for _, want := range []string{"--test-only", "--partition=gpu", "--cpus-per-task=8", "--mem=1024M"} {
		if !slices.Contains(call, want) {
			t.Errorf("%q lacks %s", call, want)
		}
	}
	p.answers["sbatch"] = fakeAnswer{text: "sbatch: error: invalid partition specified: x\nallocation failure: Invalid partition name specified\n", status: 1}
	if _, err := s.Test(t.Context()); !errors.Is(err, host.ErrSlurmRefused) {
		t.Error(err)
	}
	p.answers["sbatch"] = fakeAnswer{text: "allocation failure: Unable to contact slurm controller (connect failure)\n", status: 1}
	if _, err := s.Test(t.Context()); !errors.Is(err, host.ErrSlurmUnclear) {
		t.Error(err)
	}
}

// What is left in the work folder leads to the jobs of it, and to no others.
func TestSlurmSiteNames(t *testing.T) {
	t.Parallel()
	p := newFakePlace(t, nil)
	s := host.NewSlurmSite(host.SlurmSiteOptions{Place: p, Lease: time.Minute})
	t.Cleanup(func() { _ = s.Close() })
	if names, err := s.Names(t.Context()); len(names) != 0 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	for _, dir := range []string{"sgtune-a.1.2", "odd name"} {
		if err := os.MkdirAll(filepath.Join(p.Work, "job", dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.Work, "job", "sgtune-a.1.2-7.out"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := s.Names(t.Context())
	if d := cmp.Diff([]string{"sgtune-a.1.2"}, names); d != "" || err != nil {
		t.Error(d, err)
	}
}
