package main

import (
	"context"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// loopHost is what the loop needs of a host (tuner.Host), over a place.
type loopHost struct {
	place  *place
	study  *tuner.Study
	record *tuner.Record
	server sglang.Server
	saver  trial.Saver
}

// Recover implements tuner.Host.
func (h *loopHost) Recover(ctx context.Context, running []*trial.Trial) error {
	return h.place.recover(ctx, h.study.Name, running, h.saver)
}

// Facts implements tuner.Host.
func (h *loopHost) Facts(ctx context.Context) (tuner.HostFacts, error) {
	return h.place.facts(ctx, h.study)
}

// Run implements tuner.Host.
func (h *loopHost) Run(ctx context.Context, argv []string) error { return h.place.run(ctx, argv) }
