package tuner

import (
	"context"
	"fmt"

	"sgtune/trial"
)

// HistoryReader is a Store that can leave out, of trials that ended, what nothing is decided by: command lines,
// processes, evidence, figures for people. A study may have thousands of trials, and the loop reads all of them at
// every turn. A Store that is none is asked for whole rows.
type HistoryReader interface {
	// History is Trials without those parts of ended trials. Such a row cannot be saved.
	History(ctx context.Context, study string) ([]*trial.Trial, error)
}

func (l *Loop) history(ctx context.Context) (History, error) {
	read := l.Store.Trials
	if short, ok := l.Store.(HistoryReader); ok {
		read = short.History
	}
	trials, err := read(ctx, l.Study.Name)
	if err != nil {
		return nil, fmt.Errorf("read the trials of %s: %w", l.Study.Name, err)
	}
	return trials, nil
}
