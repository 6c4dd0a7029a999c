package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNoLibrary is returned by ReadGPUs where the NVIDIA management library cannot be loaded.
var ErrNoLibrary = errors.New(phraseNoLibrary)

// probeTimeout is how long a probe may take when Probe.Timeout is not set.
const probeTimeout = 5 * time.Second

// reading is what the probe prints: one JSON object on one line.
type reading struct {
	GPUs      []GPU  `json:"gpus,omitempty"`
	Error     string `json:"error,omitempty"`
	NoLibrary bool   `json:"no_library,omitempty"`
}

// ProbeMain is the body of "sgtune nvml-probe": it reads the GPUs through the library (empty = its
// usual name) and prints them as JSON. What NVML says is part of the output; the error is about
// writing only. A library without a function we call, or a hung driver, ends or blocks this
// process and not the sgtune that started it.
func ProbeMain(w io.Writer, library string) error {
	gpus, err := ReadGPUs(library)
	r := reading{GPUs: gpus, NoLibrary: errors.Is(err, ErrNoLibrary)}
	if err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("print GPU facts: %w", err)
	}
	return nil
}

// Probe reads GPU facts by running a program that calls ProbeMain. It must not be copied after the
// first Read.
type Probe struct {
	Argv    []string      // usually sgtune's own path and "nvml-probe"
	Timeout time.Duration // real time, 0 = 5 s

	mu        sync.Mutex
	noLibrary bool          // does not change while sgtune runs: not asked again
	hung      chan struct{} // closed when a probe that would not die has died after all
}

// Read returns the GPUs, or none and a note that says why. It takes Timeout and a second at most,
// also when the driver blocks the probe for ever. Calls wait for each other.
func (p *Probe) Read(ctx context.Context) ([]GPU, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noLibrary {
		return nil, note(ErrNoLibrary)
	}
	var r reading
	out, err := p.output(ctx)
	if err == nil {
		r, err = parseReading(out)
	}
	switch {
	case err != nil:
		return nil, note(err)
	case r.NoLibrary:
		p.noLibrary = true
		return nil, note(ErrNoLibrary)
	case r.Error != "":
		return nil, note(errors.New(r.Error))
	case len(r.GPUs) == 0:
		return nil, note(errors.New("the NVIDIA driver " + phraseNoGPU))
	}
	for i := range r.GPUs {
		for j := range r.GPUs[i].Processes {
			holder := &r.GPUs[i].Processes[j]
			holder.Name = commandName(holder.PID)
		}
	}
	return r.GPUs, ""
}

// notePrefix begins every note.
const notePrefix = "no GPU facts: "

func note(err error) string { return notePrefix + err.Error() }

// Output runs the program once and returns what it printed, bounded like Read. A program that fails may have
// printed something, too.
func (p *Probe) Output(ctx context.Context) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output(ctx)
}

// output runs the probe once. exec.CommandContext would not do: a process that is stuck inside the
// driver ignores even SIGKILL, and waiting for it would block sgtune too.
func (p *Probe) output(ctx context.Context) ([]byte, error) {
	if p.hung != nil {
		select {
		case <-p.hung:
			p.hung = nil
		default:
			return nil, errors.New("an earlier probe " + phraseHangs)
		}
	}
	if len(p.Argv) == 0 {
		return nil, errors.New("no probe program given")
	}
	timeout := p.Timeout
	if timeout <= 0 {
		timeout = probeTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the NVIDIA driver "+phraseHung+" %s", timeout))
	defer cancel()
	path, err := lookPath(p.Argv[0], os.Getenv("PATH"))
	if err != nil {
		return nil, fmt.Errorf("start the GPU probe %s: %w", p.Argv[0], err)
	}
	var out, errs bytes.Buffer
	cmd := &exec.Cmd{
		Path: path, Args: p.Argv, Stdout: &out, Stderr: &errs,
		Env: probeEnv(), WaitDelay: time.Second,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // Ctrl-C is for sgtune alone
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the GPU probe: %w", err)
	}
	ended := make(chan struct{})
	var status error
	go func() { // waited for here, or through p.hung by the next Read
		defer close(ended)
		status = cmd.Wait()
	}()
	select {
	case <-ended:
		if status != nil {
			said := errs.Bytes()
			if len(bytes.TrimSpace(said)) == 0 {
				said = out.Bytes() // nvidia-smi complains on standard output
			}
			text := strings.TrimSpace(string(said[max(0, len(said)-300):]))
			return out.Bytes(), fmt.Errorf("the GPU probe failed: %w: %s", status, text)
		}
		return out.Bytes(), nil
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill() // fails only if it has just ended
	select {
	case <-ended:
	case <-time.After(time.Second):
		p.hung = ended
	}
	return nil, context.Cause(ctx)
}

// probeEnv is our environment without the marker, so that a probe is never taken for a trial.
func probeEnv() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, MarkerEnv+"=") {
			env = append(env, pair)
		}
	}
	return env
}

func parseReading(out []byte) (reading, error) {
	var r reading
	if err := json.Unmarshal(out, &r); err != nil {
		return reading{}, fmt.Errorf("the GPU probe printed no reading: %w", err)
	}
	return r, nil
}
