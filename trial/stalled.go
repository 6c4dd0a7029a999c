package trial

import (
	"fmt"
	"strings"
	"time"

	"sgtune/sglang"
)

// The rules about a server that did not get on: a limit reached while it advanced, or silence.

const (
	// stalled is how long a start may say nothing and still be taken to advance: reading one large file,
	// compiling one kernel.
	stalled = 5 * time.Minute
	// starting is the time a launch needs before SGLang prints its first line.
	starting = time.Minute
	// silentProbes is how long a server with a failing health check may say nothing and still be busy.
	silentProbes = time.Minute
)

// limitOfStart: the time limit came while the start was still advancing.
func limitOfStart(f *Facts) (Verdict, bool) {
	judged := f.lives() || f.Ending == EndOutside && f.blamedByMonitor()
	over := f.Ending == EndTimeout || (f.Ending == EndUnknown || f.Ending == EndOutside) && judged && !f.ready() && f.Timeout > 0 && f.Elapsed >= f.Timeout
	if !over {
		return Verdict{}, false
	}
	if f.Ending != EndTimeout && silentStart(f) {
		return stuckStart(f), true
	}
	v := Verdict{Outcome: StartupTimeout, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceReadyTimeout}}
	v.Text = fmt.Sprintf("not ready after %s, and still advancing in %s; raise server.ready_timeout", span(f.Elapsed), furthest(f))
	v.Findings = []Finding{{"still_progressing", "the start was still advancing"}}
	switch {
	case compiling(f):
		v.Cause, v.Advice = "jit_compile", []string{adviceReadyTimeout, advicePrewarm}
		quote(&v, f.Last[kindJIT])
		v.Text = fmt.Sprintf("kernels were still being compiled in %s after %s; raise server.ready_timeout or let this host compile them once beforehand", furthest(f), span(f.Elapsed))
	case loading(f):
		slowLoad(f, &v)
	case f.Log.Phase == sglang.PhaseGraphCapture:
		v.Cause, v.Advice = "slow_graph_capture", []string{adviceReadyTimeout, adviceLowerGraphs}
		quote(&v, f.Last[kindGraphBegin])
		if e := f.Last[kindGraphBar]; e.Line >= v.Line {
			quote(&v, e)
		}
		v.Text = fmt.Sprintf("CUDA graphs were still being captured after %s; raise server.ready_timeout or capture fewer (cuda-graph-max-bs)", span(f.Elapsed))
	case f.Log.Phase == sglang.PhaseWarmup || f.Log.Phase == sglang.PhaseHTTPStart:
		v.Cause, v.Advice = "jit_compile", []string{adviceReadyTimeout, advicePrewarm}
		quote(&v, f.Last[kindUvicorn])
		v.Text = fmt.Sprintf("the server's own first request was not answered after %s, which compiles kernels on a host that never ran this model; raise server.ready_timeout", span(f.Elapsed))
	}
	return v, true
}

// loading reports whether weights were still being read: by the phase, or by a bar that is not full while
// the first ranks have finished.
func loading(f *Facts) bool {
	if f.Log.Phase == sglang.PhaseWeightLoad {
		return true
	}
	shards := f.Last[kindShards].Values
	return f.Log.Phase == sglang.PhaseKVPool && shards["load_done"] < shards["load_total"] && f.Log.Memory.Tokens == 0
}

func slowLoad(f *Facts, v *Verdict) {
	v.Phase, v.Cause, v.Advice = sglang.PhaseWeightLoad, "slow_weight_load", []string{adviceReadyTimeout, advicePrewarm}
	quote(v, f.Last[kindWeightBegin])
	shards, seen := f.Last[kindShards]
	if e, fetched := f.Last[kindDownload]; fetched && e.Line > shards.Line {
		shards, seen = e, true
	}
	if !seen {
		return
	}
	quote(v, shards)
	v.Numbers = copyNumbers(shards.Values)
	v.Findings = []Finding{{"still_progressing", "the weights were still being read"}}
	done, all := shards.Values["load_done"], shards.Values["load_total"]
	if all == 0 {
		return
	}
	v.Text = fmt.Sprintf("%.0f of %.0f weight files were loaded after %s", done, all, span(f.Elapsed))
	if eta := shards.Values["load_eta_s"]; eta > 0 {
		v.Text += fmt.Sprintf(", %s more to go", span(time.Duration(eta)*time.Second))
	}
	v.Text += "; raise server.ready_timeout or read the files once beforehand"
}

// compiling reports whether kernels were being compiled when the log ended.
func compiling(f *Facts) bool {
	jit, seen := f.Last[kindJIT]
	if !seen || f.Last[kindJITDone].Line > jit.Line {
		return false
	}
	for _, kind := range []string{kindWeightBegin, kindShards, kindGraphBar, kindGraphBegin, kindGraphEnd, kindHostPool, kindUvicorn} {
		if e := f.Last[kind]; e.Line > jit.Line {
			return false
		}
	}
	return true
}

// silentStart reports whether a start that is over its limit had stopped advancing. Without the figure
// itself, the time between the last stamp in the log and the judgement tells, where no bar ticks unseen.
func silentStart(f *Facts) bool {
	if f.Silent > 0 {
		limit := stalled
		if per := f.Last[kindShards].Values["load_s_per_shard"]; per > 0 {
			limit = max(limit, time.Duration(5*per)*time.Second)
		}
		return f.Silent >= limit && !compiling(f)
	}
	return f.Log.Phase == sglang.PhaseDistInit && impliedSilence(f) >= stalled
}

