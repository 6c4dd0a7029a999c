package replayjob

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Why a job ended before its time.
var (
	// ErrGone ends a job whose caller is not there any more: its side was closed, or it was silent too long.
	ErrGone = errors.New("the caller is gone")
	// errStopped ends a job at its caller's wish.
	errStopped = errors.New("stopped by the caller")
)

// longestLine bounds a line from the caller: a job with a palette of token ids is some 10 KB.
const longestLine = 16 << 20

// caller is the other side as its lines show it.
type caller struct {
	jobs   chan []byte             // the first line
	gone   context.CancelCauseFunc // nobody is there
	stop   context.CancelCauseFunc // somebody is, and wants the level to end
	silent *time.Timer             // calls gone
	limit  atomic.Int64

	pruned   atomic.Bool
	answered chan int // the number of the last Ask that was answered
}

// listen reads the caller's lines until there are none. The goroutine it starts ends with its input, which is at
// the latest when the program ends: a blocked read of a standard input cannot be taken back.
func listen(in io.Reader, gone, stop context.CancelCauseFunc) *caller {
	c := &caller{jobs: make(chan []byte, 1), gone: gone, stop: stop, answered: make(chan int, 1)}
	c.silent = time.AfterFunc(time.Hour, func() {
		if limit := time.Duration(c.limit.Load()); limit > 0 { // else it was lifted just now
			gone(fmt.Errorf("%w: nothing was heard of it for %s", ErrGone, limit))
		}
	})
	c.silent.Stop()
	go c.read(in)
	return c
}

// expect sets how long the caller may be silent from now on; 0 = for ever.
func (c *caller) expect(limit time.Duration) {
	c.limit.Store(int64(limit))
	if limit > 0 {
		c.silent.Reset(limit)
	} else {
		c.silent.Stop()
	}
}

func (c *caller) read(in io.Reader) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	first := true
	for lines.Scan() {
		if limit := time.Duration(c.limit.Load()); limit > 0 {
			c.silent.Reset(limit)
		}
		line := bytes.TrimSpace(lines.Bytes())
		switch {
		case len(line) == 0:
		case first:
			first = false
			c.jobs <- bytes.Clone(line)
		default:
			c.heard(line)
		}
	}
	c.silent.Stop()
	if err := lines.Err(); err != nil {
		c.gone(fmt.Errorf("%w: %w", ErrGone, err))
		return
	}
	c.gone(ErrGone)
}

// heard does what a line after the first says. A word of a newer caller is no reason to end a measurement.
func (c *caller) heard(line []byte) {
	var said Control
	if json.Unmarshal(line, &said) != nil {
		return
	}
	switch said.Word {
	case Stop:
		c.stop(errStopped)
	case Prune:
		c.pruned.Store(true)
		c.answer(said.Ask)
	case Go:
		c.answer(said.Ask)
	}
}

// answer notes the last answered Ask; only read calls it, so that there is room after the one before is taken.
func (c *caller) answer(number int) {
	select {
	case <-c.answered:
	default:
	}
	c.answered <- number
}

// prune waits for the answer to an Ask; without one within limit the level goes on.
func (c *caller) prune(ctx context.Context, number int, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for !c.pruned.Load() {
		select {
		case n := <-c.answered:
			if n >= number {
				return c.pruned.Load()
			}
		case <-timer.C:
			return c.pruned.Load()
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// job waits for the first line and reads it.
func (c *caller) job(ctx context.Context) (Job, error) {
	select {
	case line := <-c.jobs:
		return readJob(line)
	case <-ctx.Done():
		return Job{}, context.Cause(ctx)
	}
}

// readJob decodes a first line. The protocol is looked at before anything else: what another version writes may
// have any shape.
func readJob(line []byte) (Job, error) {
	var version struct {
		Job *struct {
			Protocol int `json:"protocol"`
		} `json:"job"`
	}
	if err := json.Unmarshal(line, &version); err != nil || version.Job == nil {
		return Job{}, &Failure{FailedProtocol, `the first line is no job; it must look like {"job":{"protocol":2,...}}`}
	}
	if version.Job.Protocol != Protocol {
		return Job{}, mismatch(fmt.Sprintf("the caller speaks protocol %d, this agent %d", version.Job.Protocol, Protocol))
	}
	var said Control
	strict := json.NewDecoder(bytes.NewReader(line))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&said); err != nil {
		return Job{}, &Failure{FailedJob, "the job cannot be read: " + err.Error()}
	}
	return *said.Job, nil
}

func mismatch(what string) *Failure {
	return &Failure{FailedProtocol, what + "; copy the agent that belongs to this sgtune to the machine again"}
}

// Check refuses an agent that speaks another protocol than this package.
func (h Hello) Check() error {
	if h.Protocol != Protocol {
		return mismatch(fmt.Sprintf("the agent (version %s) speaks protocol %d, this sgtune %d", h.Version, h.Protocol, Protocol))
	}
	return nil
}
