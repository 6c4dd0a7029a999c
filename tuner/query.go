package tuner

import "sgtune/trial"

// TrialQuery picks and orders trials of a study for a list that is shown a page at a time. The zero value
// asks for all of them, oldest first.
type TrialQuery struct {
	Sort    string        // one of TrialSorts, or KnobSort and a knob's name; "" = by number
	Desc    bool          // highest first; trials that lack what is sorted by come last either way
	State   trial.State   // "" = any
	Role    trial.Role    // "" = any
	Outcome trial.Outcome // "" = any
	Void    bool          // only void ones
	Knobs   []KnobFilter  // all of them must hold
	Offset  int           // trials passed over
	Limit   int           // most trials returned, 0 = no limit
}

// KnobSort before a knob's name sorts by that knob's value.
const KnobSort = "knob."

// TrialSorts are the words that TrialQuery.Sort takes beside knobs.
var TrialSorts = []string{"number", "value", "clients", "tokens", "free", "outcome", "ended", "took"}

// KnobFilter holds for configurations in which a knob is set to a value in an interval, or to one of some
// words.
type KnobFilter struct {
	Knob     string
	Min, Max *float64 // both included; nil = open
	Words    []string // as SGLang's command line spells them; used when there is no bound
}

// Overview is what is true of all trials of a study, counted where they are stored.
type Overview struct {
	Total     int // rows of every role
	Finished  int // in a final state
	Failed    int // failed and not void
	Pruned    int // stopped early as hopeless
	Void      int // contaminated
	Cancelled int
	Launches  int            // baseline and search launches that the trial budget counts
	Refused   int            // configurations kept out before a launch
	RefusedBy string         // the newest such rule with its numbers, "" without one
	Baseline  *int           // newest baseline launch that has a value
	Best      *int           // trial with the highest value, confirmation and void ones left out
	Running   []int          // trials that run now, oldest first
	Failures  []FailureGroup // most frequent first
}

// FailureGroup is the failures of a study that ended alike.
type FailureGroup struct {
	Outcome trial.Outcome
	Cause   string
	Count   int
	Newest  int      // number of the newest trial of them
	Lowest  *float64 // smallest mem-fraction-static among them, nil where none set it
}
