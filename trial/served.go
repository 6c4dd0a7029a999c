package trial

import (
	"fmt"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
)

// served: the server did what was asked of it as far as it goes.
func served(f *Facts) (Verdict, bool) {
	if !f.finished() && (f.Ending != EndUnknown || f.gone() || !f.ready()) {
		return Verdict{}, false
	}
	if v, bad := invalid(f); bad {
		return v, true
	}
	if v, bad := badLoad(f); bad {
		return v, true
	}
	if storm(f) {
		return retractionStorm(f), true
	}
	if best, now, against := collapsed(f); against != "" {
		return collapse(f, best, now, against), true
	}
	v := Verdict{Outcome: OK, Cause: causeNone, Blames: BlameYes, Advice: []string{adviceAccept}}
	if quote(&v, f.First[kindFiredUp]); furthest(f) == sglang.PhaseShutdown {
		v.Phase = servedPhase(f) // stopped when all was done
	}
	v.Text = okText(f)
	okFindings(f, &v)
	return v, true
}

func okText(f *Facts) string {
	best := Level{}
	for _, l := range f.Levels {
		if l.Report != nil && l.Report.Valid && (best.Report == nil || l.Report.OutputTokS > best.Report.OutputTokS) {
			best = l
		}
	}
	if best.Report != nil {
		text := fmt.Sprintf("served; best %.0f tok/s at %d clients, %.0f requests ran at once at most", best.Report.OutputTokS, best.Concurrency, f.Log.MaxRunning)
		if f.Ending == EndPruned {
			text += "; stopped early as hopeless"
		}
		return text
	}
	if f.Log.Decodes == 0 {
		return "the server became ready; it has served no long request yet"
	}
	text := fmt.Sprintf("the server became ready and served, at %.0f tok/s at best with %.0f requests at once", f.Log.PeakGenTokS, f.Log.MaxRunning)
	if m := f.Log.Memory; m.AvailableGiB > 0 {
		text += fmt.Sprintf("; %.2f GB of GPU memory stayed free", m.AvailableGiB)
	}
	return text
}

// okFindings adds what a reader of a good result should know.
func okFindings(f *Facts, v *Verdict) {
	asked := f.First[kindServerArgs].Values["requested_max_running_requests"]
	if own, ok := f.Flags.Float("max-running-requests"); ok {
		asked = own
	}
	if got := float64(f.Log.Memory.MaxRunning); asked > got && got > 0 {
		text := fmt.Sprintf("%.0f running requests were asked for, %.0f granted", asked, got)
		v.Findings = append(v.Findings, Finding{"concurrency_clamped", text})
		v.Text += "; " + text
		quote(v, f.First[kindCapacity])
		if f.stateSlots() {
			v.Advice = append(v.Advice, adviceMambaSlots)
		}
	}
	if m := f.Log.Memory; m.ContextLen > m.Tokens && m.Tokens > 0 {
		v.Findings = append(v.Findings, Finding{kindContextPool, fmt.Sprintf("one request of %d tokens would not fit the KV pool of %d", m.ContextLen, m.Tokens)})
	}
	if f.Log.Health503 > 0 {
		v.Findings = append(v.Findings, Finding{findingBusy503, fmt.Sprintf("/health failed %d times and the server went on", f.Log.Health503)})
	}
}

// stateSlots reports whether the number of running requests hangs on slots of a linear-attention state.
func (f *Facts) stateSlots() bool {
	if _, flag := f.Flags["max-mamba-cache-size"]; flag {
		return true
	}
	for _, e := range f.Log.Notes {
		if e.Kind == kindClamped && e.Values["mamba_slots"] > 0 {
			return true
		}
	}
	return false
}

// invalid: levels were measured and none of them can be used, or one of them measured a client that stood
// still: it may have been the best level, and the others' value would be taken for the configuration's.
func invalid(f *Facts) (Verdict, bool) {
	var first, hung *Level
	valid := false
	for i := range f.Levels {
		l := &f.Levels[i]
		switch {
		case l.Report == nil:
		case l.Report.Valid:
			valid = true
		case hung == nil && l.Report.Invalid == benchmark.InvalidClientHung:
			hung = l
		case first == nil:
			first = l
		}
	}
	if valid {
		first = nil
	}
	if hung != nil {
		first = hung
	}
	if first == nil {
		return Verdict{}, false
	}
	r := first.Report
	v := Verdict{Outcome: BenchInvalid, Phase: sglang.PhaseBench, Cause: r.Invalid, Blames: BlameNo, Advice: []string{adviceRerunBench}}
	v.Text = fmt.Sprintf("the replay at %d clients cannot be used (%s): %s", first.Concurrency, strings.ReplaceAll(r.Invalid, "_", " "), r.Advice)
	return v, true
}

// A storm: at least ten retractions, and one for every twenty decode lines (a line covers 40 steps).
const (
	stormEvents = 10
	stormLines  = 20
)

func storm(f *Facts) bool {
	return f.Log.Retracts >= stormEvents && f.Log.Retracts*stormLines >= f.Log.Decodes
}

func retractionStorm(f *Facts) Verdict {
	v := Verdict{Outcome: Degraded, Phase: sglang.PhaseDecode, Cause: "retraction_storm", Blames: BlameYes, Advice: []string{adviceConservative, adviceLowerRunning, adviceRaiseFraction}}
	quote(&v, f.First[kindRetract])
	v.Findings = []Finding{{"retraction_storm", "requests were taken in too eagerly and computed again"}}
	v.Text = fmt.Sprintf("the KV pool overflowed %d times and %d requests were computed again: the number is real but low (%.0f tok/s at best, %.0f at the end); "+
		"raise schedule-conservativeness, allow fewer running requests or give the pool more memory", f.Log.Retracts, f.Log.Retracted, f.Log.PeakGenTokS, f.Log.LastGenTokS)
	return v
}
