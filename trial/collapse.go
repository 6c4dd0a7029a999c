package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// A collapse: the last stretch of decode lines makes less than a quarter of the best stretch, with at
// least half as many requests running, so it is not the end of a load; or the trial makes less than
// half of what a comparison trial made.
const (
	collapseShare = 0.25
	controlShare  = 0.5
)

// collapsed reports whether the throughput broke down, and against what: tok/s then and now.
func collapsed(f *Facts) (best, now float64, against string) {
	t := f.Log.Tempo
	if t.BestTokS > 0 && t.LateTokS < collapseShare*t.BestTokS && t.LateRunning >= t.BestRunning/2 {
		return t.BestTokS, t.LateTokS, fmt.Sprintf("while %.0f requests went on running", t.LateRunning)
	}
	if f.Context == nil || f.Context.Control == nil {
		return 0, 0, ""
	}
	control, own := figuresOf(f.Context.Control), figuresOf(f.Context.Workload)
	then, known := control.throughput()
	if !known {
		return 0, 0, ""
	}
	if now, known = own.throughput(); !known {
		now = f.Log.PeakGenTokS
		if peak, given := control.pick([]string{"peak_gen_tok_s"}, nil); given {
			then = peak
		} else if last, given := control.pick([]string{"last_gen_tok_s"}, nil); given {
			then, now = last, f.Log.LastGenTokS
		}
	}
	if now <= 0 || now >= controlShare*then {
		return 0, 0, ""
	}
	return then, now, "against the comparison trial"
}

// throughput is what a free object says about tokens per second.
func (f figures) throughput() (float64, bool) {
	return f.pick([]string{"output_tok_s", "gen_tok_s", "output_throughput", "tok_s", "tok_per_s", "tokens_per_s", "throughput"}, []string{"input", "prompt", "share"})
}

func collapse(f *Facts, best, now float64, against string) Verdict {
	v := Verdict{Outcome: Degraded, Phase: sglang.PhaseDecode, Cause: "throughput_collapse", Blames: BlameYes, Advice: []string{adviceRerun, adviceReport}}
	quote(&v, f.Last[kindDecode])
	v.Findings = []Finding{{"throughput_collapse", fmt.Sprintf("%.0f tok/s fell to %.0f", best, now)}}
	v.Text = fmt.Sprintf("the throughput fell from %.0f to %.0f tok/s %s; the number is real but something else dominates it: look at the GPUs' clocks and at the host, and measure again", best, now, against)
	if !f.hicache() {
		return v
	}
	v.Advice = []string{adviceNoHicache, adviceReusing}
	reason := "it pays only where evicted prefixes come again"
	if page := f.First[kindServerArgs].Values["page_size"]; page > 0 && page < 32 || strings.Contains(f.First[kindServerArgs].Text, "page_size=1,") {
		v.Advice = append(v.Advice, advicePageSize)
		reason += ", and copies pages of " + fmt.Sprintf("%.0f token(s)", max(1, page))
	}
	v.Text = fmt.Sprintf("the throughput fell from %.0f to %.0f tok/s %s, with the hierarchical cache on: %s; compare without it, or with a workload that reuses prefixes", best, now, against, reason)
	return v
}
