package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Energy is what the GPUs used in the measured part, other programs' work on them too.
type Energy struct {
	Joules               float64 `json:"joules"`
	MeanWatts            float64 `json:"mean_watts"`                        // of all of them together
	JoulesPerOutputToken float64 `json:"joules_per_output_token,omitempty"` // the GPUs' alone: not the CPUs', not the cooling's
	GPUs                 int     `json:"gpus"`
	Sampled              bool    `json:"sampled,omitempty"` // from power read every 2 s, for want of an energy counter
}

// PowerReading is what one GPU says of its energy at one time; a negative figure is not known.
type PowerReading struct {
	GPU    string  // its UUID
	Joules float64 // energy since the driver was loaded
	Watts  float64 // power now
}

// EnergyWatch reads the GPUs' energy while load is on them. One Stop must follow.
type EnergyWatch struct {
	read   func(context.Context) ([]PowerReading, error)
	clock  Clock
	looks  *lookout
	record *EnergyRecord
}

// A counter needs few looks, and each starts a process that opens the driver. Power that is sampled and added
// up needs more: a decode batch and a prefill draw differently.
const (
	counterLook = 10 * time.Second
	powerLook   = 2 * time.Second
)

// WatchEnergy reads the energy of all GPUs that read lists, now and then until Stop. Its error says why there
// will be none.
func WatchEnergy(ctx context.Context, clock Clock, read func(context.Context) ([]PowerReading, error)) (*EnergyWatch, error) {
	if clock == nil {
		clock = RealClock()
	}
	w := &EnergyWatch{read: read, clock: clock, record: &EnergyRecord{last: map[string]PowerReading{}}}
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	every := counterLook
	if w.record.sampled {
		every = powerLook
	}
	w.looks = keepLooking(ctx, clock, every, w.lookAgain)
	return w, nil
}

// Stop reads a last time, shortly if ctx has ended, and returns what was seen.
func (w *EnergyWatch) Stop(ctx context.Context) *EnergyRecord {
	w.looks.halt(ctx, w.lookAgain)
	return w.record
}

func (w *EnergyWatch) lookAgain(ctx context.Context) {
	if err := w.look(ctx); err != nil {
		w.record.missed++
	}
}

func (w *EnergyWatch) look(ctx context.Context) error {
	before := w.clock.Now()
	gpus, err := w.read(ctx)
	if err != nil {
		return fmt.Errorf("energy of the GPUs: %w", err)
	}
	if len(gpus) == 0 {
		return errors.New("energy of the GPUs: there is no GPU")
	}
	return w.record.add(before.Add(w.clock.Now().Sub(before)/2), gpus)
}

// EnergyRecord is what an EnergyWatch saw.
type EnergyRecord struct {
	times   []time.Time
	joules  []float64 // of all GPUs since the first look
	last    map[string]PowerReading
	sampled bool // some GPU tells only its power
	missed  int
}

// add books one look: counters as they grew, and for GPUs without one power times time (trapezoids).
func (r *EnergyRecord) add(at time.Time, gpus []PowerReading) error {
	for _, g := range gpus {
		if g.Joules < 0 && g.Watts < 0 {
			return fmt.Errorf("energy of the GPUs: %s tells neither energy nor power", g.GPU)
		}
	}
	sum := 0.0
	if n := len(r.times); n > 0 {
		if len(gpus) != len(r.last) {
			return fmt.Errorf("energy of the GPUs: there were %d and now are %d", len(r.last), len(gpus))
		}
		sum = r.joules[n-1]
		seconds := at.Sub(r.times[n-1]).Seconds()
		for _, g := range gpus {
			before, found := r.last[g.GPU]
			switch {
			case !found:
				return fmt.Errorf("energy of the GPUs: %s was not there before", g.GPU)
			case before.Joules >= 0 && g.Joules > before.Joules:
				sum += g.Joules - before.Joules
			case g.Watts >= 0 && before.Watts >= 0: // no counter, or one that stands or began again
				sum += seconds * (g.Watts + before.Watts) / 2
			}
		}
	}
	for _, g := range gpus {
		r.last[g.GPU] = g
		r.sampled = r.sampled || g.Joules < 0
	}
	r.times, r.joules = append(r.times, at), append(r.joules, sum)
	return nil
}

// Energy is what all GPUs used between two times of the host's clock, usually the measured part, in which so
// many output tokens came. Between two looks power is taken to be even. It is nil, with the reason, when the
// part was not watched.
func (r *EnergyRecord) Energy(from, to time.Time, outputTokens float64) (*Energy, string) {
	n := len(r.times)
	if n < 2 {
		return nil, fmt.Sprintf("the GPUs' energy could be read only %d times (%d failed)", n, r.missed)
	}
	if from.Before(r.times[0]) || to.After(r.times[n-1]) || !from.Before(to) {
		return nil, "the GPUs' energy was not watched over the whole measured part"
	}
	joules := between(r.times, r.joules, to) - between(r.times, r.joules, from)
	e := &Energy{Joules: joules, MeanWatts: joules / to.Sub(from).Seconds(), GPUs: len(r.last), Sampled: r.sampled}
	if outputTokens > 0 {
		e.JoulesPerOutputToken = joules / outputTokens
	}
	return e, ""
}

// between is a value at a time, on the straight line between the known ones before and after it.
func between(times []time.Time, values []float64, t time.Time) float64 {
	for i, at := range times {
		if at.Before(t) {
			continue
		}
		if i == 0 || at.Equal(t) {
			return values[i]
		}
		share := float64(t.Sub(times[i-1])) / float64(at.Sub(times[i-1]))
		return values[i-1] + share*(values[i]-values[i-1])
	}
	return values[len(values)-1]
}
