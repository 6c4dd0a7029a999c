package chart

import "sgtune/trial"

// Class is how a trial is drawn: one shape, one word and one colour, the same on every page, chart and drawing.
type Class struct {
	Key   string `json:"key"`   // names the colour: CSS variable --c-KEY, class c-KEY
	Shape string `json:"shape"` // as a letter, for tables
	Word  string `json:"word"`
	Path  string `json:"path"` // outline in a box of 16 by 16, holes wound the other way
}

// Numbers of the classes: what columns carry.
const (
	classOK = iota
	classDegraded
	classGPU
	classHost
	classDied
	classRefused
	classQuality
	classInnocent
	classPruned
	classWaiting
	classRunning
	classUnmeasured
	classDirty
	classUnknown
	classCount
)

// Classes lists every class by its number.
var Classes = [classCount]Class{
	classOK:         {"ok", "●", "ok", "M8 2a6 6 0 1 1 0 12a6 6 0 1 1 0-12z"},
	classDegraded:   {"degraded", "◐", "degraded", "M8 1a7 7 0 1 1 0 14a7 7 0 1 1 0-14zM8 3v10a5 5 0 0 0 0-10z"},
	classGPU:        {"gpu", "▲", "GPU memory", "M8 1.5L15 14H1z"},
	classHost:       {"host", "■", "host memory", "M2.5 2.5h11v11h-11z"},
	classDied:       {"died", "▼", "died", "M8 14.5L1 2h14z"},
	classRefused:    {"refused", "✕", "refused", "M3.5 1.5L8 6l4.5-4.5 2 2L10 8l4.5 4.5-2 2L8 10l-4.5 4.5-2-2L6 8 1.5 3.5z"},
	classQuality:    {"quality", "◆", "quality", "M8 .5L15.5 8 8 15.5.5 8z"},
	classInnocent:   {"innocent", "○", "not the configuration", "M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13zM8 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8z"},
	classPruned:     {"pruned", "⊘", "pruned", "M8 1a7 7 0 1 1 0 14a7 7 0 1 1 0-14zM11.3 3.6A5.2 5.2 0 0 0 3.6 11.3zM4.7 12.4A5.2 5.2 0 0 0 12.4 4.7z"},
	classWaiting:    {"waiting", "…", "waiting", "M1 6.5h3v3H1zM6.5 6.5h3v3h-3zM12 6.5h3v3h-3z"},
	classRunning:    {"running", "▶", "running", "M2.5 1L14.5 8 2.5 15z"},
	classUnmeasured: {"unmeasured", "◇", "quality not measured", "M8 .5L15.5 8 8 15.5.5 8zM8 4L4 8l4 4 4-4z"},
	classDirty:      {"dirty", "!", "not clean", "M1 1h14v14H1zM3 3v10h10V3zM7 4.5h2v4.5H7zM7 10.2h2v2H7z"},
	classUnknown:    {"unknown", "?", "unknown", "M5 4.5h6v4H9v2H7v-4h2v0H5zM7 11.5h2v2H7z"},
}

// ClassOf is how a trial is drawn.
func ClassOf(t *trial.Trial) Class { return Classes[classOf(t)] }

func classOf(t *trial.Trial) int {
	switch t.State {
	case trial.Waiting:
		return classWaiting
	case trial.Running:
		return classRunning
	case trial.Pruned:
		return classPruned
	case trial.Cancelled:
		return classInnocent
	case trial.Complete, trial.Failed:
	}
	switch t.Verdict.Outcome {
	case trial.OK:
		return classOK
	case trial.Degraded:
		return classDegraded
	case trial.GPUOOM:
		return classGPU
	case trial.HostOOM:
		return classHost
	case trial.Crashed, trial.Stuck, trial.StartupTimeout:
		return classDied
	case trial.ConfigRejected:
		return classRefused
	case trial.QualityRejected:
		return classQuality
	case trial.QualityUnmeasured:
		return classUnmeasured
	case trial.DirtyHost:
		return classDirty
	case trial.EnvFault, trial.MonitorWrong, trial.Unreachable, trial.BenchInvalid, trial.Aborted:
		return classInnocent
	case trial.Unknown:
	}
	return classUnknown
}

// failure reports whether a class is of trials that failed: they stand in a strip of their own, never at 0.
func failure(class int) bool {
	switch class {
	case classGPU, classHost, classDied, classRefused, classQuality, classInnocent, classDirty, classUnknown:
		return true
	}
	return false
}
