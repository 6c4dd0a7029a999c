package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// The rules about whoever watched the server: it was ready or busy and was called dead, or there is no
// way to it.

const findingBusy503 = "health_503_while_progressing"

// probed counts the answers of the health check that were 200 and those that were not: what the probes
// saw, else what the log's own access lines say.
func (f *Facts) probed() (ok, failed int) {
	for _, p := range f.Probes {
		switch {
		case !strings.Contains(p.Path, "health") && p.Path != "" && p.Path != "/ready":
		case p.Status == 200:
			ok += p.Count
		default:
			failed += p.Count
		}
	}
	if len(f.Probes) == 0 {
		return f.Log.Health200, f.Log.Health503
	}
	return ok, failed
}

// disagreement is what another monitor made of a living server, "" when none is known.
func (f *Facts) disagreement() string {
	for _, p := range f.Probes {
		if p.Refusal != "" && !approves(p.Refusal) {
			return p.Refusal
		}
	}
	if f.blamedByMonitor() {
		return f.Reason
	}
	return ""
}

// approves reports whether a monitor's words say that the server is well.
func approves(words string) bool {
	switch strings.ToLower(strings.Trim(words, `"`)) {
	case "ok", "ready", "healthy", "up", "alive", "true", "passed":
		return true
	}
	return false
}

// blamedByMonitor reports whether whoever stopped the server took it for dead or late.
func (f *Facts) blamedByMonitor() bool {
	if f.Ending != EndOutside {
		return false
	}
	who := strings.ToLower(f.Reason)
	for _, sign := range []string{"health", "monitor", "probe", "not ready", "ready_timeout", "ready timeout", "readiness", "liveness", "watchdog of the tuner", "considered dead", "thought dead", "timed out waiting", "timeout waiting"} {
		if strings.Contains(who, sign) {
			return true
		}
	}
	return false
}

// wrongMonitor: a ready, busy or starting server was called dead.
func wrongMonitor(f *Facts) (Verdict, bool) {
	blamed := f.disagreement()
	if !f.lives() && blamed == "" || f.Ending != EndUnknown && f.Ending != EndOutside && f.Ending != EndDone && f.Ending != EndPruned {
		return Verdict{}, false
	}
	ok, failed := f.probed()
	v := Verdict{Outcome: MonitorWrong, Phase: furthest(f), Blames: BlameNo, Advice: []string{adviceFixProbe, adviceRerun}}
	if v.Phase == sglang.PhaseShutdown {
		v.Phase = servedPhase(f)
	}
	switch {
	case !f.ready():
		return stillStarting(f, v, blamed, failed)
	case f.finished() && blamed == "":
		return v, false
	case blamed != "" && ok > 0 && ok >= failed:
		emptyBody(f, &v, ok, blamed)
	case failed > 0 && (failed > ok || blamed != "") && progressed(f):
		busy(f, &v, failed)
	default:
		return v, false
	}
	return v, true
}

// servedPhase is the phase of a server that was being shut down before.
func servedPhase(f *Facts) sglang.Phase {
	switch {
	case f.Log.LastBatch.Kind == "" || !f.ready():
		return sglang.PhaseReady
	case f.Log.Decodes > 0:
		return sglang.PhaseDecode
	}
	return sglang.PhasePrefill
}

// emptyBody: a 200 was read as something else.
func emptyBody(f *Facts, v *Verdict, ok int, blamed string) {
	v.Cause = "health_body_empty"
	quote(v, f.First[kindFiredUp])
	v.Text = fmt.Sprintf("the server was ready: the health check answered 200 %d times (its body is always empty), and was called dead (%s); judge by the status alone, and keep the server", ok, blamed)
}

// busy: the health check failed while batches went on.
func busy(f *Facts, v *Verdict, failed int) {
	v.Cause, v.Phase, v.Advice = "health_busy_timeout", sglang.PhaseDecode, []string{adviceFixProbe}
	if f.Log.Prefills > 0 { // decode steps are short: what holds up the answers is a prefill
		v.Phase = sglang.PhasePrefill
	}
	quote(v, f.First[kindHealthFailed])
	if v.Line == 0 {
		quote(v, firstRefusal(f))
	}
	v.Numbers = copyNumbers(f.First[kindHealthFailed].Values)
	v.Findings = []Finding{{findingBusy503, "batches went on while the health check failed"}}
	v.Text = fmt.Sprintf("the health check failed %d times while batches went on: the server was busy, not dead; wait longer for /health (SGLANG_HEALTH_CHECK_TIMEOUT), and believe the log", failed)
}

// firstRefusal is a line of the log that shows a health check without 200: only the last access line is at
// hand beside the first.
func firstRefusal(f *Facts) sglang.Event {
	for _, e := range []sglang.Event{f.First[kindHealthAccess], f.Last[kindHealthAccess]} {
		if e.Values["status"] != 200 {
			return e
		}
	}
	return f.Log.LastBatch
}

// progressed reports whether batches went on when the health check failed.
func progressed(f *Facts) bool {
	last := f.Log.LastBatch
	if last.Line <= f.First[kindFiredUp].Line || max(f.Silent, impliedSilence(f)) >= stalled {
		return false
	}
	failure, seen := f.First[kindHealthFailed]
	return !seen || last.Line > failure.Line
}

