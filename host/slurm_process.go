package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// slurmProcess is a process on the node of a job. It ends with the job at the latest; how it ended then lies in its run
// folder on the shared file system, if there was time to write it.
type slurmProcess struct {
	*remoteProcess
	slurm *Slurm
	watch sync.Once
	done  chan struct{}
	exit  Exit // valid once done is closed
}

func (s *Slurm) process(p Process) Process {
	r, ok := p.(*remoteProcess)
	if !ok { // a Remote has no others
		return p
	}
	return &slurmProcess{remoteProcess: r, slurm: s, done: make(chan struct{})}
}

// Done is closed when the process or its job has ended; see remoteProcess.Done.
func (p *slurmProcess) Done() <-chan struct{} {
	p.watch.Do(func() {
		ended := p.remoteProcess.Done()
		p.remote.background(func(ctx context.Context) {
			select {
			case <-ended:
				p.exit = p.remoteProcess.Exit()
			case <-p.slurm.over:
				p.exit = p.left(ctx)
			case <-ctx.Done():
				return
			}
			close(p.done)
		})
	})
	return p.done
}

// Exit is how it ended, the zero Exit while it lives.
func (p *slurmProcess) Exit() Exit {
	select {
	case <-p.done:
		return p.exit
	default:
		return Exit{}
	}
}

// left reads the status that the keeper left. A job that ran into the limit of its memory tells why it was killed.
func (p *slurmProcess) left(ctx context.Context) Exit {
	exit := Exit{Code: -1, At: p.slurm.opts.Clock.Now()}
	for wait := slurmFirstLook; p.ref.Run != ""; wait = min(2*wait, slurmLastLook) {
		output, status, err := p.slurm.opts.Login.RunCommand(ctx, []string{"cat", p.file("rc")}, "")
		if err != nil && pause(ctx, wait) { // the way there is down
			continue
		}
		var e keptExit
		if err == nil && status == 0 && json.Unmarshal([]byte(strings.TrimSpace(output)), &e) == nil {
			exit = e.Exit
		}
		break
	}
	if p.slurm.Job().Cause() == SlurmMemory && (!exit.Known || exit.Signal != 0) {
		exit.OOMKilled = true
	}
	return exit
}

// file is the path of one of the run's files.
func (p *slurmProcess) file(name string) string {
	return path.Join(p.slurm.opts.Request.Work, "run", p.ref.Run, name)
}

// Log reads the log, on the node or from the shared file system once the job has ended; see Process.
func (p *slurmProcess) Log(ctx context.Context, offset int64, limit int) ([]byte, error) {
	within, done := p.slurm.within(ctx)
	b, err := p.remoteProcess.Log(within, offset, limit)
	done()
	over := p.slurm.ended()
	if err == nil || over == nil || ctx.Err() != nil || p.ref.Run == "" || limit <= 0 {
		return b, err
	}
	script := `[ ! -e "$1" ] || tail -c "+$2" "$1" | head -c "$3"`
	output, err := p.slurm.command(ctx, "sh", "-c", script, "sh", p.file("log"), strconv.FormatInt(offset+1, 10), strconv.Itoa(min(limit, longestLog)))
	if err != nil {
		return nil, fmt.Errorf("read log of pid %d: %w", p.ref.ID.PID, err)
	}
	if output == "" {
		return nil, nil
	}
	return []byte(output), p.copy(offset, []byte(output))
}

// Stop ends the process and everything it started; see Process. Where its node does not answer the whole job is killed.
func (p *slurmProcess) Stop(ctx context.Context, grace time.Duration) error {
	if over := p.slurm.ended(); over != nil {
		return over.dirty()
	}
	within, done := p.slurm.within(ctx)
	err := p.remoteProcess.Stop(within, grace)
	done()
	if err == nil {
		return nil
	}
	if over := p.slurm.ended(); over != nil {
		return over.dirty()
	}
	if !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
		return err
	}
	if killed := p.slurm.cli.Kill(ctx, p.slurm.Job()); killed != nil {
		return fmt.Errorf("%w; the job could not be killed: %w", err, killed)
	}
	return p.slurm.awaitEnd(ctx, p.slurm.Job())
}

// onShared is the same process seen from the login node, which reads what lies on the shared file system; nil as long as
// its job has not ended.
func (p *slurmProcess) onShared() *remoteProcess {
	login, ok := p.slurm.opts.Lessor.(*Remote)
	if !ok || p.slurm.ended() == nil {
		return nil
	}
	return &remoteProcess{remote: login, ref: p.ref, done: make(chan struct{})}
}

// Guarded is what the guard decided, also once the job has ended; see remoteProcess.Guarded.
func (p *slurmProcess) Guarded(ctx context.Context) (*GuardVerdict, error) {
	if shared := p.onShared(); shared != nil {
		return shared.Guarded(ctx)
	}
	return p.remoteProcess.Guarded(ctx)
}

// KeepGuarded is remoteProcess.KeepGuarded as long as the job has not ended, and with it the process.
func (p *slurmProcess) KeepGuarded(ctx context.Context) (lost string, err error) {
	if p.slurm.ended() != nil {
		return "", nil
	}
	within, done := p.slurm.within(ctx)
	defer done()
	return p.remoteProcess.KeepGuarded(within)
}

// Evidence writes what the guard sampled, also once the job has ended; see remoteProcess.Evidence.
func (p *slurmProcess) Evidence(ctx context.Context, w io.Writer) error {
	if shared := p.onShared(); shared != nil {
		return shared.Evidence(ctx, w)
	}
	return p.remoteProcess.Evidence(ctx, w)
}

// Forget removes the log and the status; see remoteProcess.Forget. Once the job has ended nothing of it can live.
func (p *slurmProcess) Forget(ctx context.Context) error {
	if p.slurm.ended() == nil || p.ref.Run == "" {
		within, done := p.slurm.within(ctx)
		defer done()
		return p.remoteProcess.Forget(within)
	}
	// On a node that Slurm has lost the keeper may be about to write.
	_, err := p.slurm.command(ctx, "sh", "-c", `for i in 1 2 3 4; do rm -rf "$1" 2>/dev/null && exit; sleep 1; done; rm -rf "$1"`, "sh", path.Dir(p.file("rc")))
	return err
}
