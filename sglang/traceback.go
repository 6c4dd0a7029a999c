package sglang

import (
	"bytes"
	"slices"
)

const (
	// maxTraceback is how many lines a traceback may have before it is given up as never ended.
	maxTraceback = 600
	// maxTracebacks is how many may be open at once: one a rank and some to spare.
	maxTracebacks = 64
)

// traceback follows a Python traceback from its first line to the exception that ends it, because
// only its frames say what the server was doing when it ran out of memory, and only its first line
// says which rank it was.
type traceback struct {
	source uint32 // who prints it, as the line's prefix says
	rank   int
	dp, pp int
	fatal  bool // opened by "... hit an exception": the process dies of it
	lines  int
	where  string
	sticky bool // where is decided by an outer frame (capturing a graph runs decode steps inside)
	chain  bool // it goes on after "During handling of the above exception"
}

// tracebacks are those that are open, oldest first. Ranks that die together print theirs line by
// line into each other: lines whose prefix names a writer belong to that writer's, the others to
// all that are open, which is near enough as such ranks died in the same place.
type tracebacks struct {
	open  []traceback
	ended traceback // the last one that ended
	chain bool      // "During handling of the above exception" was the last thing said about it
}

// start opens a traceback when f is its first line.
func (t *tracebacks) start(f *frame) bool {
	const first = "Traceback (most recent call last)"
	msg := bytes.TrimLeft(f.msg, " \t+|")
	i := bytes.Index(msg, []byte(first))
	switch {
	case i < 0:
		return false
	case i == 0 || bytes.HasPrefix(msg, []byte("╭")) || bytes.HasPrefix(msg, []byte("Exception Group ")):
		t.begin(f, false)
	case bytes.HasSuffix(msg[:i], []byte(" hit an exception: ")) && bytes.IndexByte(msg, ' ') == i-len(" hit an exception: "):
		t.begin(f, true)
	default:
		return false
	}
	return true
}

// begin opens a traceback. The second half of a chained one has no frame of its own and stays with
// the rank of the first.
func (t *tracebacks) begin(f *frame, fatal bool) {
	next := traceback{source: f.source, rank: f.rank, dp: f.dp, pp: f.pp, fatal: fatal}
	if t.chain && t.ended.lines > 0 && f.source == t.ended.source && (f.rank < 0 || f.rank == t.ended.rank) {
		next = t.ended
		next.lines, next.chain = 0, true
	}
	t.chain = false
	if len(t.open) == maxTracebacks {
		t.open = t.open[:copy(t.open, t.open[1:])]
	}
	t.open = append(t.open, next)
}

// owns reports whether a line in frame f can belong to the traceback.
func (t *traceback) owns(f *frame) bool {
	return t.source == f.source && (!f.prefixed || t.rank == f.rank)
}

// feed takes one line. It reports whether it belongs to the body of a traceback (frames, source
// lines, notes), and so cannot be an event.
func (t *tracebacks) feed(f *frame) bool {
	if bytes.HasPrefix(f.msg, []byte("During handling of the above exception")) || bytes.HasPrefix(f.msg, []byte("The above exception was the direct cause")) {
		t.chain = true
		return true
	}
	if len(t.open) == 0 {
		return false
	}
	body, found := isBody(f.msg), false
	for i := 0; i < len(t.open); i++ {
		tb := &t.open[i]
		if !tb.owns(f) {
			continue
		}
		if tb.lines++; tb.lines > maxTraceback {
			t.open = append(t.open[:i], t.open[i+1:]...)
			i--
			continue
		}
		if found = true; body {
			tb.frame(f.msg)
		}
	}
	return found && body
}

// wait reports whether a traceback is open that a line in frame f can end.
func (t *tracebacks) wait(f *frame) bool {
	return slices.ContainsFunc(t.open, func(tb traceback) bool { return tb.owns(f) })
}

// end closes the traceback that an exception line in frame f ends: the one whose rank the text names
// ("GPU 3"), else the oldest it can be. ok is false when none is open.
func (t *tracebacks) end(f *frame, gpu int) (tb traceback, ok bool) {
	at := -1
	for i := range t.open {
		if o := &t.open[i]; o.owns(f) && (at < 0 || gpu >= 0 && o.rank == gpu && t.open[at].rank != gpu) {
			at = i
		}
	}
	if at < 0 {
		return traceback{}, false
	}
	t.ended, t.chain = t.open[at], false
	t.open = append(t.open[:at], t.open[at+1:]...)
	return t.ended, true
}

