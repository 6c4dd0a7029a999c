package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sgtune/tuner"
)

// A detached study is the same program started once more, in a session of its own: a closed terminal or a lost
// ssh connection cannot reach it. The one that was called waits until the study began or failed, and says which.

// beginning is the line by which a detached study tells how its start went.
type beginning struct {
	Began bool   `json:"began"`
	Page  string `json:"page,omitempty"`
	Error string `json:"error,omitempty"` // "" also for an end that was told in full
	Code  int    `json:"code,omitempty"`
}

// starter is the detached study's side of that line; nil for a study that is not detached.
type starter struct {
	once sync.Once
	to   io.WriteCloser
}

// newStarter takes the descriptor that the caller left open; servers must not inherit it.
func newStarter(fd int) *starter {
	if fd <= 0 {
		return nil
	}
	syscall.CloseOnExec(fd)
	return &starter{to: os.NewFile(uintptr(fd), "caller")}
}

// tell says once how the start went. The caller may be gone: the study does not depend on it.
func (s *starter) tell(b beginning) {
	if s == nil {
		return
	}
	s.once.Do(func() {
		_ = json.NewEncoder(s.to).Encode(b)
		_ = s.to.Close()
	})
}

// began is told when the first launch is about to happen: the host is ours by then, and free.
func (s *starter) began(page string) { s.tell(beginning{Began: true, Page: page}) }

// ended is told when the program ends before that.
func (s *starter) ended(err error) {
	b := beginning{Code: exitCode(err)}
	if err != nil {
		b.Error = err.Error()
	}
	s.tell(b)
}

// detached is a study that was started in a session of its own.
type detached struct {
	Kind  string `json:"kind"` // "detached"
	Study string `json:"study"`
	PID   int    `json:"pid"`
	Page  string `json:"page,omitempty"`
	Log   string `json:"log"`
	Stop  string `json:"stop"` // command
}

// detach starts the study as cmd was called, in a session of its own, and waits until it began or ended.
func detach(cmd *cobra.Command, path string, o tuneOptions) error {
	study, err := readStudy(path) // a mistake in the file is told before anything is made
	if err == nil {
		err = o.override(study)
	}
	if err != nil {
		return err
	}
	if o.db == "" {
		o.db = filepath.Join(filepath.Dir(path), "sgtune.db")
	}
	log, from, err := openDetachedLog(o.db, study.Name)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the study has its own descriptor
	child, line, err := startDetached(detachedArgs(cmd, path), log)
	if err != nil {
		return err
	}
	b, err := awaitBeginning(child, line)
	out := cmd.OutOrStdout()
	switch {
	case err != nil:
		return failf(exitFailed, "the study %s before it began: %w; its log is %s", study.Name, err, log.Name())
	case b.Began:
		return sayDetached(out, o, detached{
			Kind: "detached", Study: study.Name, PID: child.Process.Pid, Page: b.Page, Log: log.Name(), Stop: fmt.Sprintf("kill -INT %d", child.Process.Pid),
		})
	case b.Error == "": // it had nothing to launch and has said so
		if err := copyFrom(out, log.Name(), from); err != nil {
			return err
		}
	}
	if b.Code == exitDone {
		return nil
	}
	return failf(b.Code, "%s", b.Error)
}

// openDetachedLog opens the file that receives what the study prints, beside its evidence and not in it:
// --fresh gives that folder another name.
func openDetachedLog(db, study string) (log *os.File, from int64, err error) {
	folder := filepath.Join(filepath.Dir(db), "sgtune.files")
	path := filepath.Join(folder, study+".tune.log")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, 0, fmt.Errorf("make the folder of the study's log: %w; choose another place with --db", err)
	}
	if log, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		return nil, 0, fmt.Errorf("open the study's log: %w; choose another place with --db", err)
	}
	info, err := log.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the study's log: %w", err), log.Close())
	}
	return log, info.Size(), nil
}

// detachedArgs are the words that start the same study in the foreground.
func detachedArgs(cmd *cobra.Command, path string) []string {
	args := []string{cmd.Name(), "--caller-fd=3"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "detach" {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return append(args, "--", path)
}

// startDetached starts sgtune itself in a new session, and returns where its line will come.
func startDetached(args []string, log *os.File) (child *exec.Cmd, line *os.File, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find sgtune's own program: %w", err)
	}
	line, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the study: %w", err)
	}
	child = &exec.Cmd{
		Path: self, Args: append([]string{os.Args[0]}, args...), Stdout: log, Stderr: log, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = child.Start()
	if closed := theirs.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the study: %w", err), line.Close())
	}
	return child, line, nil
}

// awaitBeginning waits for the study's line; for one that ended before, until it is gone. Ctrl-C meanwhile is
// passed on: it means the study, which then cleans up. An error says how a study ended that told nothing.
func awaitBeginning(child *exec.Cmd, line *os.File) (beginning, error) {
	defer func() { _ = line.Close() }() // opened for reading
	asked := make(chan os.Signal, 4)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for s := range asked {
			_ = child.Process.Signal(s) // it may have ended just now
		}
	}()
	defer func() { signal.Stop(asked); close(asked); <-passed }()
	var b beginning
	err := json.NewDecoder(line).Decode(&b)
	if err == nil && b.Began {
		return b, nil // init is its parent when we are gone
	}
	ended := child.Wait()
	switch {
	case err == nil:
		return b, nil
	case ended != nil:
		return b, fmt.Errorf("ended (%w)", ended)
	}
	return b, errors.New("ended without a word")
}

// sayDetached tells how to watch a detached study and how to stop it.
func sayDetached(out io.Writer, o tuneOptions, d detached) error {
	if o.json {
		return json.NewEncoder(out).Encode(d)
	}
	lines := []string{fmt.Sprintf("study %s has begun and runs by itself: pid %d", d.Study, d.PID)}
	if d.Page != "" {
		lines = append(lines, "watch: "+d.Page)
	}
	lines = append(lines, "log:   tail -f "+shellWord(d.Log), "stop:  "+d.Stop+"  (the host is cleaned up; once more to hurry)")
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// copyFrom prints a file from a place on.
func copyFrom(out io.Writer, path string, from int64) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the study's log: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return fmt.Errorf("read the study's log: %w", err)
	}
	if _, err := io.Copy(out, f); err != nil {
		return fmt.Errorf("read the study's log: %w", err)
	}
	return nil
}

// watchBeginning makes the loop tell when the first launch is about to happen.
func (n *night) watchBeginning(loop *tuner.Loop, page string) {
	show := loop.Show
	loop.Show = func(s tuner.Status) {
		if s.Next != nil {
			n.starter.began(page)
		}
		show(s)
	}
}

// tuneDetached is the detached study's own run.
func tuneDetached(ctx context.Context, path string, o tuneOptions, stdout io.Writer) error {
	s := newStarter(o.callerFD)
	err := tune(ctx, path, o, stdout, s)
	s.ended(err)
	return err
}
