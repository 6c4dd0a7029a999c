package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
)

// pace is how a growing log is followed, in real time.
type pace struct {
	poll   time.Duration // between two looks at the file
	settle time.Duration // silence after which a fatal line is judged: a dying server prints for a while
	quiet  time.Duration // silence that is worth a line
	alive  time.Duration // silence up to which a server without a fatal line is taken to live
}

var atEase = pace{poll: 250 * time.Millisecond, settle: 2 * time.Second, quiet: time.Minute, alive: 30 * time.Second}

// follower reads a log while it grows.
type follower struct {
	source *source
	given  trial.Context
	page   *page
	json   bool
	pace   pace

	d      *diagnosis
	file   *os.File // nil: standard input
	name   string
	offset int64
	grew   time.Time     // when the log last grew
	state  string        // shown last
	shown  trial.Verdict // printed last
	quiet  bool          // said that nothing moves
}

// follow prints a log's states as they come, and the verdict when there is one, until ctx ends (Ctrl-C),
// which is not a failure: the verdict so far is the last word. With asJSON it prints one object, when
// something is decided or at the end.
func follow(ctx context.Context, log *source, given trial.Context, p *page, asJSON bool, at pace) error {
	if len(log.parts) != 1 {
		return usagef("-f follows one log; name one file")
	}
	f := &follower{
		source: log, given: given, page: p, json: asJSON, pace: at, d: newDiagnosis(), grew: time.Now(),
		name: log.parts[0].name, file: log.parts[0].file,
	}
	if f.file == nil {
		return f.stream(ctx, log.parts[0].from)
	}
	log.parts[0].plain = true
	buf := make([]byte, readSize)
	tick := time.NewTicker(f.pace.poll)
	defer tick.Stop()
	for {
		if err := f.catchUp(buf); err != nil {
			return err
		}
		if f.tell() {
			return f.end()
		}
		select {
		case <-ctx.Done():
			return f.end()
		case <-tick.C:
		}
	}
}

