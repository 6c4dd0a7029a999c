package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Time of the guard's process, real.
const (
	guardAnswers = 30 * time.Second // for one answer, on a machine that is busy with a model
	guardEnds    = 2 * time.Second  // for a killed one to be gone
	longestBeat  = 10 * time.Second // between two touches of the heartbeat
)

// guardProcess is the guard of a command of ours: a process of its own (GuardMain) that outlives us.
type guardProcess struct {
	folder runFolder
	in     *os.File
	out    *os.File
	words  *json.Decoder
	beat   time.Duration // real time between two touches of the heartbeat

	process *os.Process
	ended   chan struct{}
	status  error // valid once ended is closed
}

// guardFolder is where the guard of a command keeps its files: beside its log.
func guardFolder(logPath string) runFolder { return runFolder(logPath + ".guard") }

// readyGuard starts the guard of a command that is about to be started, and waits until it says that it can do its
// work: nothing runs unguarded that was to be guarded.
func (l *Local) readyGuard(ctx context.Context, c Command) (*guardProcess, error) {
	g, err := l.startGuard(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("nothing was started, because its guard cannot be: %w", err)
	}
	return g, nil
}

func (l *Local) startGuard(ctx context.Context, c Command) (*guardProcess, error) {
	if len(l.guard) == 0 {
		return nil, errors.New("this host has no program for it")
	}
	if c.LogPath == "" {
		return nil, errors.New("its files lie beside the command's log, which has none")
	}
	log, err := filepath.Abs(c.LogPath)
	if err != nil {
		return nil, err
	}
	job := guardJob{
		Limits: *c.Guard, Marker: c.Marker, Folder: string(guardFolder(log)), Evidence: c.Guard.Evidence, Now: l.clock.Now(), Scale: l.clock.Scale(),
	}
	if job.Evidence != "" {
		if job.Evidence, err = filepath.Abs(job.Evidence); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(job.Folder, 0o700); err != nil {
		return nil, err
	}
	if err := runFolder(job.Folder).write(guardTask, job); err != nil {
		return nil, err
	}
	g, err := l.runGuard(runFolder(job.Folder))
	if err != nil {
		return nil, err
	}
	g.beat = l.beatEvery(*c.Guard)
	if err := g.tell(ctx, job); err != nil {
		return nil, errors.Join(err, g.dismiss())
	}
	return g, nil
}

// runGuard starts the program, in a session of its own and without our marker: it is no part of the trial.
func (l *Local) runGuard(f runFolder) (*guardProcess, error) {
	path, err := lookPath(l.guard[0], os.Getenv("PATH"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.guard[0], err)
	}
	trouble, err := os.OpenFile(f.path(guardTrouble), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = trouble.Close() }() // the guard has its own descriptor
	itsIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = itsIn.Close() }()
	out, itsOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer func() { _ = itsOut.Close() }()
	cmd := &exec.Cmd{Path: path, Args: l.guard, Env: probeEnv(), Stdin: itsIn, Stdout: itsOut, Stderr: trouble, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	g := &guardProcess{folder: f, in: in, out: out, words: json.NewDecoder(out), process: cmd.Process, ended: make(chan struct{})}
	go func() { // ends with the guard; waited for by who closes it, or asks for its verdict
		defer close(g.ended)
		g.status = cmd.Wait()
	}()
	return g, nil
}

// tell sends the guard a line and waits for its answer.
func (g *guardProcess) tell(ctx context.Context, line any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, guardAnswers, fmt.Errorf("no answer within %s", guardAnswers))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		_ = errors.Join(g.in.SetDeadline(time.Now()), g.out.SetReadDeadline(time.Now())) // ends what waits for them below
	})
	defer stop()
	var word guardWord
	err := json.NewEncoder(g.in).Encode(line)
	if err == nil || errors.Is(err, syscall.EPIPE) { // one that has ended said why before
		err = g.words.Decode(&word)
	}
	switch {
	case err == nil && word.Problem != "":
		return errors.New(word.Problem)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("it gave no answer: %w%s", err, g.lastWords())
}

// lastWords is what the guard printed to standard error, as the end of a sentence.
func (g *guardProcess) lastWords() string {
	b, err := os.ReadFile(g.folder.path(guardTrouble))
	if b = bytes.TrimSpace(b); err != nil || len(b) == 0 {
		return ""
	}
	return ": " + string(b[max(0, len(b)-300):])
}

// dismiss ends a guard that has nothing to guard, if there is one.
func (g *guardProcess) dismiss() error {
	if g == nil {
		return nil
	}
	err := errors.Join(g.in.Close(), g.out.Close())
	_ = g.process.Kill() // fails if it has just ended
	t := time.NewTimer(guardEnds)
	defer t.Stop()
	select {
	case <-g.ended:
		return err
	case <-t.C:
		return errors.Join(err, fmt.Errorf("guard: pid %d does not end", g.process.Pid))
	}
}

// watch names the process that now exists. From here on the guard needs nothing of us but the heartbeat, which is
// touched until the process has ended.
func (g *guardProcess) watch(ctx context.Context, p *process) error {
	if err := g.tell(ctx, p.id); err != nil {
		return errors.Join(fmt.Errorf("it was ended at once, because its guard does not watch it: %w", err), g.dismiss())
	}
	if err := errors.Join(g.in.Close(), g.out.Close()); err != nil {
		return err
	}
	go g.hear(p.done)
	return nil
}

// hear lets the guard hear us until the process has ended, as reap does.
func (g *guardProcess) hear(done <-chan struct{}) {
	for {
		_ = TouchHeartbeat(g.folder.path(guardBeat)) // tried again; a file that stays untouched is silence
		select {
		case <-done:
			return
		case <-time.After(g.beat):
		}
	}
}

// Guarded is what the guard of this process decided, nil when it has none or nothing was decided yet. Once the process
// has ended it waits for the guard to be done: that is when nothing of the trial lives.
func (p *process) Guarded(ctx context.Context) (*GuardVerdict, error) {
	g := p.guardNow()
	if g == nil {
		return nil, nil
	}
	select {
	case <-p.done:
		select {
		case <-g.ended:
		case <-ctx.Done(): // something of the trial lives on, and so does its guard
		}
	default:
	}
	v, err := g.folder.verdict()
	if v != nil || err != nil {
		return v, err
	}
	select {
	case <-g.ended:
		return nil, fmt.Errorf("the guard ended without a word (%w)%s", errors.Join(g.status, errEarly), g.lastWords())
	default:
		return nil, nil
	}
}

var errEarly = errors.New("before the trial was over")

// verdict reads the guard's verdict, nil as long as there is none.
func (f runFolder) verdict() (*GuardVerdict, error) {
	v, err := ReadGuardVerdict(f.path(guardVerdict))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// LeftGuard waits until the guard of a command has ended that an earlier sgtune started with this LogPath, and returns its
// verdict; nil when it has none. The guard ends by itself once nothing of the trial lives.
func LeftGuard(ctx context.Context, logPath string) (*GuardVerdict, error) {
	f := guardFolder(logPath)
	for f.has("lock") && f.kept() {
		if !pause(ctx, lastWatch) {
			return nil, fmt.Errorf("wait for the guard in %s: %w", f, context.Cause(ctx))
		}
	}
	return f.verdict()
}