// impliedSilence is how long the log had said nothing when it was judged, as far as its own stamps tell.
func impliedSilence(f *Facts) time.Duration {
	var begin, end time.Time
	for _, e := range f.First {
		if !e.At.IsZero() && (begin.IsZero() || e.At.Before(begin)) {
			begin = e.At
		}
	}
	for _, e := range f.Last {
		if e.At.After(end) {
			end = e.At
		}
	}
	if begin.IsZero() || f.Elapsed == 0 {
		return 0
	}
	return max(0, f.Elapsed-end.Sub(begin)-starting)
}

// noProgressRule: no progress and no death.
func noProgressRule(f *Facts) (Verdict, bool) {
	switch {
	case f.Ending == EndStuck:
	case f.Ending != EndUnknown || !f.lives():
		return Verdict{}, false
	case !f.ready():
		if f.Silent < stalled || compiling(f) || f.Log.Lines == 0 {
			return Verdict{}, false
		}
		return stuckStart(f), true
	case !stuckService(f):
		return Verdict{}, false
	}
	v := Verdict{Outcome: Stuck, Cause: "no_progress", Blames: BlamePartly, Advice: []string{adviceRerun}}
	quote(&v, f.Log.LastBatch)
	v.Text = fmt.Sprintf("the server lived but nothing moved for %s", span(f.Silent))
	if _, why, ok := strings.Cut(f.Reason, errStuck.Error()+": "); ok {
		v.Text += ": " + why
	}
	switch {
	case !f.Ready && f.Log.Ready && f.Ending == EndStuck:
		v.Text = fmt.Sprintf("the server says that it is ready and gives no token: nothing moved for %s", span(f.Silent))
	case !f.ready():
		v.Text = fmt.Sprintf("the server stopped advancing in %s: nothing moved for %s", furthest(f), span(f.Silent))
	case f.Ending != EndStuck:
		v.Text = fmt.Sprintf("the server lives, but has computed nothing for %s while requests wait or the health check fails; end it and run the same once more", span(batchSilence(f)))
	}
	return v, true
}

// stuckService: a ready server with work that says nothing. An idle one says nothing either: requests must
// wait, or the health check must fail.
func stuckService(f *Facts) bool {
	ok, failed := f.probed()
	if failed > ok && max(f.Silent, impliedSilence(f)) >= silentProbes && f.Log.LastBatch.Line > 0 {
		return true
	}
	// Failing health checks write lines of their own: then silence is that of the batches.
	last, refused := f.Log.LastBatch, f.Last[kindHealthFailed]
	if f.Log.Health503 >= 3 && refused.Line > last.Line && !last.At.IsZero() && refused.At.Sub(last.At) >= silentProbes+20*time.Second {
		return true
	}
	return f.Silent >= stalled && last.Values["queue"] > 0 && ok == 0
}

// batchSilence is how long nothing was computed, as far as known.
func batchSilence(f *Facts) time.Duration {
	silent := max(f.Silent, impliedSilence(f))
	if last, refused := f.Log.LastBatch, f.Last[kindHealthFailed]; !last.At.IsZero() && refused.At.After(last.At) {
		silent += refused.At.Sub(last.At)
	}
	return silent
}

// stuckStart is a start that advances no more.
func stuckStart(f *Facts) Verdict {
	v := Verdict{Outcome: Stuck, Phase: furthest(f), Cause: "no_progress", Blames: BlamePartly, Advice: []string{adviceRerun}}
	quote(&v, lastEvent(f))
	v.Text = fmt.Sprintf("the start stopped advancing in %s", v.Phase)
	if f.Silent > 0 {
		v.Text += fmt.Sprintf(": the log has said nothing for %s", span(f.Silent))
	}
	v.Text += "; end it and run the same once more"
	if f.nodes() > 1 && !v.Phase.After(sglang.PhaseDistInit) {
		peerMissing(f, &v)
	}
	return v
}

func peerMissing(f *Facts, v *Verdict) {
	v.Phase, v.Cause, v.Blames, v.Advice = sglang.PhaseDistInit, "peer_missing", BlameNo, []string{advicePeers, adviceRerun}
	quote(v, f.First[kindDistBegin])
	v.Text = fmt.Sprintf("this node waits for another of the %d nodes, which has not come; look whether the server was started there, with the same dist-init-addr, and whether the network lets them talk", f.nodes())
}

// waitedForPeer: the rendezvous gave up waiting.
func waitedForPeer(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: Stuck}
	peerMissing(f, &v)
	v.Evidence, v.Line = "", 0
	v.Text = "the rendezvous gave up waiting for the other nodes (" + e.Text + "); look whether the server was started there, with the same dist-init-addr, and whether the network lets them talk"
	return v
}

// lastEvent is the last line of the log that means something; of a server at work its last decode line.
func lastEvent(f *Facts) sglang.Event {
	if decode, served := f.Last[kindDecode]; served && f.ready() {
		return decode
	}
	var last sglang.Event
	for _, e := range f.Last {
		if e.Line > last.Line || e.Line == last.Line && e.Kind < last.Kind {
			last = e
		}
	}
	return last
}
