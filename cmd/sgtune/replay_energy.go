package main

import (
	"context"

	"sgtune/benchmark"
)

// watchEnergy reads the energy of this machine's GPUs while a level runs, nil where the server is on another
// machine or there is no GPU. Why it could not be read is for nobody: most machines have no counter.
func watchEnergy(ctx context.Context, t *replayTarget) *benchmark.EnergyWatch {
	if !t.local {
		return nil
	}
	read, err := newEnergyReader()
	if err != nil {
		return nil
	}
	watch, err := benchmark.WatchEnergy(ctx, nil, read)
	if err != nil {
		return nil
	}
	return watch
}