// stream follows standard input until it ends. Reading from it cannot be interrupted, so it has a
// goroutine of its own, which ends with the program.
func (f *follower) stream(ctx context.Context, from io.Reader) error {
	type piece struct {
		bytes []byte
		err   error
	}
	pieces := make(chan piece)
	go func() {
		for {
			buf := make([]byte, readSize)
			n, err := from.Read(buf)
			select {
			case pieces <- piece{buf[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	tick := time.NewTicker(f.pace.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return f.end()
		case <-tick.C:
		case p := <-pieces:
			if len(p.bytes) > 0 {
				f.take(p.bytes)
			}
			if errors.Is(p.err, io.EOF) {
				return f.end()
			} else if p.err != nil {
				return fmt.Errorf("read standard input: %w", p.err)
			}
		}
		if f.tell() {
			return f.end()
		}
	}
}

func (f *follower) take(chunk []byte) {
	f.offset += int64(len(chunk))
	f.d.feed(chunk)
	f.grew, f.quiet = time.Now(), false
}

// catchUp reads what was written since the last look, also after the file was emptied or replaced.
func (f *follower) catchUp(buf []byte) error {
	for {
		n, err := f.file.ReadAt(buf, f.offset)
		if f.offset == 0 && n > 0 && (bytes.HasPrefix(buf[:n], gzipMagic) || isZstd(buf[:n])) {
			return usagef("%s is compressed and cannot grow; leave -f out", f.name)
		}
		if n > 0 {
			f.take(buf[:n])
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", f.name, err)
		}
		if err != nil || n == 0 {
			break
		}
	}
	return f.rotated()
}

// rotated looks whether the name now stands for another file, or for an emptied one.
func (f *follower) rotated() error {
	mine, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", f.name, err)
	}
	if mine.Size() < f.offset {
		f.say("the log was emptied: starting over")
		f.startOver()
		return nil
	}
	now, err := os.Stat(f.name)
	if err != nil || os.SameFile(mine, now) || !now.Mode().IsRegular() {
		return nil //nolint:nilerr // moved away and not there again yet
	}
	next, err := os.Open(f.name)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	_ = f.file.Close() // only read
	f.file, f.source.parts[0].file = next, next
	head := make([]byte, 64<<10)
	n, _ := next.ReadAt(head, 0) // a short file is the ordinary case
	if bytes.Contains(head[:n], []byte("server_args=")) {
		f.say("a new log with a new server: starting over")
		f.startOver()
		return nil
	}
	f.say("the log was rotated: it goes on in a new file")
	f.offset = 0
	f.source.parts[0].plain = false // line numbers count from the first file on
	return nil
}

func (f *follower) startOver() {
	f.d, f.offset, f.state, f.shown = newDiagnosis(), 0, "", trial.Verdict{}
}

func (f *follower) verdict() trial.Verdict { return f.d.verdict(f.known()) }

// known is the context. While the log grows and nothing fatal stands in it, the server lives.
func (f *follower) known() trial.Context {
	c := f.given
	silent := time.Since(f.grew)
	if c.LogSilentS == nil {
		s := silent.Seconds()
		c.LogSilentS = &s
	}
	if facts := f.d.facts(); c.Alive == nil && c.ExitCode == nil && silent < f.pace.alive && len(facts.Fatal) == 0 && facts.Lines > 0 {
		yes := true
		c.Alive = &yes
	}
	return c
}

// tell prints a state that is new and a verdict that is decided. It reports whether that was the last word.
func (f *follower) tell() bool {
	facts := f.d.facts()
	if text := stateText(facts); text != f.state && text != "" {
		f.state = text
		f.say(text)
	}
	silent := time.Since(f.grew)
	if silent > f.pace.quiet && !f.quiet {
		f.quiet = true
		f.say(fmt.Sprintf("nothing new for %s", short(f.pace.quiet)))
	}
	if silent < f.pace.settle || len(facts.Fatal) == 0 {
		return false
	}
	v := f.verdict()
	if v.Outcome == trial.Unknown || v.Outcome == f.shown.Outcome && v.Cause == f.shown.Cause && v.Line == f.shown.Line {
		return false
	}
	if f.json {
		return true
	}
	f.shown = v
	f.page.line("")
	f.page.print(f.d, v, f.source)
	f.page.line("")
	return f.page.err != nil
}

// end prints the verdict so far, unless it stands there already.
func (f *follower) end() error {
	f.d.close()
	v := f.verdict()
	if !f.json && v.Outcome == f.shown.Outcome && v.Cause == f.shown.Cause && v.Line == f.shown.Line {
		return f.page.err
	}
	if c := f.known(); v.Outcome == trial.Unknown && c.Alive != nil && *c.Alive && !f.json {
		f.say("no verdict yet: the server is " + cmp.Or(f.state, "silent"))
		return failf(exitFailed, "")
	}
	if !f.json {
		f.page.line("")
	}
	return f.page.verdict(f.d, v, f.source, f.json)
}

func (f *follower) say(text string) {
	if !f.json {
		f.page.line(cut(time.Now().Format("15:04:05")+"  "+printable(text), f.page.width))
	}
}

// phaseWords say what a server does in each phase of its life.
var phaseWords = map[sglang.Phase]string{
	sglang.PhaseLaunch: "starting", sglang.PhaseDistInit: "the ranks are finding each other", sglang.PhaseWeightLoad: "loading the weights",
	sglang.PhaseKVPool: "weights loaded; allocating the KV pool", sglang.PhaseGraphCapture: "capturing CUDA graphs",
	sglang.PhaseHostPool: "allocating the host pool of the hierarchical cache", sglang.PhaseHTTPStart: "the HTTP socket is open; not ready yet",
	sglang.PhaseWarmup: "warming up with its own first request", sglang.PhaseReady: "ready", sglang.PhasePrefill: "ready and serving: reading prompts",
	sglang.PhaseDecode: "ready and serving: writing answers", sglang.PhaseShutdown: "shutting down",
}

// stateText is where the server is, in words that change only when something happened.
func stateText(facts sglang.LogFacts) string {
	if facts.Lines == 0 {
		return ""
	}
	if n := len(facts.Fatal); n > 0 {
		return "a fatal line: " + facts.Fatal[0].Text
	}
	text := phaseWords[facts.Phase]
	bar := facts.Last["shard_progress"].Values
	if done, all := bar["load_done"], bar["load_total"]; facts.Phase == sglang.PhaseWeightLoad && all > 0 {
		const steps = 10
		text += fmt.Sprintf(": %d%%", int(done*steps/all)*(100/steps))
	}
	if facts.Retracts > 0 {
		text += "; the KV pool has overflowed"
	}
	return text
}
