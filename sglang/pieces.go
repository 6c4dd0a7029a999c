package sglang

import "bytes"

// maxPieces bounds how many lines are looked for in one.
const maxPieces = 64

// pieces takes one line apart into the messages that were written into it without a line end
// between them: a log line behind a progress bar, the half line of one rank and the whole line of
// another.
type pieces struct {
	rest  []byte
	left  int
	known wrap
}

// cut prepares a line whose wrapper is already off.
func cutPieces(line []byte, known wrap) pieces {
	return pieces{rest: line, left: maxPieces, known: known}
}

// next returns the next message in its frame.
func (p *pieces) next() (frame, bool) {
	if len(p.rest) == 0 && p.left < maxPieces {
		return frame{}, false
	}
	p.left--
	line := p.rest
	end := len(line)
	if p.left > 0 {
		end = p.boundary(line)
	}
	p.rest = line[end:]
	line = line[:end]
	f := frame{rank: p.known.rank, dp: -1, pp: -1, source: p.known.source}
	if !f.open(line) {
		f.msg = line
	}
	return f, true
}

// boundary is where the next message begins in a line, or its length.
func (p *pieces) boundary(line []byte) int {
	own := isStamp(line)
	if !own && isBar(line) {
		if end := barEnd(line); end > 0 && end < len(line) && len(bytes.TrimSpace(line[end:])) > 0 {
			return end
		}
	}
	for from := 1; from < len(line); {
		i := bytes.Index(line[from:], []byte("[20"))
		if i < 0 {
			break
		}
		from += i
		if isStamp(line[from:]) && !quoted(line[:from]) {
			return from
		}
		from++
	}
	return len(line)
}

// quoted reports whether what follows text is something that text quotes: the time stamp in a
// client's prompt begins no line.
func quoted(text []byte) bool {
	const farthest = 4096 // whoever quotes in a longer line has said so by then
	switch text[len(text)-1] {
	case '"', '\'', '`', '(', '=', '\\':
		return true
	}
	if bytes.HasSuffix(text, []byte(`\n`)) || isEcho(text[:min(len(text), farthest)]) {
		return true
	}
	return len(text) <= farthest && bytes.Count(text, []byte(`"`))%2 == 1
}

// isBar reports whether text holds a tqdm progress bar.
func isBar(text []byte) bool {
	i := bytes.IndexByte(text, '%')
	if i < 0 {
		return bytes.Contains(text, []byte("it/s]")) || bytes.Contains(text, []byte("s/it]"))
	}
	return bytes.Contains(text[i:], []byte("%|")) || bytes.Contains(text[i:], []byte("% Completed |")) ||
		bytes.Contains(text[i:], []byte("it/s]")) || bytes.Contains(text[i:], []byte("s/it]"))
}

// barEnd is the end of the last bar's "[00:15<00:15,  1.29s/it]", or 0.
func barEnd(text []byte) int {
	end := max(bytes.LastIndex(text, []byte("it/s]")), bytes.LastIndex(text, []byte("s/it]")))
	if end < 0 {
		return 0
	}
	return end + len("it/s]")
}
