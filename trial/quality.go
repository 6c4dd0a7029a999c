package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// belowGate: the server was fast enough, and its answers were worse than allowed. The gate's result comes
// from outside; the log only says why.
func belowGate(f *Facts) (Verdict, bool) {
	if f.Context == nil || f.Context.Quality == nil {
		return Verdict{}, false
	}
	q := figuresOf(f.Context.Quality)
	base, hasBase := q.pick([]string{"baseline", "reference", "bf16"}, nil)
	got, hasGot := q.pick([]string{"measured", "score", "accuracy", "value", "candidate"}, []string{"baseline", "drop"})
	drop, hasDrop := q.pick([]string{"max_drop", "allowed", "tolerance", "margin"}, nil)
	least, hasLeast := q.pick([]string{"threshold", "minimum", "min_score", "gate"}, nil)
	passed, said := q.flags["passed"]
	if !said {
		passed, said = q.flags["pass"]
	}
	bad := said && !passed || q.says([]string{"rejected", "failed"})
	switch {
	case said && passed:
		return Verdict{}, false
	case hasBase && hasGot:
		bad = base-got > drop && (hasDrop || base > got)
	case hasLeast && hasGot:
		bad = got < least
	}
	if !bad {
		return Verdict{}, false
	}
	v := Verdict{Outcome: QualityRejected, Phase: sglang.PhaseBench, Cause: causeUnknown, Blames: BlameYes, Numbers: map[string]float64{}}
	if hasBase {
		v.Numbers["quality_baseline"] = base
	}
	if hasGot {
		v.Numbers["quality_measured"] = got
	}
	v.Text = "the answers were worse than the gate allows"
	if hasBase && hasGot {
		v.Text = fmt.Sprintf("the answers were worse: %.3g against %.3g of the baseline, a drop of %.3g where %.3g is allowed", got, base, base-got, drop)
	}
	lossyCause(f, &v)
	return v, true
}

// lossyCause names the lossy setting that the answers suffer from.
func lossyCause(f *Facts, v *Verdict) {
	args := f.First[kindServerArgs]
	dtype := strings.ToLower(f.Flags.Text("kv-cache-dtype") + " " + args.Words["kv_cache_dtype"] + " " + f.First[kindKVDtype].Words["dtype"] + " " + f.Log.Memory.KVDtype)
	unscaled, warned := f.First[kindFP8Unscaled]
	_, loaded := f.First[kindScalesLoaded]
	quant := f.Flags.Text("quantization") + args.Words["quantization"]
	switch {
	case warned || strings.Contains(dtype, "fp8") || strings.Contains(dtype, "float8"):
		v.Findings = []Finding{{"fp8_kv_cache", "the KV cache was kept in fp8"}}
		v.Cause, v.Advice = "fp8_kv_unscaled", []string{adviceBF16, adviceScales}
		v.Text += "; the KV cache ran in fp8 without scales of the checkpoint (scale 1.0): go back to bf16, or provide calibrated scales"
		if loaded && !warned {
			v.Cause, v.Advice = "lossy_kv", []string{adviceBF16}
			v.Text = strings.Replace(v.Text, "without scales of the checkpoint (scale 1.0): go back to bf16, or provide calibrated scales", "with scales: go back to bf16", 1)
		}
		for _, e := range []sglang.Event{unscaled, f.First[kindKVDtype], f.First["kv_allocated"], args} {
			if v.Line == 0 {
				quote(v, e)
			}
		}
	case strings.Contains(dtype, "fp4"):
		v.Cause, v.Advice = "lossy_kv", []string{adviceBF16}
		v.Text += "; the KV cache ran in fp4: go back to bf16"
		quote(v, f.First[kindKVDtype])
	case quant != "":
		v.Cause, v.Advice = "lossy_weights", []string{adviceFixFlag}
		v.Text += "; the weights were quantized (" + quant + "): go back to the checkpoint's own precision"
		quote(v, args)
	default:
		v.Advice = []string{adviceRerun}
		v.Text += "; nothing in the log explains it: run the gate again"
		quote(v, args)
	}
}
