package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// guardJob is what the guard of a Local's command is told before the command is started.
type guardJob struct {
	Limits   GuardLimits `json:"limits"`
	Evidence string      `json:"evidence,omitempty"` // file for the samples, "" = none
	Marker   string      `json:"marker,omitempty"`
	Folder   string      `json:"folder"` // its files: lock, beat, guard
	Now      time.Time   `json:"now"`    // host time
	Scale    float64     `json:"scale"`  // of the host's clock
}

// guardWord is an answer of the guard: it is ready for the next thing, or why it is not.
type guardWord struct {
	Problem string `json:"problem,omitempty"`
}

// The guard's files in its folder.
const (
	guardBeat    = "beat"    // the heartbeat
	guardTrouble = "trouble" // what it printed to standard error
	guardTask    = "job"     // guardJob, for the guard that takes over from a dead one
)

// orphanTime is how long a guard whose sgtune died before it could name the process looks for it by its marker.
const orphanTime = 2 * time.Second

// GuardMain is the body of "sgtune guard --job": the guard of one command that a Local starts (LocalOptions.Guard). On
// in it reads the job, says on out that it is ready, reads the identity of the process once that exists, says that it
// watches, and watches until the process and all it started are gone. It outlives whoever started it. An error has been
// told on out, or concerns what it could not write or kill.
func GuardMain(ctx context.Context, l *Local, in io.Reader, out io.Writer) error {
	words, answer := json.NewDecoder(in), json.NewEncoder(out)
	g, err := guardFor(ctx, l, words, answer)
	if err != nil {
		return errors.Join(err, answer.Encode(guardWord{Problem: err.Error()}))
	}
	_ = answer.Encode(guardWord{}) // whoever asked may be dead by now: that is what a guard is for
	if g.guard == nil {
		return nil
	}
	steady()
	_, err = g.guard.run(ctx)
	return errors.Join(err, g.lock.Close())
}

// begun is a guard that has begun, nil when there is nothing to watch, and the lock that says that it lives.
type begun struct {
	guard *Guard
	lock  *os.File
}

func guardFor(ctx context.Context, l *Local, words *json.Decoder, answer *json.Encoder) (begun, error) {
	var job guardJob
	if err := words.Decode(&job); err != nil {
		return begun{}, fmt.Errorf("guard: read the job: %w", err)
	}
	f := runFolder(job.Folder)
	lock, err := f.claim(ctx)
	if err == nil && lock == nil {
		err = errors.New("another guard is at work there")
	}
	if err == nil {
		err = job.check(f)
	}
	if err != nil {
		return begun{}, fmt.Errorf("guard: %w", err)
	}
	if err := answer.Encode(guardWord{}); err != nil {
		return begun{}, fmt.Errorf("guard: %w", err)
	}
	id, err := job.process(ctx, l, words)
	if err != nil {
		return begun{}, err
	}
	clock := NewClock(job.Now, job.Scale)
	g, err := NewGuard(l, job.options(f, id, l.gpus, clock))
	if errors.Is(err, ErrNoProcess) {
		if f.has(guardVerdict) { // of the guard before
			return begun{}, nil
		}
		return begun{}, writeVerdict(f.path(guardVerdict), overBefore(id, clock.Now()))
	}
	if err == nil {
		err = g.begin(ctx)
	}
	if err == nil {
		err = f.watching(l)
	}
	return begun{guard: g, lock: lock}, err
}

// check finds out beforehand what would keep the guard from its work.
func (j guardJob) check(f runFolder) error {
	if _, err := (&memoryWatch{root: rootFS, pid: os.Getpid()}).read(exactly); err != nil {
		return err
	}
	if !(j.Scale > 0) {
		return fmt.Errorf("a clock that runs %g times as fast as ours", j.Scale)
	}
	return TouchHeartbeat(f.path(guardBeat))
}

// process waits for the identity of the process. When whoever starts it has died, it is looked for by its marker.
func (j guardJob) process(ctx context.Context, l *Local, words *json.Decoder) (ID, error) {
	var id ID
	err := words.Decode(&id)
	if err == nil {
		return id, nil
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || j.Marker == "" {
		return ID{}, fmt.Errorf("guard: read which process to watch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, orphanTime)
	defer cancel()
	for {
		all, err := scan()
		if err != nil {
			return ID{}, fmt.Errorf("guard: %w", err)
		}
		for _, c := range l.marked(ctx, all, j.Marker) {
			if c.pid == c.session { // Start makes it the leader
				return ID{BootID: l.boot, PID: c.pid, PGID: c.pgrp, StartTicks: c.startTicks, Marker: j.Marker}, nil
			}
		}
		if !pause(ctx, lastPoll) {
			return ID{}, errors.New("guard: nothing was started")
		}
	}
}

func (j guardJob) options(f runFolder, id ID, gpus GPUReader, clock *Clock) GuardOptions {
	return GuardOptions{
		ID: id, MinFree: j.Limits.MinFree, TimeLimit: j.Limits.TimeLimit, Absence: j.Limits.Absence, Grace: j.Limits.Grace,
		Heartbeat: f.path(guardBeat), Verdict: f.path(guardVerdict), First: string(f), Evidence: j.Evidence, GPUs: gpus, Clock: clock,
	}
}
