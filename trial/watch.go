package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sgtune/host"
	"sgtune/sglang"
)

// Ends of a trial that the watch notices.
var (
	errDied  = errors.New("the server ended")
	errStuck = errors.New("the server makes no progress")
)

const (
	logPoll      = 250 * time.Millisecond // host time between two looks at the log
	logPollReal  = 25 * time.Millisecond  // real time, at least
	logChunk     = 256 << 10
	usagePoll    = time.Second            // host time between two readings of the host
	usagePollMin = 200 * time.Millisecond // real time, at least
	memoryMoves  = 256 << 20              // a change of memory in use that counts as progress
)

// watch follows one running server: its log (copied, masked, into the evidence), its end, and what
// the host's memory does meanwhile. Everything behind mu is host time and host bytes.
type watch struct {
	a       *attempt
	process host.Process
	cancel  context.CancelFunc
	wait    sync.WaitGroup

	reading  sync.Mutex // held while the log is read: a cut link can make that long, and mu must not wait for it
	mu       sync.Mutex
	reader   *sglang.Reader
	offset   int64
	speeds   []speed   // decode lines
	progress time.Time // log grew, a batch ran, a token came, memory moved
	evidence *sglang.MaskWriter
	file     *os.File
	failed   error // first failure to write the evidence

	underLoad bool
	memory    memoryFacts
	findings  []Finding           // what the watch itself found
	fault     *host.GPUFault      // first one of a GPU
	throttle  host.ThrottleWindow // under load
}

// startWatch begins to follow the process. The watch lives until close, beyond the end of work:
// the last lines of a dying server matter most.
func (a *attempt) startWatch(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &watch{
		a: a, process: a.process, cancel: cancel, reader: sglang.NewReader(),
		progress: a.Clock.Now(), memory: newMemoryFacts(a.baseline),
	}
	w.memory.lowWater, w.memory.minRAM, w.memory.ownRAM = a.t.LowWater, a.t.MinRAM, a.t.OwnRAM // -1, but for an adopted server
	w.openEvidence(a.serverLog())
	a.watch = w
	for _, task := range []func(context.Context){w.follow, w.sample, w.listen, w.keepGuarded} {
		w.wait.Go(func() { // a panic here would end sgtune and leave the server behind
			if err := guard(func() error { task(ctx); return nil }); err != nil {
				a.abort(err)
			}
		})
	}
}

// serverLog is the masked copy of the server's log.
func (a *attempt) serverLog() string { return filepath.Join(a.dir(), "server.log") }

func (w *watch) openEvidence(path string) {
	to := io.Discard
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		w.failed = err
	} else {
		w.file, to = file, file
	}
	w.evidence = sglang.NewMaskWriter(to, w.a.Secrets...)
}

// close ends the watch, waits for it and reads what is left of the log.
func (w *watch) close(ctx context.Context) {
	w.cancel()
	w.wait.Wait()
	last, done := w.a.within(ctx, stopTime, stopTimeReal)
	w.drain(last)
	done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(w.reader.Close())
	err := w.evidence.Flush()
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
		w.file = nil
	}
	if err != nil && w.failed == nil {
		w.failed = err
	}
}

// follow reads the log until the process ends; then it ends work.
func (w *watch) follow(ctx context.Context) {
	for {
		w.drain(ctx)
		select {
		case <-ctx.Done():
			return
		case <-w.process.Done():
			w.drain(ctx)
			w.a.abort(errDied)
			return
		case <-w.a.Clock.After(w.a.floor(logPoll, logPollReal)):
		}
	}
}

// drain reads the log to its present end.
func (w *watch) drain(ctx context.Context) {
	w.reading.Lock()
	defer w.reading.Unlock()
	for {
		b, err := w.process.Log(ctx, w.offset, logChunk) // offset changes under both locks
		w.mu.Lock()
		if err != nil && ctx.Err() == nil && w.failed == nil {
			w.failed = fmt.Errorf("read the server's log: %w", err)
		}
		if err == nil && len(b) > 0 {
			w.take(b)
		}
		w.mu.Unlock()
		if err != nil || len(b) == 0 {
			return
		}
	}
}

// take feeds one piece of the log to the evidence and to the reader; mu is held.
func (w *watch) take(b []byte) {
	w.offset += int64(len(b))
	if !echo(b, w.underLoad) {
		w.progress = w.a.Clock.Now()
	}
	if _, err := w.evidence.Write(b); err != nil && w.failed == nil {
		w.failed = err
		w.evidence = sglang.NewMaskWriter(io.Discard)
	}
	w.note(w.reader.Feed(b))
}

// What probes of readiness and health leave in the log. An answered /generate is one of ours only as long as
// no load runs.
var (
	probeSigns = [][]byte{[]byte("/health"), []byte("/ready"), []byte("Health check failed")}
	tokenSign  = []byte("POST /generate HTTP")
)

// echo reports whether all lines of a piece of the log are what probes caused: those are no progress of the
// server. A hung one goes on printing them.
func echo(b []byte, underLoad bool) bool {
	for line := range bytes.Lines(b) {
		ours := len(bytes.TrimSpace(line)) == 0 || !underLoad && bytes.Contains(line, tokenSign)
		for _, sign := range probeSigns {
			ours = ours || bytes.Contains(line, sign)
		}
		if !ours {
			return false
		}
	}
	return true
}

// note keeps what is wanted of events; mu is held.
func (w *watch) note(events []sglang.Event) {
	for _, e := range events {
		if toks, ok := e.Values["gen_tok_s"]; ok && (e.Rank <= 0 || e.DP >= 0) {
			w.speeds = append(w.speeds, speed{read: w.a.Clock.Now(), printed: e.At, dp: e.DP, toks: toks})
		}
	}
}

// facts is what the log says so far, and the first event of each kind.
func (w *watch) facts() (sglang.LogFacts, map[string]sglang.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.reader.Facts()
	return f, f.First
}

// latest is the last event of each kind.
func (w *watch) latest() map[string]sglang.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reader.Facts().Last
}

// moved notes progress that the log does not show.
func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = w.a.Clock.Now()
}

// silence is host time since the last progress.
func (w *watch) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.a.Clock.Now().Sub(w.progress)
}

// loading says that requests run from now on (or no longer do).
func (w *watch) loading(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.underLoad = on; on {
		w.progress = w.a.Clock.Now()
	}
}
