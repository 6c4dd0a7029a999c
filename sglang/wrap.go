package sglang

import "bytes"

// wrap is what a container runtime, a launcher or a logging tool says about a line it put its own
// prefix before.
type wrap struct {
	source  uint32 // tells apart the writers of mixed lines: a rank, a process, a service; 0 when not said
	rank    int    // rank the prefix names, -1 when none
	record  bool   // the line is a record of a container runtime (CRI)
	partial bool   // the rest of the line comes in the next record
	stream  int    // of a record: 0 stdout, 1 stderr
	ray     bool   // Ray may have put a remark at the end, too
	timed   bool   // the last prefix was a time: "host program[pid]: " may follow
}

// maxWraps is how many prefixes may stand before one line: kubectl's before CRI's before Ray's.
const maxWraps = 5

// unwrap takes the prefixes of other programs off a line. SGLang's own is left.
func unwrap(line []byte) ([]byte, wrap) {
	w := wrap{rank: -1}
	for range maxWraps {
		if len(line) == 0 || isStamp(line) {
			break
		}
		n := w.prefix(line)
		if n == 0 {
			break
		}
		line = line[n:]
	}
	if w.ray {
		line = cutRayRemark(line)
	}
	return line, w
}

// prefix returns the length of the one prefix a line begins with, 0 when it has none.
func (w *wrap) prefix(line []byte) int {
	if w.timed {
		w.timed = false
		if n := syslogName(line); n > 0 {
			return n
		}
	}
	switch c := line[0]; {
	case c == '[':
		return w.bracket(line)
	case c == '(':
		return w.actor(line)
	case isDigit(c):
		if n := clock(line); n > 0 {
			w.timed = true
			return n + w.afterTime(line[n:])
		}
		return w.task(line)
	case c == ' ':
		return w.task(line)
	case isMonth(line) || isWeekday(line):
		if n := syslogTime(line); n > 0 {
			w.timed = true
			return n
		}
	}
	return w.service(line)
}

// bracket reads "[rank3]: " (torch's excepthook), "[gpu=3] " (SGLang 0.2), "[default3]:" (torchrun),
// "[pod/name/container] " (kubectl --prefix), "[1,3]<stderr>:" (mpirun), "[2026-11-29T14:08:17Z] "
// and "[12345.678901] " (journald's monotonic time; dmesg).
func (w *wrap) bracket(line []byte) int {
	const farthest = 160
	end := bytes.IndexByte(line[:min(len(line), farthest)], ']')
	if end < 0 {
		return 0
	}
	inside, after := line[1:end], line[end+1:]
	for _, name := range []string{"rank", "gpu=", "default"} {
		if rest, ok := bytes.CutPrefix(inside, []byte(name)); ok {
			n, digits := leadingInt(rest)
			if !digits || bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }) >= 0 {
				return 0
			}
			w.rank, w.source = n, sourceOf(line[:end])
			return end + 1 + colonSpace(after)
		}
	}
	if bytes.HasPrefix(inside, []byte("pod/")) {
		w.source = sourceOf(inside)
		return end + 1 + colonSpace(after)
	}
	if bytes.HasPrefix(after, []byte("<std")) {
		if close := bytes.Index(after[:min(len(after), 16)], []byte(">:")); close > 0 {
			w.source = sourceOf(inside)
			return end + 1 + close + 1 + colonSpace(after[close+1:])
		}
		return 0
	}
	if n := clock(inside); n > 0 && n == len(inside) && len(after) > 0 && after[0] == ' ' {
		w.timed = true
		return end + 2
	}
	return 0
}

// actor reads Ray's "(SchedulerActor pid=123, ip=10.0.0.2) ".
func (w *wrap) actor(line []byte) int {
	const farthest = 160
	end := bytes.Index(line[:min(len(line), farthest)], []byte(") "))
	if end < 0 || !bytes.Contains(line[:end], []byte(" pid=")) {
		return 0
	}
	w.source, w.ray = sourceOf(line[:end]), true
	return end + 2
}

// task reads srun's label "3: " (padded to " 3: ").
func (w *wrap) task(line []byte) int {
	i := 0
	for i < len(line) && line[i] == ' ' && i < 6 {
		i++
	}
	n, ok := leadingInt(line[i:])
	if !ok {
		return 0
	}
	end := i
	for isDigit(line[end]) {
		if end++; end == len(line) {
			return 0
		}
	}
	if n > 99999 || line[end] != ':' || end+1 < len(line) && line[end+1] != ' ' {
		return 0
	}
	w.source = sourceOf(line[i:end])
	return end + colonSpace(line[end:])
}

// service reads docker compose's "sglang-1  | ".
func (w *wrap) service(line []byte) int {
	const longest = 64
	end := 0
	for end < len(line) && end < longest && isNameByte(line[end]) {
		end++
	}
	if end == 0 || end == len(line) || line[end] != ' ' {
		return 0
	}
	bar := end
	for bar < len(line) && bar < longest && line[bar] == ' ' {
		bar++
	}
	if bar == len(line) || line[bar] != '|' || bar+1 < len(line) && line[bar+1] != ' ' {
		return 0
	}
	w.source = sourceOf(line[:end])
	return min(bar+2, len(line))
}

// afterTime reads what stands behind a time at the start of a line: CRI's " stderr F ", loguru's
// " | ERROR    | module:function:12 - ", logging's " - name - ERROR - ", or one space.
func (w *wrap) afterTime(rest []byte) int {
	if len(rest) == 0 || rest[0] != ' ' {
		return 0
	}
	const farthest = 160
	head := rest[:min(len(rest), farthest)]
	for stream, name := range []string{" stdout ", " stderr "} {
		if n := len(name); bytes.HasPrefix(head, []byte(name)) && len(head) > n && (head[n] == 'F' || head[n] == 'P') {
			w.record, w.stream, w.partial = true, stream, head[n] == 'P'
			return min(n+2, len(rest))
		}
	}
	if bytes.HasPrefix(head, []byte(" | ")) {
		if i := bytes.Index(head, []byte(" - ")); i > 0 {
			return i + len(" - ")
		}
		return len(" | ")
	}
	if bytes.HasPrefix(head, []byte(" - ")) {
		for _, level := range []string{" - DEBUG - ", " - INFO - ", " - WARNING - ", " - ERROR - ", " - CRITICAL - "} {
			if i := bytes.Index(head, []byte(level)); i >= 0 {
				return i + len(level)
			}
		}
	}
	return 1
}

// colonSpace is the length of an optional colon and one optional space.
func colonSpace(rest []byte) int {
	n := 0
	if n < len(rest) && rest[n] == ':' {
		n++
	}
	if n < len(rest) && rest[n] == ' ' {
		n++
	}
	return n
}

// cutRayRemark takes " [repeated 7x across cluster] (Ray deduplicates logs ...)" off the end.
func cutRayRemark(line []byte) []byte {
	if i := bytes.LastIndex(line, []byte(" [repeated ")); i >= 0 && bytes.Contains(line[i:], []byte("x across cluster]")) {
		return line[:i]
	}
	return line
}

// sourceOf folds the words that name a writer into a number (FNV-1a); 0 is kept for nobody.
func sourceOf(name []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range name {
		h = (h ^ uint32(c)) * 16777619
	}
	return max(h, 1)
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '-' || c == '_' || c == '.'
}
