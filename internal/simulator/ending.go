package simulator

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// timed are the faults that strike at a moment after ready, with what they do; the exit status is valid when done
// is true.
func (s *server) timed(ctx context.Context) []struct {
	at     float64
	strike func() (code int, done bool)
} {
	f := &s.l.s.Sim.Faults
	watchdog := s.l.s.WatchdogS
	if watchdog <= 0 {
		watchdog = 300
	}
	freeze := func() (int, bool) { s.freeze(); return 0, false }
	return []struct {
		at     float64
		strike func() (code int, done bool)
	}{
		{f.HangAt, freeze},
		{f.WatchdogAt, freeze},
		{f.WatchdogAt + watchdog, func() (int, bool) { return s.watchdog(ctx), true }},
		{f.SilentAt, func() (int, bool) { s.kill(); return 137, true }},
		{f.SchedulerKilledAt, func() (int, bool) { _ = s.child.cmd.Process.Kill(); return 0, false }},
		{f.NCCLAt, func() (int, bool) { s.freeze(); return s.crash(ctx, s.ncclFailure()), true }},
		{f.CUDAAt, func() (int, bool) { s.freeze(); return s.crash(ctx, s.cudaFailure()), true }},
	}
}

// serveUntilEnd is the time after ready: until a signal, a crash, a fault, or the child's death.
func (s *server) serveUntilEnd(ctx context.Context, exits chan func() int) int {
	term := make(chan os.Signal, 1)
	if !s.l.s.Sim.Faults.IgnoreTerm {
		signal.Notify(term, syscall.SIGTERM)
		defer signal.Stop(term)
	}
	ready, _ := s.readyS.Load().(float64)
	events := s.timed(ctx)
	strikes := make(chan int, len(events))
	for i, e := range events {
		if e.at <= 1e15 { // +Inf: never
			t := time.AfterFunc(s.clock.real(ready+e.at-s.clock.now()), func() { strikes <- i })
			defer t.Stop()
		}
	}
	lost := s.child.done
	for {
		select {
		case <-ctx.Done():
			s.quit()
			return 130
		case end := <-exits:
			return end()
		case i := <-strikes:
			if code, done := events[i].strike(); done {
				return code
			}
		case <-lost:
			if lost = nil; s.schedulerGone() {
				return s.sigquit(ctx)
			}
		case <-term:
			return s.drain(ctx)
		}
	}
}

// freeze stops the scheduler: no step ends any more, nothing is printed.
func (s *server) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

// drain is SIGTERM to a ready server: no new work, running requests end, exit 0.
func (s *server) drain(ctx context.Context) int {
	s.state.Store(int32(stateDraining))
	s.log.line(s.clock.now(), -1, "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
	s.log.flush()
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
	s.log.line(s.clock.now(), -1, "%s", s.l.d.drained())
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

// lingers tells whether the newest SGLang's crash diagnostics are on: 5 s of settling before the tree dies.
func (s *server) lingers() bool {
	v := strings.ToLower(os.Getenv("SGLANG_PYSPY_DUMP_BEFORE_CRASH"))
	return s.l.d.release >= r0523 && v != "0" && v != "false"
}

// crash is an exception in a serving scheduler.
func (s *server) crash(ctx context.Context, f *Failure) int {
	s.log.raw(forwardTraceback(s, f))
	return s.sigquit(ctx)
}

// schedulerGone is the death of a scheduler that could not say anything; it tells whether the server ends of it.
func (s *server) schedulerGone() (ends bool) {
	s.freeze()
	text, ends := s.l.d.killedScheduler(s.child.pid(), s.child.code())
	if text != "" {
		s.log.line(s.clock.now(), -1, "%s", text)
		s.log.flush()
	}
	return ends
}

// watchdog is the scheduler's own end of a forward pass that never returns: each rank says so, then the tree dies.
func (s *server) watchdog(ctx context.Context) int {
	at, d := s.clock.now(), s.l.d
	for _, r := range s.l.sortedRanks(uint64(at)) {
		if d.release >= r0510 {
			s.log.line(at, r, "Scheduler debug info:\nscheduler.cur_batch.batch_size()=%d\nscheduler.cur_batch.reqs=[...]\n", max(s.inFlight(), 1))
		} else {
			s.log.line(at, r, "self.cur_batch.batch_size()=%d, self.cur_batch.reqs=[...], ", max(s.inFlight(), 1))
		}
		s.log.line(at, r, "%s", d.watchdog(s.l.resolved("watchdog_timeout")))
		s.log.raw("\n")
	}
	s.log.flush()
	_ = sleep(ctx, s.clock.real(5))
	return s.sigquit(ctx)
}

// inFlight is how many requests run or wait.
func (s *server) inFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.eng.running) + len(s.eng.waiting)
}

func (s *server) sigquit(ctx context.Context) int {
	s.log.line(s.clock.now(), -1, "%s", s.l.d.childFailed())
	if s.lingers() {
		s.log.line(s.clock.now(), -1, "Sleeping 5 seconds before crash diagnostics to let GPU activity settle.")
		s.log.flush()
		_ = sleep(ctx, s.clock.real(5))
	}
	if s.l.d.release >= r0523 {
		s.log.line(s.clock.now(), -1, "kill_process_tree called: parent_pid=%d, include_parent=True, pid=%d", os.Getpid(), os.Getpid())
	}
	s.kill()
	return 137
}

// dieLoading is a death before ready.
func (s *server) dieLoading(_ context.Context, at float64, f *Failure) int {
	if f.Cause == "kernel_oom_kill" {
		s.claims.oomKill()
		s.sayLost(at, f.Rank, -9)
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
	s.sayLost(s.clock.now(), 0, s.child.code())
	s.quit()
	return 1
}

func (s *server) sayLost(at float64, rank, code int) {
	lines, text := s.l.d.lostRank(rank, code)
	for _, line := range lines {
		s.log.line(at, -1, "%s", line)
	}
	s.log.raw(text)
}
