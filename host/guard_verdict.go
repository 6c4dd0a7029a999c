package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// GuardReason is why a guard's watch ended: a closed list.
type GuardReason string

// The reasons. The first three mean that host memory was not enough and that the kernel did not have to kill;
// the last two that the guard killed nothing.
const (
	GuardMemory    GuardReason = "memory_available" // MemAvailable fell below the line
	GuardCgroup    GuardReason = "cgroup_headroom"  // less than the line was left under a cgroup's limit
	GuardSwap      GuardReason = "swap_growth"      // more swap was taken than allowed
	GuardTimeLimit GuardReason = "time_limit"       // the trial ran longer than allowed
	GuardTunerGone GuardReason = "tuner_gone"       // no heartbeat for longer than allowed
	GuardOver      GuardReason = "trial_over"       // nothing of the trial lives, by no act of the guard
	GuardCancelled GuardReason = "cancelled"        // the guard itself was told to end
)

// Killed reports whether the guard ended the trial.
func (r GuardReason) Killed() bool {
	return r.OutOfMemory() || r == GuardTimeLimit || r == GuardTunerGone
}

// OutOfMemory reports whether the trial was ended for want of host memory.
func (r GuardReason) OutOfMemory() bool {
	return r == GuardMemory || r == GuardCgroup || r == GuardSwap
}

// GuardMemoryReading is host memory at one moment, in bytes; -1 = not known, or none.
type GuardMemoryReading struct {
	Total     int64  `json:"total"`
	Available int64  `json:"available"`       // MemAvailable
	Headroom  int64  `json:"headroom"`        // left under the strictest cgroup limit of the trial
	Limit     int64  `json:"limit"`           // that limit
	Group     string `json:"group,omitempty"` // that cgroup's folder, without a leading slash
	Swap      int64  `json:"swap"`            // used on the machine
}

// GuardVerdict is what a guard leaves behind. It is written, and asked of the disk, before the kill, and again
// with Ended when all is over; so a verdict that says killed without Ended is of a guard that died between the two.
type GuardVerdict struct {
	PID     int       `json:"pid"`
	Marker  string    `json:"marker,omitempty"`
	Started time.Time `json:"started"` // host time, as all here

	Reason  GuardReason `json:"reason"`
	At      time.Time   `json:"at"`       // of the decision
	Detail  string      `json:"detail"`   // limit and figure in words
	Limit   float64     `json:"limit"`    // bytes for memory, seconds for time
	Figure  float64     `json:"figure"`   // what was seen, in the same unit
	Forced  bool        `json:"forced"`   // SIGKILL was sent: at once for memory, else after the grace
	MinFree int64       `json:"min_free"` // the line, bytes

	Before GuardMemoryReading `json:"before"` // at the guard's start
	Then   GuardMemoryReading `json:"then"`   // at the decision
	Lowest int64              `json:"lowest"` // least bytes free that a look saw, of machine and cgroup; -1 = none

	OOMKillsBefore int64 `json:"oom_kills_before"` // the cgroup's counter at the start, -1 unknown
	OOMKills       int64 `json:"oom_kills"`        // and at the decision

	Ended           time.Time `json:"ended,omitzero"`
	KillProblem     string    `json:"kill_problem,omitempty"`     // what would not die
	EvidenceProblem string    `json:"evidence_problem,omitempty"` // why the evidence is not whole
	ProtectProblem  string    `json:"protect_problem,omitempty"`  // why the kernel was not told whom to prefer
}

// overBefore is the verdict of a guard whose trial had ended before the first look.
func overBefore(id ID, now time.Time) GuardVerdict {
	return GuardVerdict{
		PID: id.PID, Marker: id.Marker, Started: now, Reason: GuardOver, At: now, Ended: now, Detail: "it had ended before the guard's first look",
		Before: unknownMemory, Then: unknownMemory, Lowest: -1, OOMKillsBefore: -1, OOMKills: -1,
	}
}

// ReadGuardVerdict reads the file of a guard; fs.ErrNotExist as long as it has none.
func ReadGuardVerdict(path string) (GuardVerdict, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return GuardVerdict{}, fmt.Errorf("read guard's verdict: %w", err)
	}
	var v GuardVerdict
	if err := json.Unmarshal(b, &v); err != nil {
		return GuardVerdict{}, fmt.Errorf("read guard's verdict %s: %w", path, err)
	}
	return v, nil
}

// writeVerdict writes the file in one step, fsynced.
func writeVerdict(path string, v GuardVerdict) error {
	b, err := json.Marshal(v)
	if err == nil {
		err = writeWhole(path, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write guard's verdict: %w", err)
	}
	return nil
}

// Time that the verdict may take before the kill. A disk that is busy with a model may need seconds for a sync,
// in which a server takes gigabytes.
const (
	verdictHaste   = 100 * time.Millisecond
	verdictLeisure = 10 * time.Second
)

var errVerdictLate = errors.New("the verdict was not on disk in time: killed before")

// announce writes the verdict and returns when that is done, or when the time is up; the returned function waits
// for the writer.
func (g *Guard) announce(limit time.Duration) (wait func() error) {
	if g.opts.Verdict == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	v := g.verdict
	go func() { done <- writeVerdict(g.opts.Verdict, v) }() // waited for by the returned function
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case err := <-done:
		return func() error { return err }
	case <-t.C:
		return func() error {
			if err := <-done; err != nil {
				return errors.Join(errVerdictLate, err)
			}
			return nil
		}
	}
}
