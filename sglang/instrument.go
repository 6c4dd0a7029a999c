package sglang

import (
	"maps"
	"slices"
)

// instrument are the flags sgtune adds to every launch of a study so that it can measure: they are
// the same for every trial, no part of a configuration, and never exported.
var instrument = []struct {
	flag  string
	value any
	why   string
}{
	{"enable-metrics", true, "counters under /metrics"},
	{"enable-cache-report", true, "cached prompt tokens in every answer"},
	{"decode-log-interval", 10.0, "a throughput line every 10 decode steps instead of 40"},
	{"random-seed", 1.0, "the same sampling noise in every trial"},
}

// InstrumentFlags returns the argv words of the instrument flags for one server: those its version
// has (has is asked with the name without dashes; nil means all) and that user, the configuration as
// the user set it, does not set itself.
func InstrumentFlags(has func(flag string) bool, user Config) []string {
	flags := Config{}
	for _, i := range instrument {
		if _, set := user[i.flag]; set || has != nil && !has(i.flag) {
			continue
		}
		flags[i.flag] = i.value
	}
	return FlagWords(flags)
}

// InstrumentNames returns the names of the flags InstrumentFlags may add, sorted.
func InstrumentNames() []string {
	var names []string
	for _, i := range instrument {
		names = append(names, i.flag)
	}
	slices.Sort(names)
	return names
}

// InstrumentEnv returns the environment sgtune adds to every launch: without it a crashed 0.5.23
// server lingers for a minute over stack and core dumps before it dies. Variables that user sets
// are left out.
func InstrumentEnv(user map[string]string) map[string]string {
	env := map[string]string{
		"SGLANG_PYSPY_DUMP_BEFORE_CRASH":    "0",
		"SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0",
	}
	maps.DeleteFunc(env, func(name, _ string) bool { _, set := user[name]; return set })
	return env
}
