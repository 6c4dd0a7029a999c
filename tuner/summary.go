package tuner

import "errors"

// Errors of queries that name something the store does not hold. Stores wrap them.
var (
	ErrNoStudy = errors.New("no such study")
	ErrNoTrial = errors.New("no such trial")
)

// Summary is one line of the list of studies.
type Summary struct {
	Record
	Trials   int // rows of every role
	Finished int // of those, in a final state
	Heard    Heard
	Revision int64 // grows with every stored change of this study; live pages watch it
}
