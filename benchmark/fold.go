package benchmark

// Fold makes the report of a load level that somebody else carried out, from what happened when: a simulation
// in virtual time tells it, and gets what Run would have made of the same events, by the same rules for the
// warm-up, steadiness, the interval and the level's end. Everything that it is told happens at the Now of
// Options.Clock, which must not go backwards. It is for closed loops and not safe for concurrent use.
type Fold struct {
	lv     *level
	tokens *meter
}

// NewFold begins a level now. The options mean what they mean for Run; those about connections, tries and
// arrivals must be left alone.
func NewFold(opts Options) (*Fold, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.CPUShare == nil {
		opts.CPUShare = func() float64 { return 0 } // no client, no share
	}
	lv := newLevel(Target{}, nil, opts, nil)
	start := opts.Clock.Now()
	lv.ledger = newLedger(start, opts.Window)
	lv.samples.start, lv.samples.width, lv.last = start, opts.Window, start
	lv.pulse = &pulse{meter: NewCPUMeter()}
	lv.cpu = []CPUReading{lv.pulse.meter.Read()}
	return &Fold{lv: lv, tokens: lv.ledger.meter()}, nil
}

// Sent books a request that is sent now; false says that nothing more may be sent.
func (f *Fold) Sent() bool {
	if f.Over() {
		return false
	}
	f.lv.mu.Lock()
	f.lv.sent++
	f.lv.begun++
	f.lv.mu.Unlock()
	f.lv.ledger.enter(f.lv.opts.Clock.Now())
	return true
}

// Tokens books completion tokens of now, and prompt tokens: those of the requests whose first token came.
func (f *Fold) Tokens(output, prompt int) {
	lv := f.lv
	f.tokens.tokens(lv.opts.Clock.Now(), output, prompt)
	if most := lv.opts.PromptTokens; most > 0 && lv.ledger.prompt.Load() >= most {
		lv.mu.Lock()
		defer lv.mu.Unlock()
		lv.exhaust()
	}
}

// Finished books a request that ended now, which belonged to a pass over the rows.
func (f *Fold) Finished(r Request, pass int) {
	f.lv.ledger.leave(f.lv.opts.Clock.Now(), r.Failed != "")
	f.lv.finished(answer{Request: r}, pass, false)
}

// Cut books a request that the level's end took away.
func (f *Fold) Cut() {
	f.lv.ledger.leave(f.lv.opts.Clock.Now(), false)
	f.lv.finished(answer{cut: true}, 0, false)
}

// Windows is how many whole windows have ended; the next one ends Options.Window after the last.
func (f *Fold) Windows() int { return len(f.lv.windows) }

// WindowEnded books the window that ends now and reports whether the level is over.
func (f *Fold) WindowEnded() bool {
	k := len(f.lv.windows)
	if !f.Over() && f.lv.windowEnded(k) {
		f.lv.ledger.close(f.lv.opts.Clock.Now())
		f.lv.stop()
	}
	return f.Over()
}

// Over reports whether nothing more may be sent.
func (f *Fold) Over() bool {
	f.lv.mu.Lock()
	defer f.lv.mu.Unlock()
	return f.lv.over
}

// Report sums up; it comes last.
func (f *Fold) Report() *Report { return f.lv.report() }
