package sglang

import "strings"

// maxTraceback is how many lines a traceback may have before it is given up as never ended.
const maxTraceback = 600

// traceback follows a Python traceback from its first line to the exception that ends it, because
// only its frames say what the server was doing when it ran out of memory, and only its first line
// says which rank it was.
type traceback struct {
	open   bool
	fatal  bool // opened by "... hit an exception": the process dies of it
	rank   int
	lines  int
	where  string
	sticky bool // where is decided by an outer frame (capturing a graph runs decode steps inside)
	chain  bool // "During handling of the above exception" was the last thing said
}

// begin opens a traceback printed by rank. The second half of a chained one has no frame of its own
// and stays with the rank of the first.
func (t *traceback) begin(rank int, fatal bool) {
	chained := t.chain && rank < 0
	next := traceback{open: true, rank: rank, fatal: fatal}
	if chained {
		next.rank, next.fatal, next.where, next.sticky = t.rank, t.fatal, t.where, t.sticky
	}
	*t = next
}

// end closes the traceback, keeping what a chained one inherits.
func (t *traceback) end() { t.open, t.chain, t.lines = false, false, 0 }

// feed takes one line that has no frame of its own. It reports whether the line belongs to the
// traceback's body (frames, source lines, notes), and so cannot be an event.
func (t *traceback) feed(msg string) bool {
	if strings.HasPrefix(msg, "During handling of the above exception") || strings.HasPrefix(msg, "The above exception was the direct cause") {
		t.chain = true
		return true
	}
	if !t.open {
		return false
	}
	if t.lines++; t.lines > maxTraceback {
		t.end()
		return false
	}
	trimmed := strings.TrimLeft(msg, " |+-")
	if len(trimmed) == len(msg) && msg != "" {
		return false
	}
	if file, rest, ok := strings.Cut(trimmed, `", line `); ok && strings.HasPrefix(file, `File "`) {
		_, function, _ := strings.Cut(rest, ", in ")
		t.note(file, function)
	}
	return true
}

// note learns from one frame what the server was doing. Deeper frames know better, except inside
// start-up steps, which run ordinary forward passes of their own.
func (t *traceback) note(file, function string) {
	if t.sticky {
		return
	}
	for _, place := range places {
		if place.file != "" && !strings.Contains(file, place.file) {
			continue
		}
		if place.function != "" && !strings.Contains(function, place.function) {
			continue
		}
		t.where, t.sticky = place.where, place.sticky
		return
	}
}

// places map a traceback frame to the word "where" of a gpu_oom event; the first that fits counts.
var places = []struct {
	file, function string // substrings; empty fits all
	where          string
	sticky         bool
}{
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
