package replayjob

import (
	"time"

	"sgtune/benchmark"
)

// Control is a line from the caller: the job first, a word afterwards.
type Control struct {
	Job  *Job   `json:"job,omitempty"`
	Word string `json:"control,omitempty"`
	Ask  int    `json:"ask,omitempty"` // of Go and Prune: the number of the Ask that is answered
}

// The words of a Control.
const (
	Beat  = "beat"  // the caller lives
	Go    = "go"    // the level goes on
	Prune = "prune" // the level ends as pruned, at the end of the window of the Ask or else of the present one
	Stop  = "stop"  // the level ends now; what there is, is reported
)

// Event is a line from the agent. Exactly one field is set.
type Event struct {
	Hello    *Hello              `json:"hello,omitempty"`
	Prepared *Prepared           `json:"prepared,omitempty"`
	Window   *benchmark.Window   `json:"window,omitempty"`
	Samples  []benchmark.Request `json:"samples,omitempty"`
	Ask      *Ask                `json:"ask,omitempty"`
	Beat     *Progress           `json:"beat,omitempty"`
	Result   *Result             `json:"result,omitempty"`
	Error    *Failure            `json:"error,omitempty"`
}

// Program is Hello.Program of every agent. What stands before such a line is not the agent's: a remote shell
// may print when it starts.
const Program = "sgtune-agent"

// Hello is an agent's first line, sent before it was asked anything.
type Hello struct {
	Program  string `json:"program"` // Program
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	Platform string `json:"platform"` // "linux/amd64"
	PID      int    `json:"pid"`
}

// Prepared tells what the job's workload and prompts are, before the first request is sent.
type Prepared struct {
	Workload benchmark.Summary `json:"workload"`          // without First
	Palette  string            `json:"palette,omitempty"` // why lengths are approximate, "" when they are exact
}

// Ask asks whether to go on, with the arguments of benchmark.Options.Prune. Without an answer in time the level
// goes on.
type Ask struct {
	Number  int       `json:"number"` // from 1
	Windows []float64 `json:"windows"`
}

// Progress is the agent's sign of life, each BeatInterval.
type Progress struct {
	At       time.Time `json:"at"`
	Finished int       `json:"finished"` // requests so far
	Failed   int       `json:"failed"`   // of those
}

// BeatInterval is how often either side is heard at least.
const BeatInterval = 2 * time.Second

// Result is the end of a job that could be begun.
type Result struct {
	Report  *benchmark.Report `json:"report"`
	Next    int               `json:"next"`              // prompts taken from the feed so far, Feed.Skip included
	Stopped bool              `json:"stopped,omitempty"` // by Stop: Report covers what was done until then
	Note    string            `json:"note,omitempty"`    // how prompts of words were shortened (benchmark.Calibration)
}

// Failure is why there is no result.
type Failure struct {
	Kind string `json:"kind"`
	Text string `json:"text"` // what is wrong and what to do
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// The kinds of a Failure.
const (
	FailedProtocol = "protocol" // the two sides cannot talk: another version, or a line that is none
	FailedJob      = "job"      // the job asks for what cannot be
	FailedWorkload = "workload" // the rows cannot be read or made
	FailedPalette  = "palette"  // the server could not be asked what prompts are made of
	FailedStopped  = "stopped"  // Stop came before the level began
	FailedInternal = "internal" // a fault of the agent
)
