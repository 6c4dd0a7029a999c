package main

import (
	"strings"

	"sgtune/internal/simulator"
	"sgtune/tuner"
)

// readStudy reads a study file, and what only the simulated host can judge of it: the names of its faults,
// which the tuner passes on without knowing them.
func readStudy(path string) (*tuner.Study, error) {
	study, err := tuner.ReadStudy(path)
	if err != nil {
		return nil, err
	}
	if study.Host.Kind == tuner.HostSimulated {
		if _, err := simulator.ParseFaults(strings.Join(study.Host.Faults, ",")); err != nil {
			return nil, usagef("%s: host.faults: %w", path, err)
		}
	}
	return study, nil
}
