package sglang

import (
	"bytes"
	"strings"
)

const (
	// maxSegment is how much of one line (or of one step of a progress bar) is looked at. The rest
	// is counted and dropped: SGLang writes no meaningful line of this length, prompts are longer.
	maxSegment = 64 << 10
	// maxRanks bounds the per-rank memory of a Reader.
	maxRanks = 4096
)

// Reader turns a server log, fed in chunks of any size while it grows, into events and facts. It
// keeps a bounded amount of memory however long the log or one of its lines is. The zero value is
// not usable; call NewReader. A Reader is not safe for concurrent use.
type Reader struct {
	facts     LogFacts
	ranks     map[[3]int]*rankState // by DP, PP and TP rank
	latest    *rankState            // of the rank of latestKey, the last one asked for
	latestKey [3]int
	tbs       tracebacks
	echo      echo
	batch     batch         // the batch line just read
	last      [2]savedBatch // last prefill and last decode line

	buf     []byte // current segment as far as earlier chunks held it, at most maxSegment
	long    bool   // buf lost bytes
	stepped bool   // a \r was seen in the current line
	outer   wrap   // what its first segment was wrapped in
	clean   []byte // the segment without colours
	record  []byte // the text of a JSON record
	joined  [2]joined

	line    int     // number of the current physical line
	start   int64   // offset of its first byte
	stopped bool    // SIGTERM was received: children that die now were told to
	source  uint32  // who printed the arguments of the server that is judged
	collect bool    // somebody wants the events
	events  []Event // those that Feed and Close will return
}

// NewReader returns a Reader at the beginning of an empty log.
func NewReader() *Reader {
	return &Reader{
		ranks: map[[3]int]*rankState{}, line: 1,
		facts: LogFacts{Phase: PhaseLaunch, First: map[string]Event{}, Last: map[string]Event{}},
	}
}

// Feed takes the next bytes of the log and returns the events of the lines (and progress-bar steps)
// they completed, in order. A line ends at \n only; a \r ends one step of a bar, which is its own
// event on the same line number. Feed keeps no reference to chunk.
func (r *Reader) Feed(chunk []byte) []Event {
	r.collect = true
	r.read(chunk)
	return r.collected()
}

// Write is Feed for those who want the facts only: it makes no Event for each of the millions of
// batch lines a busy server prints, and so is much faster. It never fails.
func (r *Reader) Write(chunk []byte) (int, error) {
	r.read(chunk)
	return len(chunk), nil
}

// collected hands over the events and stops collecting.
func (r *Reader) collected() []Event {
	events := r.events
	r.events, r.collect = nil, false
	return events
}

func (r *Reader) read(chunk []byte) {
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n')
		if end < 0 {
			r.part(chunk, false)
			r.facts.Bytes += int64(len(chunk))
			break
		}
		r.facts.Bytes += int64(end + 1)
		if line := chunk[:end]; len(r.buf) > 0 || r.stepped || r.long || !r.batchLine(line) {
			r.part(line, true)
		}
		r.countLong()
		r.facts.Lines++
		r.line++
		r.start = r.facts.Bytes
		chunk = chunk[end+1:]
	}
}

// countLong notes that the current line, which has ended, is a long one.
func (r *Reader) countLong() {
	if r.facts.Bytes-r.start > maxSegment {
		r.facts.LongLines++
	}
}

// Close says that the log has ended. It returns the event of a last line without \n.
func (r *Reader) Close() []Event {
	r.collect = true
	if len(r.buf) > 0 || r.stepped {
		r.facts.Lines++
		r.countLong()
		r.part(nil, true)
	}
	for i := range r.joined {
		r.endJoined(&r.joined[i], false)
	}
	return r.collected()
}

