package simulator

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// orphanLife is how long a scheduler that lost its parent before it was armed lives on: the real one's
// siblings stay for ever, a test machine should not.
const orphanLife = 10 * time.Minute

// child is the scheduler process: it holds the memory claims and is what a group kill must reach.
type child struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	done chan struct{}
}

// startChild runs this program again as "sglang::scheduler_TP0 sim-server --sim-child scheduler", in the
// same process group and with the same environment, so that it carries the trial's marker.
func startChild(f *Faults) (*child, error) {
	cmd := exec.Command("/proc/self/exe", "sim-server", "--sim-child", "scheduler") //nolint:noctx // it outlives a cancelled context, as SGLang's children do
	cmd.Args[0] = "sglang::scheduler_TP0"
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start simulated scheduler: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start simulated scheduler: %w", err)
	}
	c := &child{cmd: cmd, pipe: pipe, done: make(chan struct{})}
	if f.IgnoreTerm {
		c.tell('i')
	}
	go func() {
		_ = cmd.Wait() // the status is read from ProcessState by whoever saw done
		close(c.done)
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// tell sends one command; a child that is gone is noticed through done.
func (c *child) tell(b byte) { _, _ = c.pipe.Write([]byte{b}) }

// arm makes the child die with its parent from now on, as PDEATHSIG does once SGLang's scheduler is up.
func (c *child) arm() { c.tell('a') }

// kill ends the child and waits for it, at most two seconds of real time.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	select {
	case <-c.done:
	case <-time.After(2 * time.Second):
	}
}

// code is the exit status as Python shows it: negative for a signal. Only valid after done.
func (c *child) code() int {
	if ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// childMain is the scheduler's whole life: wait for commands, and for the parent's end.
func childMain(ctx context.Context, in io.Reader) int {
	signal.Reset(syscall.SIGTERM, syscall.SIGINT)
	_ = os.WriteFile("/proc/self/comm", []byte("sglang::schedul"), 0) // only cosmetic
	armed := false
	var b [1]byte
	for {
		n, err := in.Read(b[:])
		if n == 1 {
			switch b[0] {
			case 'a':
				armed = true
			case 'i':
				signal.Ignore(syscall.SIGTERM)
			}
		}
		if err != nil {
			break
		}
	}
	if !armed {
		_ = sleep(ctx, orphanLife)
	}
	return 0
}
