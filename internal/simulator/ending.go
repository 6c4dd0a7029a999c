package simulator

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// serveUntilEnd is the time after ready: until a signal, a crash, a fault, or the child's death.
func (s *server) serveUntilEnd(ctx context.Context, exits chan func() int) int {
	f := &s.l.s.Sim.Faults
	term := make(chan os.Signal, 1)
	if !f.IgnoreTerm {
		signal.Notify(term, syscall.SIGTERM)
		defer signal.Stop(term)
	}
	ready, _ := s.readyS.Load().(float64)
	hang, silent := s.at(ready+f.Hang), s.at(ready+f.Silent)
	for {
		select {
		case <-ctx.Done():
			s.quit()
			return 130
		case end := <-exits:
			return end()
		case <-hang:
			s.mu.Lock()
			s.frozen = true
			s.mu.Unlock()
			hang = nil
		case <-silent:
			s.kill()
		case <-s.child.done:
			return s.childCrashed(ctx)
		case <-term:
			return s.drain(ctx)
		}
	}
}

// at fires at a simulated time; never for +Inf.
func (s *server) at(t float64) <-chan time.Time {
	if t > 1e15 {
		return nil
	}
	return time.After(s.clock.real(t - s.clock.now()))
}

// drain is SIGTERM to a ready server: no new work, running requests end, exit 0.
func (s *server) drain(ctx context.Context) int {
	s.state.Store(int32(stateDraining))
	s.log.line(s.clock.now(), -1, "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
	for {
		s.mu.Lock()
		idle := s.eng.Idle()
		s.mu.Unlock()
		if idle || ctx.Err() != nil {
			break
		}
		_ = sleep(ctx, 2*tick)
	}
	_ = sleep(ctx, 4*tick) // the last events reach their clients
	s.log.line(s.clock.now(), -1, "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
	s.quit()
	return 0
}

// quit ends the child and gives the memory back.
func (s *server) quit() {
	s.child.kill()
	s.claims.clear()
	s.log.flush()
}

// kill is kill_process_tree: the child, then this process, by SIGKILL.
func (s *server) kill() {
	s.child.kill()
	s.claims.clear()
	s.log.flush()
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// lingers tells whether SGLang's crash diagnostics are on: 5 s of settling before the tree dies.
func lingers() bool {
	v := strings.ToLower(os.Getenv("SGLANG_PYSPY_DUMP_BEFORE_CRASH"))
	return v != "0" && v != "false"
}

// crash is an exception in a serving scheduler.
func (s *server) crash(ctx context.Context, f *Failure) int {
	s.log.raw(forwardTraceback(s, f))
	return s.sigquit(ctx)
}

func (s *server) childCrashed(ctx context.Context) int {
	s.log.line(s.clock.now(), -1, "Subprocess scheduler_0 (pid=%d) crashed with exit code %d. Triggering SIGQUIT for cleanup...", s.child.pid(), s.child.code())
	s.mu.Lock()
	s.frozen = true
	s.mu.Unlock()
	return s.sigquit(ctx)
}

func (s *server) sigquit(ctx context.Context) int {
	s.log.line(s.clock.now(), -1, "SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
	if lingers() {
		s.log.line(s.clock.now(), -1, "Sleeping 5 seconds before crash diagnostics to let GPU activity settle.")
		s.log.flush()
		_ = sleep(ctx, s.clock.real(5))
	}
	s.log.line(s.clock.now(), -1, "kill_process_tree called: parent_pid=%d, include_parent=True, pid=%d", os.Getpid(), os.Getpid())
	s.kill()
	return 137
}

// dieLoading is a death before ready.
func (s *server) dieLoading(_ context.Context, at float64, f *Failure) int {
	if f.Cause == "kernel_oom_kill" {
		s.claims.oomKill()
		s.log.raw(initTraceback(f.Text))
		s.quit()
		return 1
	}
	s.log.raw(loadTraceback(s, at, f))
	s.log.line(at+1, -1, "Received sigquit from a child process. It usually means the child failed.")
	s.kill()
	return 137
}

// lostChild is what a launch says when its scheduler disappears before it is ready.
func (s *server) lostChild() int {
	select {
	case <-s.child.done:
	default:
		s.quit()
		return 130
	}
	code := s.child.code()
	s.log.raw(initTraceback(fmt.Sprintf("RuntimeError: Rank 0 scheduler died during initialization (exit code: %d). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.", code)))
	s.quit()
	return 1
}