// part takes the next bytes of the current line: whole says that the line ends with them. Every \r
// ends a segment of its own.
func (r *Reader) part(part []byte, whole bool) {
	for {
		i := bytes.IndexByte(part, '\r')
		if i < 0 {
			break
		}
		r.endSegment(part[:i])
		r.stepped = true
		part = part[i+1:]
	}
	if !whole {
		r.keep(part)
		return
	}
	if !r.stepped || len(r.buf)+len(part) > 0 { // "\r\n" ends one segment, not two
		r.endSegment(part)
	}
	r.stepped = false
}

// endSegment handles the segment that ends with part.
func (r *Reader) endSegment(part []byte) {
	segment := part
	if len(r.buf) > 0 {
		r.keep(part)
		segment = r.buf
	}
	if len(segment) == 0 && r.idle() {
		if !r.stepped {
			r.outer = wrap{rank: -1}
		}
		return
	}
	cut := r.long || len(segment) > maxSegment
	r.segment(segment[:min(len(segment), maxSegment)], cut)
	r.buf, r.long = r.buf[:0], false
}

// idle reports whether nothing is open that counts lines: an empty one can be skipped then.
func (r *Reader) idle() bool {
	return r.echo.quote == 0 && len(r.tbs.open) == 0 && len(r.joined[0].text) == 0 && len(r.joined[1].text) == 0
}

func (r *Reader) keep(part []byte) {
	if room := maxSegment - len(r.buf); room < len(part) {
		part, r.long = part[:room], true
	}
	r.buf = append(r.buf, part...)
}

// batchLine is the short way of a line that is one batch line in SGLang's frame and nothing else. It
// reports false, having changed nothing, for any other.
func (r *Reader) batchLine(line []byte) bool {
	const shortest = len(stampShape) + len("] Decode batch")
	if len(line) < shortest || r.echo.quote != 0 {
		return false
	}
	f := frame{rank: -1, dp: -1, pp: -1}
	if !f.open(line) || !isPlain(line[1:len(line)-len(f.msg)]) || !r.batch.parse(f.msg) {
		return false
	}
	r.foldBatch(&f)
	return true
}

// segment handles one finished segment. cut says that it was longer.
func (r *Reader) segment(text []byte, cut bool) {
	text = r.cleaned(text)
	if record, ok := jsonLog(text, r.record[:0]); ok {
		r.record = record.text
		r.facts.Wrapped++
		r.recordText(record, cut)
		return
	}
	text, w := r.unwrapped(text)
	if w.record {
		if j := &r.joined[w.stream]; w.partial || len(j.text) > 0 {
			r.join(j, text, w, cut)
			return
		}
	}
	r.message(text, w, cut)
}

// unwrapped takes prefixes off a segment. The steps of a bar have none of their own: the line's
// stands before the first.
func (r *Reader) unwrapped(text []byte) ([]byte, wrap) {
	inner, w := unwrap(text)
	switch {
	case len(inner) < len(text):
		if w.rank < 0 {
			r.facts.Wrapped++
		}
	case r.stepped:
		w.source, w.rank = r.outer.source, r.outer.rank
		if r.outer.ray {
			inner = cutRayRemark(inner)
		}
	}
	if !r.stepped {
		r.outer = w
	}
	return inner, w
}

// cleaned is a line without terminal sequences and NUL bytes.
func (r *Reader) cleaned(text []byte) []byte {
	if !isDirty(text) {
		return text
	}
	r.facts.Coloured++
	r.clean = appendClean(r.clean[:0], text)
	return r.clean
}

// recordText handles the text of a JSON record.
func (r *Reader) recordText(record jsonRecord, cut bool) {
	w := wrap{rank: -1, stream: record.stream, partial: record.partial}
	if j := &r.joined[w.stream]; w.partial || len(j.text) > 0 {
		r.join(j, record.text, w, cut)
		return
	}
	r.steps(record.text, cut)
}

// steps handles the text of a record, which may hold a progress bar and colours.
func (r *Reader) steps(text []byte, cut bool) {
	text = r.cleaned(text)
	for len(text) > 0 {
		step, rest, _ := bytes.Cut(text, []byte("\r"))
		inner, w := unwrap(step)
		r.message(inner, w, cut && len(rest) == 0)
		text = rest
	}
}

