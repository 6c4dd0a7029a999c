package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	serveSilence = 2 * time.Minute // a caller that lives is heard each pingInterval
	longestAsk   = 64 << 20        // bytes of one request: a command line and its environment
)

// ServeOptions are the settings of Serve. Host and Work are needed.
type ServeOptions struct {
	Host    *Local
	Work    string        // folder for what is started here, made if it is missing (mode 0700)
	Self    []string      // how to run this program's "keep FOLDER" and "hold FOLDER"; nil = the running program
	Version string        // told to the caller
	Silence time.Duration // without a word from the caller it ends; 0 = 2 min
	Ask     string        // folder in which keepers are asked for by the name of their run, "" = they are started here
}

// ErrSilent is Serve's error when the caller was not heard for too long.
var ErrSilent = errors.New("nothing was heard of the caller")

// agent is one Serve.
type agent struct {
	ServeOptions
	mu      sync.Mutex // for out
	out     *json.Encoder
	running struct {
		sync.Mutex
		cancel map[uint64]context.CancelFunc
	}
}

// Serve answers the requests of a Remote, one JSON object a line, until in ends. What it started lives on: every
// process has a keeper of its own (KeepMain), and the lease a holder (HoldMain).
//
//	Remote                                Serve
//	   │ ◀───────────── hello ────────────  │   program, protocol, version, boot id
//	   │ ─── {"id":1,"op":"start",…} ────▶  │   requests run side by side
//	   │ ─── {"id":2,"op":"wait",…} ─────▶  │
//	   │ ◀── {"id":1,"result":…} ─────────  │   answers come when they are ready
//	   │ ─── {"id":3,"op":"cancel",…} ───▶  │
//	   │ ◀── {"id":2,"error":…} ──────────  │
func Serve(ctx context.Context, in io.Reader, out io.Writer, o ServeOptions) error {
	if o.Self == nil {
		o.Self = []string{"/proc/self/exe"} // also right when a newer agent took this one's place
	}
	if o.Silence <= 0 {
		o.Silence = serveSilence
	}
	if !filepath.IsAbs(o.Work) {
		return fmt.Errorf("serve: the work folder %q is not an absolute path", o.Work)
	}
	if err := os.MkdirAll(filepath.Join(o.Work, "run"), 0o700); err != nil {
		return fmt.Errorf("serve: make the work folder: %w", err)
	}
	a := &agent{ServeOptions: o, out: json.NewEncoder(out)}
	a.running.cancel = map[uint64]context.CancelFunc{}
	hello := serveHello{
		Program: serveProgram, Protocol: ServeProtocol, Version: o.Version, BootID: o.Host.boot, PID: os.Getpid(),
	}
	if err := a.out.Encode(hello); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	return a.listen(ctx, in, &work)
}

// listen reads requests until there are no more.
func (a *agent) listen(ctx context.Context, in io.Reader, work *sync.WaitGroup) error {
	lines, failed := make(chan []byte), make(chan error, 1)
	quit := make(chan struct{})
	defer close(quit)
	// After ErrSilent this goroutine is still in Read: it ends with the pipe, here with the process.
	go func() {
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, longestAsk)
		for scan.Scan() {
			select {
			case lines <- append([]byte(nil), scan.Bytes()...):
			case <-quit:
				return
			}
		}
		failed <- scan.Err()
	}()
	for {
		silent := time.NewTimer(a.Silence)
		select {
		case line := <-lines:
			silent.Stop()
			if err := a.take(ctx, line, work); err != nil {
				return err
			}
		case err := <-failed:
			silent.Stop()
			return err
		case <-silent.C:
			return fmt.Errorf("%w for %s", ErrSilent, a.Silence)
		}
	}
}

// take begins one request.
func (a *agent) take(ctx context.Context, line []byte, work *sync.WaitGroup) error {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("serve: %.100q is no request: %w", line, err)
	}
	if r.Op == "cancel" {
		var id uint64
		if err := json.Unmarshal(r.Args, &id); err != nil {
			return fmt.Errorf("serve: cancel: %w", err)
		}
		a.running.Lock()
		if cancel := a.running.cancel[id]; cancel != nil {
			cancel()
		}
		a.running.Unlock()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a.running.Lock()
	a.running.cancel[r.ID] = cancel
	a.running.Unlock()
	work.Go(func() {
		a.answer(ctx, r)
		a.running.Lock()
		delete(a.running.cancel, r.ID)
		a.running.Unlock()
		cancel()
	})
	return nil
}

// answer does one request and tells what came of it. If that cannot be written the caller is gone, and its
// input will end.
func (a *agent) answer(ctx context.Context, r request) {
	reply := response{ID: r.ID}
	result, err := a.do(ctx, r)
	if err == nil {
		reply.Result, err = json.Marshal(result)
	}
	if err != nil {
		reply.Error = toWire(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.out.Encode(reply)
}

// do finds the operation and runs it. A fault in one request must not end the agent that others use.
func (a *agent) do(ctx context.Context, r request) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: fault of the agent: %v", r.Op, p)
		}
	}()
	operation, ok := operations[r.Op]
	if !ok {
		return nil, fmt.Errorf("the agent knows no %q", r.Op)
	}
	return operation(ctx, a, r.Args)
}
