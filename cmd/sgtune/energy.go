package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sgtune/benchmark"
	"sgtune/host"
)

// newEnergyReader returns how the energy of this machine's GPUs is read: through NVML in a process of its
// own, and where that tells nothing, by nvidia-smi. It is asked again and again; the way is chosen by the
// first answer. On a machine without a driver it is an error at once.
func newEnergyReader() (func(context.Context) ([]benchmark.PowerReading, error), error) {
	if os.Getenv("SGTUNE_NVML_LIBRARY") == "" && !host.DriverPresent() {
		return nil, errors.New("energy of the GPUs: this machine has no NVIDIA driver")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find sgtune's own program for reading GPUs: %w", err)
	}
	nvml := &host.Probe{Argv: []string{self, "nvml-probe", "--energy"}}
	smi := &host.Probe{Argv: host.SMIEnergyArgv()}
	return energyReader(nvml.Energy, func(ctx context.Context) ([]host.GPUEnergy, error) { return host.SMIEnergy(ctx, smi) }), nil
}

type readEnergy func(context.Context) ([]host.GPUEnergy, error)

// energyReader prefers the first way as long as the second was not needed. The error is that of the first: a
// machine without GPUs has no nvidia-smi either, and that says less.
func energyReader(first, second readEnergy) func(context.Context) ([]benchmark.PowerReading, error) {
	var chosen readEnergy
	return func(ctx context.Context) ([]benchmark.PowerReading, error) {
		if chosen != nil {
			return readings(chosen(ctx))
		}
		gpus, err := readings(first(ctx))
		if err == nil {
			chosen = first
			return gpus, nil
		}
		if gpus, other := readings(second(ctx)); other == nil {
			chosen = second
			return gpus, nil
		}
		return nil, err
	}
}

// readings translates what a host says of its GPUs. One that says nothing is an error: a sum without it
// would be wrong.
func readings(gpus []host.GPUEnergy, err error) ([]benchmark.PowerReading, error) {
	if err != nil {
		return nil, err
	}
	var out []benchmark.PowerReading
	for _, g := range gpus {
		if g.Joules < 0 && g.Watts < 0 {
			return nil, fmt.Errorf("GPU %d tells neither its energy nor its power", g.Index)
		}
		out = append(out, benchmark.PowerReading{GPU: g.UUID, Joules: g.Joules, Watts: g.Watts})
	}
	if len(out) == 0 {
		return nil, errors.New("there is no GPU")
	}
	return out, nil
}
