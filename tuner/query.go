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
	Total     int            `json:"total"`    // rows of every role
	Finished  int            `json:"finished"` // in a final state
	Failed    int            `json:"failed"`   // failed and not void
	Pruned    int            `json:"pruned"`   // stopped early as hopeless
	Void      int            `json:"void"`     // contaminated
	Cancelled int            `json:"cancelled"`
	Launches  int            `json:"launches"`             // baseline and search launches that the trial budget counts
	Refused   int            `json:"refused"`              // configurations kept out before a launch
	RefusedBy string         `json:"refused_by,omitempty"` // the newest such rule with its numbers, "" without one
	Baseline  *int           `json:"baseline,omitempty"`   // newest baseline launch that has a value
	Best      *int           `json:"best,omitempty"`       // trial with the highest value, confirmation and void ones left out
	Running   []int          `json:"running,omitempty"`    // trials that run now, oldest first
	Failures  []FailureGroup `json:"failures,omitempty"`   // most frequent first
}

// FailureGroup is the failures of a study that ended alike.
type FailureGroup struct {
	Outcome trial.Outcome `json:"outcome"`
	Cause   string        `json:"cause"`
	Count   int           `json:"count"`
	Newest  int           `json:"newest"`                               // number of the newest trial of them
	Lowest  *float64      `json:"lowest_mem_fraction_static,omitempty"` // smallest mem-fraction-static among them, nil where none set it
}
