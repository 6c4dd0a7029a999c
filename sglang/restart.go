package sglang

import "strings"

const (
	kindServerArgs = "server_args"
	kindArgparse   = "argparse_error"
)

// begins reports whether ev is the first line of a new server, the arguments it was given or their
// refusal: its log was appended to that of one that had ended. Replicas and the nodes of one server print theirs into the same file, too,
// but their lines name another writer or node, or come before the first has got anywhere; a line
// that was collected twice has the same time.
func (r *Reader) begins(ev Event, f *frame) bool {
	facts := &r.facts
	before, seen := facts.First[kindServerArgs]
	if ev.Kind == kindArgparse {
		return seen && f.source == r.source && strings.HasPrefix(ev.Text, "launch_server.py: error: ")
	}
	if ev.Kind != kindServerArgs {
		return false
	}
	if !seen {
		return len(facts.Fatal) > 0 // it died of its flags, before it could print them
	}
	if f.source != r.source || ev.Values["node_rank"] != before.Values["node_rank"] || !ev.At.IsZero() && ev.At.Equal(before.At) {
		return false
	}
	return facts.Ready || r.stopped || len(facts.Fatal) > 0 || facts.Phase.After(PhaseDistInit)
}

// restart forgets what the log said of the server before: the last one is judged. What the log itself
// is like stays.
func (r *Reader) restart() {
	old := &r.facts
	r.facts = LogFacts{
		Phase: PhaseLaunch, First: map[string]Event{}, Last: map[string]Event{}, Restarts: old.Restarts + 1,
		Lines: old.Lines, Bytes: old.Bytes, LongLines: old.LongLines, Coloured: old.Coloured, Wrapped: old.Wrapped, Echoed: old.Echoed,
	}
	clear(r.ranks)
	r.latest, r.latestKey = nil, [3]int{}
	r.tbs, r.last, r.stopped = tracebacks{}, [2]savedBatch{}, false
}
