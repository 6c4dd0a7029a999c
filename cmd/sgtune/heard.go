package main

import (
	"context"
	"os"
	"sync"
	"time"

	"sgtune/store"
	"sgtune/tuner"
)

// beHeard says every few seconds that this process runs the study, so that a page can tell when it does not any more. What fails here
// fails where it matters, too: when a trial is saved. stop waits for its end.
func (n *night) beHeard(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it lives on while the study is being stopped
	life := tuner.Heard{Since: time.Now(), PID: os.Getpid()}
	say := n.db.Arrive // the row of a new study comes a moment later
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(tuner.HeardEvery)
		defer tick.Stop()
		for {
			life.At = time.Now()
			if say(ctx, n.study.Name, life) == nil {
				say = n.db.Hear
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}

// askLater stores what people ask on the page of a database that is open for reading: only then is it opened for writing.
type askLater struct{ path string }

// Ask implements web.Asker.
func (a askLater) Ask(ctx context.Context, study string, c tuner.Command) (stored tuner.Command, again bool, err error) {
	db, err := store.Open(ctx, a.path)
	if err != nil {
		return c, false, err
	}
	defer func() { _ = db.Close() }() // what was stored is on the disk
	return db.Ask(ctx, study, c)
}
