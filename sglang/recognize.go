package sglang

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxText bounds Event.Text.
const maxText = 400

// ParseLine reads one line on its own: no traceback, no earlier lines. Of a line that holds several
// messages (the steps of a progress bar, separated by \r; lines glued together) it returns the last
// event. Event.Line and Offset are 0, Phase is the phase the line itself proves, or "". A line that
// means nothing costs no memory.
func ParseLine(line string) (Event, bool) {
	s, _ := parsers.Get().(*parser)
	s.text = append(s.text[:0], line[:min(len(line), maxSegment)]...)
	ev, ok := s.parse(bytes.TrimRight(s.text, "\r\n"))
	parsers.Put(s)
	return ev, ok
}

// parser is the memory ParseLine works in.
type parser struct {
	text, clean, record []byte
	batch               batch
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

func (s *parser) parse(text []byte) (last Event, ok bool) {
	if isDirty(text) {
		s.clean = appendClean(s.clean[:0], text)
		text = s.clean
	}
	if record, isRecord := jsonLog(text, s.record[:0]); isRecord {
		s.record = record.text
		text = record.text
	}
	for len(text) > 0 {
		step, rest, _ := bytes.Cut(text, []byte("\r"))
		p := cutPieces(unwrap(step))
		for f, more := p.next(); more; f, more = p.next() {
			if s.batch.parse(f.msg) {
				last, ok = s.batch.event(&f), true
			} else if row, ev := recognize(&f); row != nil {
				last, ok = ev, true
				last.Phase = row.phase
			}
		}
		text = rest
	}
	return last, ok
}

// recognize matches a framed line against the table and fills what the line alone says.
func recognize(f *frame) (*pattern, Event) {
	msg := f.msg
	if !f.prefixed && startsIndented(msg) {
		if !isBar(msg) && !isStackFrame(msg) {
			return nil, Event{} // source lines of a traceback quote failures
		}
		msg = bytes.TrimLeft(msg, " \t")
	}
	p, ev := table.match(msg, f.prefixed)
	if p == nil {
		return nil, ev
	}
	ev.At, ev.Rank, ev.DP, ev.PP = f.at(), f.rank, f.dp, f.pp
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
	case "gpu_oom":
		if bytes.Contains(msg, []byte(" graph failed: ")) {
			ev.word("where", "graph")
		}
	}
	ev.Text = shortText(msg)
	maskWords(&ev, msg)
	return p, ev
}

// namelessException is the event of an exception whose name says nothing of errors; only the open
// traceback it ends does.
func namelessException(f *frame) (*pattern, Event) {
	p := table.kinds[kindException]
	if p == nil || isEcho(f.msg) {
		return nil, Event{}
	}
	ev := Event{Kind: p.kind, At: f.at(), Rank: f.rank, DP: f.dp, PP: f.pp, Text: shortText(f.msg)}
	name, text, _ := bytes.Cut(f.msg, []byte(": "))
	ev.word("type", string(name))
	ev.word("msg", string(text))
	maskWords(&ev, f.msg)
	return p, ev
}

// shortText is what is kept of a line to show: masked, valid UTF-8, at most maxText bytes.
func shortText(msg []byte) string {
	const beforeMask = 1024 // masking 64 KiB to keep 400 bytes would be waste
	text := strings.ToValidUTF8(Mask(string(msg[:min(len(msg), beforeMask)])), "\uFFFD")
	if len(text) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = strings.Clone(text[:cut])
	}
	return text
}

func startsIndented(msg []byte) bool {
	return len(msg) > 0 && (msg[0] == ' ' || msg[0] == '\t')
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
