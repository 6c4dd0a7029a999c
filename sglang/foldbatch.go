package sglang

// savedBatch is the last batch line of its kind: enough to make its event when somebody asks.
type savedBatch struct {
	batch
	frame  frame // its stamp and msg lie in text
	text   []byte
	line   int // 0 when there was none yet
	offset int64
	phase  Phase
	later  bool // it came after the last line of the other kind
}

// save keeps a batch line. It copies the line: the Reader's memory is used again.
func (s *savedBatch) save(b *batch, f *frame) {
	s.batch = *b
	s.text = append(append(s.text[:0], f.stamp...), f.msg[:min(len(f.msg), 2*maxText)]...)
	s.frame = *f
	s.frame.stamp, s.frame.msg = s.text[:len(f.stamp)], s.text[len(f.stamp):]
}

func (s *savedBatch) event() Event {
	ev := s.batch.event(&s.frame)
	ev.Line, ev.Offset, ev.Phase = s.line, s.offset, s.phase
	return ev
}

// foldBatch adds the batch line in r.batch to the facts. It makes an event of it only for the first
// of its kind and for Feed.
func (r *Reader) foldBatch(f *frame) {
	b := &r.batch
	rank := r.rank(f.dp, f.pp, f.rank)
	if phase := r.batchPhase(b); phase != "" && (phase != rank.phase || phase != r.facts.Phase) {
		r.enter(rank, phase)
	}
	rank.batches = true
	r.count(b, f)
	which := 0
	if b.decode {
		which = 1
	}
	s := &r.last[which]
	first := s.line == 0
	s.save(b, f)
	s.line, s.offset, s.phase = r.line, r.start, rank.phase
	if f.rank < 0 || r.facts.Ready {
		s.phase = r.facts.Phase
	}
	s.later, r.last[1-which].later = true, false
	if first || r.collect {
		ev := s.event()
		if first {
			r.facts.First[ev.Kind] = ev
		}
		if r.collect {
			r.events = append(r.events, ev)
		}
	}
}

// batchPhase is the phase a batch line proves. It means warm-up before the ready line and serving
// after it; the one-token batch of a health probe means neither.
func (r *Reader) batchPhase(b *batch) Phase {
	switch {
	case b.probe():
		return ""
	case !r.facts.Ready:
		return PhaseWarmup
	case b.decode:
		return PhaseDecode
	}
	return PhasePrefill
}

// count folds the numbers of a batch line. Only the first rank prints them, with DP attention the
// first of each DP rank; of a pipeline the first stage counts.
func (r *Reader) count(b *batch, f *frame) {
	if f.pp > 0 || f.rank > 0 && f.dp < 0 {
		return
	}
	facts := &r.facts
	if !b.decode {
		facts.Prefills++
		return
	}
	facts.Decodes++
	if f.dp <= 0 {
		facts.Tempo.add(b.value[fieldGenTokS], b.value[fieldRunning])
	}
	facts.MaxRunning = max(facts.MaxRunning, b.value[fieldRunning])
	facts.LastGenTokS = b.value[fieldGenTokS]
	facts.PeakGenTokS = max(facts.PeakGenTokS, facts.LastGenTokS)
}
