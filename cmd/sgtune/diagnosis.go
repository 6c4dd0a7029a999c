package main

import (
	"context"

	"sgtune/sglang"
	"sgtune/trial"
)

// diagnosis is a log that is being read for a verdict. It keeps the facts, not the log.
type diagnosis struct {
	reader *sglang.Reader
	closed bool
}

func newDiagnosis() *diagnosis { return &diagnosis{reader: sglang.NewReader()} }

// read takes a whole log; it ends early, with ctx's error, when ctx does.
func (d *diagnosis) read(ctx context.Context, log *source) error {
	err := log.read(func(chunk []byte) error {
		d.feed(chunk)
		return ctx.Err()
	})
	d.close()
	return err
}

// feed takes the next bytes of the log.
func (d *diagnosis) feed(chunk []byte) { _, _ = d.reader.Write(chunk) } // it never fails

// close says that the log has ended: its last line may lack a newline.
func (d *diagnosis) close() {
	if !d.closed {
		d.closed = true
		d.reader.Close()
	}
}

func (d *diagnosis) facts() sglang.LogFacts { return d.reader.Facts() }

// verdict judges what was read so far.
func (d *diagnosis) verdict(c trial.Context) trial.Verdict {
	facts := d.facts()
	return trial.Diagnose(facts, facts.First, facts.Last, c)
}

// at finds the event of a line among those that are kept.
func (d *diagnosis) at(line int) (sglang.Event, bool) {
	facts := d.facts()
	for _, events := range [][]sglang.Event{facts.Fatal, facts.Notes, {facts.LastBatch}} {
		for _, e := range events {
			if e.Line == line && line > 0 {
				return e, true
			}
		}
	}
	for _, kinds := range []map[string]sglang.Event{facts.First, facts.Last} {
		for _, e := range kinds {
			if e.Line == line && line > 0 {
				return e, true
			}
		}
	}
	return sglang.Event{}, false
}
