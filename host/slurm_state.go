package host

import "fmt"

// SlurmJob is what a site's Slurm says of one job. It is a report of the past: the job may have moved on since.
type SlurmJob struct {
	ID       string // the job's number
	Cluster  string // "" = the site's only or default one
	Name     string // "" when it was not asked for
	State    string // in Slurm's words, "RUNNING"
	Reason   string // why it waits or ended, in Slurm's words; "" = none told
	Node     string // where its batch script runs, "" before it has one
	Code     int    // exit status of the batch script, -1 unknown
	Signal   int    // that ended it; also set beside states that speak for themselves
	Restarts int    // how often Slurm has started it anew; our jobs forbid that
}

// SlurmPhase is what a state means for who waits for the job.
type SlurmPhase string

// The phases of a job. In SlurmUnclear nothing is concluded: a state that a newer Slurm has added, or one that passes.
const (
	SlurmWaits   SlurmPhase = "waits"   // has no node yet
	SlurmStarts  SlurmPhase = "starts"  // its node is being made ready
	SlurmRuns    SlurmPhase = "runs"    // processes of it may run, also when it is suspended
	SlurmEnding  SlurmPhase = "ending"  // its processes are being ended
	SlurmEnded   SlurmPhase = "ended"   // for good
	SlurmUnclear SlurmPhase = "unclear" // not known
)

// SlurmCause is why a job has ended, told apart from a bad configuration where it was something else.
type SlurmCause string

// The causes. Only SlurmFailed and SlurmMemory say something about what ran in the job.
const (
	SlurmDone      SlurmCause = "done"       // exit status 0
	SlurmFailed    SlurmCause = "failed"     // another exit status, or a signal of its own
	SlurmMemory    SlurmCause = "memory"     // killed by the limit of the job's memory
	SlurmTimeLimit SlurmCause = "time_limit" // of the job
	SlurmCancelled SlurmCause = "cancelled"  // by a user or an administrator
	SlurmPreempted SlurmCause = "preempted"  // had to make way for another job
	SlurmNodeLost  SlurmCause = "node_lost"  // its processes may still run there
	SlurmNotRun    SlurmCause = "not_run"    // never started: deadline, boot failure, revoked
	SlurmRequeued  SlurmCause = "requeued"   // would be run again, which our jobs forbid
	SlurmGone      SlurmCause = "gone"       // Slurm has forgotten it, and it left no status
)

type slurmMeaning struct {
	phase SlurmPhase
	cause SlurmCause
	words string // for SlurmJob.Why
}

// slurmStates are the states of Slurm 22.05 to 25.05 (squeue(1), JOB STATE CODES).
var slurmStates = map[string]slurmMeaning{
	"PENDING":         {phase: SlurmWaits},
	"RESV_DEL_HOLD":   {phase: SlurmWaits},
	"CONFIGURING":     {phase: SlurmStarts},
	"POWER_UP_NODE":   {phase: SlurmStarts},
	"RUNNING":         {phase: SlurmRuns},
	"SUSPENDED":       {phase: SlurmRuns},
	"STOPPED":         {phase: SlurmRuns},
	"RESIZING":        {phase: SlurmRuns},
	"SIGNALING":       {phase: SlurmRuns},
	"COMPLETING":      {phase: SlurmEnding},
	"STAGE_OUT":       {phase: SlurmEnding},
	"COMPLETED":       {SlurmEnded, SlurmDone, "it ended by itself"},
	"FAILED":          {SlurmEnded, SlurmFailed, "its batch script failed"},
	"OUT_OF_MEMORY":   {SlurmEnded, SlurmMemory, "it was killed at the limit of its memory: ask for more with host.memory"},
	"TIMEOUT":         {SlurmEnded, SlurmTimeLimit, "it reached its time limit: ask for more with host.time_limit"},
	"DEADLINE":        {SlurmEnded, SlurmNotRun, "it could not end before its deadline"},
	"CANCELLED":       {SlurmEnded, SlurmCancelled, "it was cancelled"},
	"PREEMPTED":       {SlurmEnded, SlurmPreempted, "it had to make way for another job"},
	"NODE_FAIL":       {SlurmEnded, SlurmNodeLost, "Slurm lost its node, where processes of it may still run"},
	"BOOT_FAIL":       {SlurmEnded, SlurmNotRun, "its node could not be started"},
	"REVOKED":         {SlurmEnded, SlurmNotRun, "another cluster took it"},
	"REQUEUED":        {SlurmEnded, SlurmRequeued, "Slurm puts it back into the queue"},
	"REQUEUE_HOLD":    {SlurmEnded, SlurmRequeued, "Slurm put it back into the queue, and holds it"},
	"REQUEUE_FED":     {SlurmEnded, SlurmRequeued, "Slurm puts it back into the queue of another cluster"},
	string(SlurmGone): {SlurmEnded, SlurmGone, "Slurm has forgotten it, and it left no status"}, // our word, not Slurm's
	"SPECIAL_EXIT":    {SlurmEnded, SlurmRequeued, "Slurm put it back into the queue after a special exit status"},
}

// Phase is what the state means.
func (j SlurmJob) Phase() SlurmPhase {
	if m, ok := slurmStates[j.State]; ok {
		return m.phase
	}
	return SlurmUnclear
}

// Cause is why the job has ended, "" unless its Phase is SlurmEnded.
func (j SlurmJob) Cause() SlurmCause { return slurmStates[j.State].cause }

// Why says in one line how the job stands.
func (j SlurmJob) Why() string {
	text := fmt.Sprintf("Slurm job %s", j.ID)
	m := slurmStates[j.State]
	switch m.phase {
	case SlurmEnded:
		text += " is " + j.State + ": " + m.words
	case SlurmWaits:
		text += " waits in the queue"
	default:
		text += " is " + j.State
	}
	if j.Reason != "" {
		text += " (reason " + j.Reason + ")"
	}
	return text
}
