package web

import "sgtune/trial"

// Mark says how something stands by shape, word and colour class, never by colour alone. The same marks stand
// in lists, boxes and charts.
type Mark struct{ Shape, Word, Class string }

// outcomeMarks are the marks of outcomes.
var outcomeMarks = map[trial.Outcome]Mark{
	trial.OK:                {"●", "ok", "ok"},
	trial.Degraded:          {"◐", "degraded", "ok"},
	trial.GPUOOM:            {"▲", "GPU memory", "gpu"},
	trial.HostOOM:           {"■", "host memory", "ram"},
	trial.Crashed:           {"▼", "died", "died"},
	trial.Stuck:             {"▼", "stuck", "died"},
	trial.StartupTimeout:    {"▼", "not ready", "died"},
	trial.ConfigRejected:    {"✕", "refused", "quiet"},
	trial.QualityRejected:   {"◆", "quality", "quality"},
	trial.QualityUnmeasured: {"◇", "quality not measured", "quiet"},
	trial.DirtyHost:         {"!", "not clean", "alert"},
	trial.EnvFault:          {"○", "machine", "quiet"},
	trial.Unreachable:       {"○", "unreachable", "quiet"},
	trial.MonitorWrong:      {"○", "probe wrong", "quiet"},
	trial.BenchInvalid:      {"○", "replay not valid", "quiet"},
	trial.Aborted:           {"○", "aborted", "quiet"},
	trial.Unknown:           {"?", "unknown", "quiet"},
}

// stateMarks are the marks of trials whose outcome does not say it.
var stateMarks = map[trial.State]Mark{
	trial.Running:   {"▶", "running", "quiet"},
	trial.Waiting:   {"…", "waiting", "quiet"},
	trial.Pruned:    {"⊘", "pruned", "quiet"},
	trial.Cancelled: {"○", "cancelled", "quiet"},
}

// markOf is the mark of a trial.
func markOf(t *trial.Trial) Mark {
	if m, known := stateMarks[t.State]; known {
		return m
	}
	return markOutcome(t.Verdict.Outcome)
}

// markOutcome is the mark of an outcome.
func markOutcome(o trial.Outcome) Mark {
	if m, known := outcomeMarks[o]; known {
		return m
	}
	return outcomeMarks[trial.Unknown]
}

// innocent reports whether an outcome says nothing about the configuration.
func innocent(o trial.Outcome) bool {
	switch o {
	case trial.EnvFault, trial.Unreachable, trial.MonitorWrong, trial.BenchInvalid, trial.Aborted:
		return true
	default:
		return false
	}
}

// actMarks are the marks of answers.
var actMarks = map[string]Mark{
	ActChange: {"✓", "change", "ok"}, ActKeep: {"=", "keep", "ok"}, ActNoVerdict: {"?", "no verdict", "quiet"},
	ActStopped: {"!", "stopped", "alert"}, ActRunning: {"●", "running", "ok"},
}