// isBody reports whether a line cannot be the exception at the end of a traceback: it is indented
// or empty, or part of the frame that rich and loguru draw.
func isBody(msg []byte) bool {
	if len(msg) == 0 {
		return true
	}
	switch msg[0] {
	case ' ', '\t', '|', '+', '-':
		return true
	case '>':
		return bytes.HasPrefix(msg, []byte("> File "))
	}
	for _, line := range []string{"│", "╭", "╰", "├", "└"} {
		if bytes.HasPrefix(msg, []byte(line)) {
			return true
		}
	}
	return false
}

// frame learns from one line of the body what the server was doing. It is python's
// `File "x.py", line 1, in f` or rich's `x.py:1 in f`.
func (t *traceback) frame(msg []byte) {
	msg = bytes.TrimLeft(msg, " |+->\t│")
	if rest, ok := bytes.CutPrefix(msg, []byte(`File "`)); ok {
		file, rest, ok := bytes.Cut(rest, []byte(`", line `))
		if ok {
			_, function, _ := bytes.Cut(rest, []byte(", in "))
			t.note(file, function)
		}
		return
	}
	file, rest, ok := bytes.Cut(msg, []byte(".py:"))
	if n, digits := leadingInt(rest); ok && digits && n > 0 && bytes.IndexByte(file, ' ') < 0 {
		if _, function, ok := bytes.Cut(rest, []byte(" in ")); ok {
			t.note(append(file[:len(file):len(file)], ".py"...), bytes.TrimRight(function, " │"))
		}
	}
}

// note learns from one frame. Deeper frames know better, except inside start-up steps, which run
// ordinary forward passes of their own.
func (t *traceback) note(file, function []byte) {
	if t.sticky {
		return
	}
	for _, place := range places {
		if bytes.Contains(file, []byte(place.file)) && bytes.Contains(function, []byte(place.function)) {
			t.where, t.sticky = place.where, place.sticky
			return
		}
	}
}

// whereClient is the place of a load generator that writes into the server's log.
const whereClient = "client"

// places map a traceback frame to the word "where" of a gpu_oom event; the first that fits counts.
var places = []struct {
	file, function string // substrings; empty fits all
	where          string
	sticky         bool
}{
	{file: "/bench_serving", where: whereClient, sticky: true},
	{file: "/bench_one_batch_server", where: whereClient, sticky: true},
	{file: "/benchmark_serving", where: whereClient, sticky: true},
	{file: "sglang/benchmark/", where: whereClient, sticky: true},
	{function: "init_cuda_graphs", where: "graph", sticky: true},
	{function: "init_device_graphs", where: "graph", sticky: true},
	{function: "capture", where: "graph", sticky: true},
	{file: "cuda_graph_runner", function: "__init__", where: "graph", sticky: true},
	{file: "model_loader", where: "load", sticky: true},
	{function: "load_model", where: "load", sticky: true},
	{function: "load_weights", where: "load", sticky: true},
	{file: "pool_host", where: "host_pool", sticky: true},
	{file: "memory_pool_host", where: "host_pool", sticky: true},
	{file: "hiradix_cache", function: "__init__", where: "host_pool", sticky: true},
	{function: "init_hicache", where: "host_pool", sticky: true},
	{file: "hicache", where: "host_pool"},
	{function: "init_memory_pool", where: "kv_pool"},
	{file: "mem_cache/memory_pool", where: "kv_pool"},
	{file: "kv_cache_configurator", where: "kv_pool"},
	{file: "layers/sampler", where: "sampling"},
	{file: "layers/logits_processor", where: "sampling"},
	{file: "model_runner.py", function: "sample", where: "sampling"},
	{function: "forward_extend", where: "prefill"},
	{function: "forward_prefill", where: "prefill"},
	{function: "forward_split_prefill", where: "prefill"},
	{file: "prefill", function: "replay", where: "prefill"},
	{function: "forward_decode", where: "decode"},
	{file: "graph_runner", function: "replay", where: "decode"},
}
