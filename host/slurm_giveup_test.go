package host_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sgtune/host"
)

// frozenLogin is a login node behind a cut link: what is run there does not end.
type frozenLogin struct{ asked chan struct{} }

func (l frozenLogin) RunCommand(ctx context.Context, _ []string, _ string) (string, int, error) {
	l.asked <- struct{}{}
	<-ctx.Done()
	return "", 0, context.Cause(ctx)
}

func (l frozenLogin) StartCommand([]string) (*host.LinkConn, error) { return nil, errors.New("no way") }

// A login node that does not answer is not waited for any more once a person has given it up: also not for the end of a job.
func TestGiveUpOfALoginNode(t *testing.T) {
	t.Parallel()
	machine := host.NewRemote(host.RemoteOptions{Link: host.CommandLink{Name: "login"}})
	login := frozenLogin{make(chan struct{}, 1)}
	s, err := host.NewSlurm(host.SlurmOptions{
		Login: login, Request: host.SlurmRequest{Name: "sgtune-x", Work: t.TempDir()}, Lessor: machine,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.End(t.Context()) }()
	<-login.asked
	machine.GiveUp()
	select {
	case err := <-ended:
		if !errors.Is(err, host.ErrGivenUp) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it still waits")
	}
	if err := errors.Join(s.Close(), machine.Close()); err != nil {
		t.Error(err)
	}
}
