package trial

import (
	"errors"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
)

// ErrDirtyHost is returned by Run when the host could not be proven clean: the study must stop.
var ErrDirtyHost = errors.New("the host is dirty")

// Causes that end a trial's work through its context; the first one wins and picks the state.
var (
	ErrStopped  = errors.New("stopped by a person")       // -> cancelled
	ErrPruned   = errors.New("pruned: hopeless")          // -> pruned
	ErrDeadline = errors.New("the study's time is over")  // -> failed, aborted, requeue
	ErrVoid     = errors.New("the trial is contaminated") // -> finished with a void mark
)

// Load is how a trial is measured; the same for every trial of a study.
type Load struct {
	Workload           *benchmark.Workload
	Levels             []int         // all concurrencies of the study, ascending; a trial's Plan picks from them
	Window             time.Duration // length of a window
	Cap                time.Duration // a level ends here at the latest
	Warmup             time.Duration
	Target             float64       // half-width of the 95% interval of a level
	Canary             time.Duration // 0 = none
	Fill               time.Duration // cap of the fill, 0 = none
	FillHostPoolTokens int64         // biggest host pool in the space, 0 = no hicache knob in the space (no fill)
	Salt               string        // same for every trial of a study
}

// Runner runs trials on one host. Its fields are set once.
type Runner struct {
	Host          host.Host
	Store         Saver
	Clock         benchmark.Clock
	Server        sglang.Server
	Instruments   []string // instrument flags as argv words, same for every trial
	InstrumentEnv map[string]string
	Load          Load
	Files         string          // folder of the study's evidence; a trial's lies in Files/NUMBER
	ReadyTimeout  time.Duration   // host time from launch to ready
	Grace         time.Duration   // host time a ready server gets after SIGTERM
	Hurry         <-chan struct{} // closed by the second Ctrl-C: grace becomes 0
	Port          int             // fixed port, 0 = choose
	// Score gives a trial's value from its levels: the objective at the best level that meets the SLO.
	Score func([]Level) (value float64, concurrency int, ok bool)
	// Prune is asked after each window of a level with that level's windows (output tok/s).
	Prune    func(t *Trial, windows []float64) bool
	Progress func(Progress)          // may be nil; must not block
	Notice   func(kind, text string) // facts worth an event (canary shrunk, monitor disagreed); may be nil
}
