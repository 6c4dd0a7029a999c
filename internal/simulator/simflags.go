package simulator

import (
	"math"
	"strconv"
	"strings"
)

// simFlags are the simulator's own flags, for --help.
var simFlags = []struct{ name, meta, text string }{
	{"--sim-version", "VERSION", "SGLang version to speak: " + strings.Join(Versions(), " ") + " (default " + newestDialect().name + ")"},
	{"--sim-profile", "NAME", "machine and model to simulate (default kimi-8x96)"},
	{"--sim-time-scale", "X", "how many times faster than real time (default 1)"},
	{"--sim-seed", "N", "seed of noise and spread (default 1)"},
	{"--sim-startup", "S", "simulated seconds from process start to ready, host pool not counted (default 900)"},
	{"--sim-fault", "SPEC", "faults, comma separated; S = simulated seconds, after ready where nothing else is said"},
	{"--sim-child", "ROLE", "internal: run as a child process"},
}

// set reads one of the simulator's own flags.
func (s *SimSettings) set(name, value string) error {
	number := func(least float64) (float64, error) {
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < least {
			return 0, usage("argument %s: invalid float value: '%s'", name, value)
		}
		return x, nil
	}
	var err error
	switch name {
	case "--sim-profile":
		if _, err = Lookup(value); err != nil {
			return usage("argument %s: %v", name, err)
		}
		s.Profile = value
	case "--sim-time-scale":
		s.TimeScale, err = number(0.01)
	case "--sim-startup":
		s.StartupS, err = number(0.1)
	case "--sim-seed":
		s.Seed, err = strconv.ParseUint(value, 10, 64)
		if err != nil {
			return usage("argument %s: invalid int value: '%s'", name, value)
		}
	case "--sim-fault":
		if s.Faults, err = ParseFaults(value); err != nil {
			return usage("argument %s: %v", name, err)
		}
	default:
		return usage("unrecognized arguments: %s", name)
	}
	return err
}