// message handles a line that is out of its wrapper: the messages written into it, in order.
func (r *Reader) message(text []byte, w wrap, cut bool) {
	p := cutPieces(text, w)
	for f, ok := p.next(); ok; f, ok = p.next() {
		r.piece(&f, cut && len(p.rest) == 0)
	}
}

// piece handles one message.
func (r *Reader) piece(f *frame, cut bool) {
	if r.echo.swallow(f) {
		r.facts.Echoed++
		return
	}
	if r.batch.parse(f.msg) {
		r.foldBatch(f)
		return
	}
	if isRequest(f.msg) {
		r.facts.Echoed++
	}
	r.echo.begin(f, cut)
	if r.tbs.feed(f) {
		return
	}
	if r.tbs.start(f) {
		r.rank(f.dp, f.pp, f.rank)
		return
	}
	p, ev := recognize(f)
	if p == nil && r.tbs.wait(f) && endsTraceback(f.msg) {
		p, ev = namelessException(f)
	}
	if p != nil {
		r.accept(p, ev, f)
	} else if f.prefixed {
		r.rank(f.dp, f.pp, f.rank)
	}
}

// accept completes an event with what only the Reader knows and folds it into the facts.
func (r *Reader) accept(p *pattern, ev Event, f *frame) {
	if r.begins(ev, f) {
		r.restart()
	}
	if p.kind == kindServerArgs {
		r.source = f.source
	}
	ev.Line, ev.Offset, ev.Before = r.line, r.start, r.facts.Decodes+r.facts.Prefills
	lvl := p.level
	if lvl == fatal {
		lvl = r.weigh(&ev, f)
	}
	rank := r.rank(ev.DP, ev.PP, ev.Rank)
	r.enter(rank, p.phase)
	if p.kind == "sigterm" || p.kind == "graceful_exit" {
		r.stopped = true
	}
	if lvl == fatal && r.ordered(ev) {
		lvl = note
	}
	ev.Phase = rank.phase
	if ev.Rank < 0 || r.facts.Ready {
		ev.Phase = r.facts.Phase // the launcher speaks for all; while serving only rank 0 prints batches
	}
	r.fold(ev, lvl, rank)
	r.emit(ev)
}

// emit keeps an event as first and last of its kind and hands it to whoever wants events.
func (r *Reader) emit(ev Event) {
	if _, seen := r.facts.First[ev.Kind]; !seen {
		r.facts.First[ev.Kind] = ev
	}
	r.facts.Last[ev.Kind] = ev
	if r.collect {
		r.events = append(r.events, ev)
	}
}

// weigh closes the traceback that a fatal line ends, if it ends one, and says how much the line
// matters: an exception without a dying process, once the server serves, is one failed request, and
// that of a load generator is not the server's.
func (r *Reader) weigh(ev *Event, f *frame) level {
	var tb traceback
	if endsTraceback(f.msg) {
		gpu := -1
		if n, ok := ev.Values["gpu"]; ok {
			gpu = int(n)
		}
		var ended bool
		if tb, ended = r.tbs.end(f, gpu); ended {
			ev.Rank, ev.DP, ev.PP = tb.rank, tb.dp, tb.pp
			ev.word("where", tb.where)
			if tb.chain {
				ev.word("chained", "true")
			}
		}
	}
	if tb.where == whereClient || ev.Kind == kindArgparse && strings.HasPrefix(ev.Text, "bench") || ev.Kind == kindException && !tb.fatal && r.facts.Ready {
		return note
	}
	return fatal
}

// ordered reports whether a death is the consequence of a stop that was asked for: exit code -15
// always, any child's death after "SIGTERM received".
func (r *Reader) ordered(ev Event) bool {
	switch ev.Kind {
	case "child_crashed", "child_exit":
		return r.stopped || ev.Values["child_exit_code"] == -15
	case "sigquit":
		return r.stopped
	}
	return false
}