// stillStarting: the server had its socket and was at its own first request, or was not even there yet.
func stillStarting(f *Facts, v Verdict, blamed string, failed int) (Verdict, bool) {
	listening := !sglang.PhaseHTTPStart.After(v.Phase)
	refused503 := false
	for _, p := range f.Probes {
		refused503 = refused503 || p.Status == 503
	}
	refused503 = refused503 || f.Log.Health503 > 0
	if f.Silent >= stalled || blamed == "" && (!listening || !refused503) || failed == 0 && blamed == "" {
		return v, false
	}
	v.Cause, v.Advice = "health_starting", []string{adviceFixProbe, adviceReadyTimeout}
	if e := f.Last[kindHealthAccess]; e.Line > 0 && e.Values["status"] != 200 {
		quote(&v, e)
	} else if e := f.Last[kindUvicorn]; e.Line > 0 {
		quote(&v, e)
	} else {
		quote(&v, lastEvent(f))
	}
	v.Text = fmt.Sprintf("the server was still starting (%s) when it was called dead: /health answers 503 until the server's own first request is done; wait for the ready line or for 200", v.Phase)
	return v, true
}

// noRoute: the server is ready by its own log, and the probes never reached it.
func noRoute(f *Facts) (Verdict, bool) {
	if !f.Log.Ready || f.Context == nil || !f.lives() && !f.blamedByMonitor() || f.Ending != EndUnknown && f.Ending != EndOutside {
		return Verdict{}, false
	}
	var near, far int // answers of the server itself; probes that never arrived
	proxied := 0
	for _, p := range f.Probes {
		switch {
		case p.Status == 0:
			far += p.Count
		case p.Status == 502 || p.Status == 504 || p.Status == 407 || p.Body > 0 && p.Status != 200:
			proxied += p.Count
		case remote(p.From) || p.Status != 200:
		default:
			near += p.Count
		}
	}
	heard := f.Log.Health503 > 0 || f.Log.Health200 > 0 && near == 0 && !remoteProbes(f)
	if far+proxied == 0 || heard {
		return Verdict{}, false
	}
	if near > 0 && !remoteProbes(f) || proxied == 0 && onlyTimeouts(f) && !remoteProbes(f) && f.Context.Executor == nil {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Unreachable, Phase: furthest(f), Cause: "tunnel_down", Blames: BlameNo, Advice: []string{adviceFixRoute}}
	if proxied > 0 && f.proxySet() {
		v = env("http_proxy", []string{adviceBypassProxy, adviceRerun}, "the probes went through an HTTP proxy and never reached the server, which was ready; set no_proxy for its address")
		v.Phase = furthest(f)
		quote(&v, f.First[kindFiredUp])
		return v, true
	}
	quote(&v, f.First[kindFiredUp])
	up := f.First[kindUvicorn]
	where := up.Words["url"]
	if onLoopback(f, where) && !localOnly(f) {
		v.Cause = "bound_to_loopback"
		quote(&v, up)
		v.Text = fmt.Sprintf("the server is ready but listens on %s only, which cannot be reached from another machine or container: start it with --host 0.0.0.0 or go through a tunnel", orWord(where, "loopback"))
		return v, true
	}
	v.Text = fmt.Sprintf("the server is ready and listens on %s, and %d probes never reached it: repair the tunnel, the port mapping or the firewall, and keep the server", orWord(where, "its port"), far+proxied)
	return v, true
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}

// onLoopback reports whether the server listens on its own host only.
func onLoopback(f *Facts, url string) bool {
	host := f.First[kindServerArgs].Words["host"]
	if given, ok := f.Flags["host"].(string); ok {
		host = given
	}
	for _, name := range []string{"127.0.0.1", "localhost", "[::1]"} {
		if strings.Contains(url, "//"+name+":") || url == "" && host == strings.Trim(name, "[]") {
			return true
		}
	}
	return false
}

// localOnly reports whether the probes are known to run where the server runs, or to go through a tunnel
// that ends there: then loopback is no hindrance.
func localOnly(f *Facts) bool {
	words := strings.ToLower(said(f.Context.Executor))
	for _, p := range f.Probes {
		words += " " + strings.ToLower(p.From)
	}
	return strings.Contains(words, "tunnel") || strings.Contains(words, "forward")
}

// remote reports whether a probe ran on another machine, as far as its words say.
func remote(from string) bool {
	from = strings.ToLower(from)
	if from == "" {
		return false
	}
	for _, sign := range []string{"same host", "server host", "localhost", "loopback", "127.0.0.1", "inside", "on the host", "gpu host", "itself"} {
		if strings.Contains(from, sign) {
			return false
		}
	}
	return true
}

// onlyTimeouts reports whether no probe was refused: a server that hangs or is busy times out too.
func onlyTimeouts(f *Facts) bool {
	for _, p := range f.Probes {
		if p.Status == 0 && p.Word != "timeout" {
			return false
		}
	}
	return true
}

func remoteProbes(f *Facts) bool {
	for _, p := range f.Probes {
		if p.Status == 0 && remote(p.From) {
			return true
		}
	}
	return false
}

// proxySet reports whether an HTTP proxy was in the environment.
func (f *Facts) proxySet() bool {
	for name, value := range f.Context.Env {
		if lower := strings.ToLower(name); (lower == "http_proxy" || lower == "all_proxy") && said(value) != "" {
			return true
		}
	}
	return false
}
