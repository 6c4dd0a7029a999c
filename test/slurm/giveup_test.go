package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// frozenPlace is a login node that stops answering, as behind a cut link: its programs do not end.
type frozenPlace struct {
	*host.SlurmHereLink
	frozen *atomic.Bool
}

func (p frozenPlace) RunCommand(ctx context.Context, argv []string, stdin string) (string, int, error) {
	if p.frozen.Load() {
		<-ctx.Done()
		return "", 0, context.Cause(ctx)
	}
	return p.SlurmHereLink.RunCommand(ctx, argv, stdin)
}

// TestGiveUp: neither the node of a trial nor the login node answers any more. Whoever waits for them does so until a person
// gives up, which ends all of it at once, and nothing on the node.
func TestGiveUp(t *testing.T) {
	need(t)
	frozen := new(atomic.Bool)
	here := &host.SlurmHereLink{Work: bed("giveup"), Agent: func(string) ([]byte, string, error) {
		b, err := os.ReadFile(os.Getenv(agentEnv))
		sum := sha256.Sum256(b)
		return b, hex.EncodeToString(sum[:]), err
	}}
	here.Env = []string{"XDG_STATE_HOME=" + t.TempDir()}
	site := host.NewSlurmSite(host.SlurmSiteOptions{
		Place: frozenPlace{here, frozen}, Request: host.SlurmRequest{Partition: "gpu", Memory: 1 << 30, TimeLimit: 5 * time.Minute}, Patience: time.Minute,
	})
	s, err := site.Node(t.Context(), "sgtune-giveup", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := shell(t, s, "echo up; sleep 60")
	hosttest.FirstLine(t, p)
	job := s.Job()
	defer scontrol(t, "scancel", job.ID)

	asked := make(chan error, 2)
	pids := steps(t, job.ID)
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	}
	frozen.Store(true)
	go func() { _, err := s.Usage(t.Context()); asked <- err }()
	go func() { asked <- s.End(t.Context()) }()
	select {
	case err := <-asked:
		t.Fatalf("who is asked does not answer: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	site.GiveUp()
	begin := time.Now()
	for range cap(asked) {
		if err := <-asked; !errors.Is(err, host.ErrGivenUp) {
			t.Errorf("given up: %v", err)
		}
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if state := strings.TrimSpace(scontrol(t, "squeue", "-h", "-j", job.ID, "-o", "%T")); state != "RUNNING" {
		t.Errorf("the job is %s", state)
	}
	if err := errors.Join(s.Close(), site.Close()); err != nil {
		t.Error(err)
	}
}
