package main

import (
	"fmt"
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
	if err := faultsOf(study); err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	return study, nil
}

// readDraft is readStudy for a text that is being written on the page: no file is looked at.
func readDraft(name string, source []byte) (*tuner.Study, error) {
	study, err := tuner.ParseDraft(name, source)
	if err != nil {
		return nil, err
	}
	if err := faultsOf(study); err != nil {
		return nil, tuner.Problems{{File: name, Text: err.Error()}}
	}
	return study, nil
}

// faultsOf judges the faults of a study's simulated host.
func faultsOf(s *tuner.Study) error {
	if s.Host.Kind != tuner.HostSimulated {
		return nil
	}
	if _, err := simulator.ParseFaults(strings.Join(s.Host.Faults, ",")); err != nil {
		return fmt.Errorf("host.faults: %w", err)
	}
	return nil
}
