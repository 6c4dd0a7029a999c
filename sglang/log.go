package sglang

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxSegment is how much of one line (or of one step of a progress bar) is looked at. The rest
	// is counted and dropped: SGLang writes no meaningful line of this length, prompts are longer.
	maxSegment = 64 << 10
	// maxText bounds Event.Text.
	maxText = 400
	// maxRanks bounds the per-rank memory of a Reader.
	maxRanks = 4096
)

// Reader turns a server log, fed in chunks of any size while it grows, into events and facts. It
// keeps a bounded amount of memory however long the log or one of its lines is. The zero value is
// not usable; call NewReader. A Reader is not safe for concurrent use.
type Reader struct {
	facts LogFacts
	ranks map[int]*rankState
	tb    traceback

	buf     []byte // current segment, at most maxSegment
	line    int    // number of the current physical line
	start   int64  // offset of its first byte
	stopped bool   // SIGTERM was received: children that die now were told to
}

// rankState is what is remembered of one rank's lines.
type rankState struct {
	phase    Phase
	graphGiB float64
}

// NewReader returns a Reader at the beginning of an empty log.
func NewReader() *Reader {
	return &Reader{ranks: map[int]*rankState{}, line: 1, facts: LogFacts{Phase: PhaseLaunch}}
}

// Feed takes the next bytes of the log and returns the events of the lines (and progress-bar steps)
// they completed, in order. A line ends at \n only; a \r ends one step of a bar, which is its own
// event on the same line number. Feed keeps no reference to chunk.
func (r *Reader) Feed(chunk []byte) []Event {
	var events []Event
	for len(chunk) > 0 {
		end := bytes.IndexAny(chunk, "\n\r")
		if end < 0 {
			r.keep(chunk)
			r.facts.Bytes += int64(len(chunk))
			break
		}
		r.keep(chunk[:end])
		r.facts.Bytes += int64(end + 1)
		if ev, ok := r.segment(); ok {
			events = append(events, ev)
		}
		if chunk[end] == '\n' {
			r.facts.Lines++
			r.line++
			r.start = r.facts.Bytes
		}
		chunk = chunk[end+1:]
	}
	return events
}

// Close says that the log has ended. It returns the event of a last line without \n.
func (r *Reader) Close() []Event {
	if len(r.buf) == 0 {
		return nil
	}
	r.facts.Lines++
	if ev, ok := r.segment(); ok {
		return []Event{ev}
	}
	return nil
}

// ParseLine reads one line on its own: no traceback, no earlier lines. Of a line that holds the
// steps of a progress bar, separated by \r, it returns the last event. Event.Line and Offset are 0,
// Phase is the phase the line itself proves, or "".
func ParseLine(line string) (Event, bool) {
	var last Event
	var ok bool
	for _, segment := range strings.Split(strings.TrimRight(line, "\r\n"), "\r") {
		if len(segment) > maxSegment {
			segment = segment[:maxSegment]
		}
		if p, ev := recognize(parseFrame(segment)); p != nil {
			last, ok = ev, true
			last.Phase = p.phase
		}
	}
	return last, ok
}

func (r *Reader) keep(part []byte) {
	if room := maxSegment - len(r.buf); room < len(part) {
		part = part[:max(room, 0)]
	}
	r.buf = append(r.buf, part...)
}

// segment handles the finished segment in buf.
func (r *Reader) segment() (Event, bool) {
	text := string(r.buf)
	r.buf = r.buf[:0]
	f := parseFrame(text)
	if !f.prefixed {
		if r.tb.feed(f.msg) {
			return Event{}, false
		}
		if strings.HasPrefix(f.msg, "Traceback (most recent call last)") {
			r.tb.begin(f.rank, false)
			return Event{}, false
		}
	} else if who, _, ok := strings.Cut(f.msg, " hit an exception: Traceback"); ok && !strings.Contains(who, " ") {
		r.tb.begin(f.rank, true)
		r.enter(r.rank(f.rank), "")
		return Event{}, false
	}
	p, ev := recognize(f)
	if p == nil {
		if f.prefixed {
			r.rank(f.rank)
		}
		return Event{}, false
	}
	return r.accept(p, ev, f), true
}

// accept completes an event with what only the Reader knows and folds it into the facts.
func (r *Reader) accept(p *pattern, ev Event, f frame) Event {
	ev.Line, ev.Offset = r.line, r.start
	lvl := p.level
	if r.tb.open && !f.prefixed && lvl == fatal {
		ev.Rank = r.tb.rank
		lvl = r.endTraceback(&ev)
	} else if ev.Kind == "traceback_last" && r.facts.Ready {
		lvl = note // an exception without a dying process: one request failed
	}
	rank := r.rank(ev.Rank)
	r.enter(rank, r.phaseOf(p, ev))
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
	return ev
}

// endTraceback closes the traceback whose exception ev is and says how much it matters.
func (r *Reader) endTraceback(ev *Event) level {
	defer r.tb.end()
	if r.tb.where != "" {
		ev.word("where", r.tb.where)
	}
	if ev.Kind == "traceback_last" && !r.tb.fatal && r.facts.Ready {
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

// recognize matches a framed line against the table and fills what the line alone says.
func recognize(f frame) (*pattern, Event) {
	msg := f.msg
	if !f.prefixed && startsIndented(msg) {
		if !isBar(msg) {
			return nil, Event{} // source lines of a traceback quote failures
		}
		msg = strings.TrimLeft(msg, " \t")
	}
	p, ev := table.match(msg, f.prefixed)
	if p == nil {
		return nil, ev
	}
	ev.At, ev.Rank = f.at, f.rank
	switch p.kind {
	case "server_args":
		parseServerArgs(&ev, msg)
	case "shard_progress":
		if s, ok := clockSeconds(ev.Words["eta"]); ok {
			ev.Values["load_eta_s"] = s
		}
		delete(ev.Words, "eta")
	case "kv_allocated":
		if v, split := ev.Values["v_gb"]; split {
			ev.Values["kv_cache_gb"] = math.Round((ev.Values["k_gb"]+v)*100) / 100
		}
	case "nccl_error":
		if rest, ok := strings.CutPrefix(msg, "[rank"); ok && !f.prefixed {
			n, _, _ := strings.Cut(rest, "]")
			if rank, err := strconv.Atoi(n); err == nil {
				ev.Rank = rank
			}
		}
	case "gpu_oom":
		if strings.Contains(msg, " graph failed: ") {
			ev.word("where", "graph")
		}
	}
	ev.Text = shortText(msg)
	return p, ev
}

// shortText is what is kept of a line to show: masked, valid UTF-8, at most maxText bytes.
func shortText(msg string) string {
	const beforeMask = 1024 // masking 64 KiB to keep 400 bytes would be waste
	if len(msg) > beforeMask {
		msg = msg[:beforeMask]
	}
	msg = strings.ToValidUTF8(Mask(msg), "\uFFFD")
	if len(msg) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(msg[cut]) {
			cut--
		}
		msg = msg[:cut]
	}
	return strings.Clone(msg)
}

func startsIndented(msg string) bool {
	return msg != "" && (msg[0] == ' ' || msg[0] == '\t')
}

// clockSeconds reads tqdm's "06:39" or "1:06:39".
func clockSeconds(text string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	total := 0
	for _, part := range strings.Split(text, ":") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return 0, false
		}
		total = total*60 + n
	}
	return float64(total), true
}
