package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// Verdicts about flags: nothing was tested.

// badFlag: argparse refused a flag or a value, before any process was spawned.
func badFlag(_ *Facts, e sglang.Event) Verdict {
	msg := e.Words["msg"]
	v := rejected("bad_value", "")
	v.RejectedFlags = flagsIn(msg)
	flag := orFlag(v.RejectedFlags)
	switch {
	case strings.HasPrefix(msg, "unrecognized arguments"), strings.HasPrefix(msg, "ambiguous option"):
		v.Cause = "unknown_flag"
		v.Text = fmt.Sprintf("SGLang does not know %s: %s; check the name against --help of the installed version", flag, msg)
	case strings.Contains(msg, "not allowed with argument"):
		v.Cause = "unsupported_combination"
		v.Text = fmt.Sprintf("SGLang refused this combination of flags: %s; leave one of them out", msg)
	case strings.HasPrefix(msg, "the following arguments are required"):
		v.Text = fmt.Sprintf("SGLang needs a flag that was not given: %s; add it", flag)
	default:
		if len(v.RejectedFlags) > 1 {
			v.RejectedFlags = v.RejectedFlags[:1] // other spellings of the same flag, or words of the choices
		}
		v.Text = fmt.Sprintf("SGLang refused the value of %s: %s; check the values against --help of the installed version", flag, msg)
	}
	if strings.HasPrefix(msg, "ambiguous option") && len(v.RejectedFlags) > 1 {
		v.RejectedFlags = v.RejectedFlags[:1] // the others are what it could mean
	}
	return v
}

func rejected(cause, text string) Verdict {
	return Verdict{
		Outcome: ConfigRejected, Phase: sglang.PhaseLaunch, Cause: cause, Blames: BlameYes, Advice: []string{adviceFixFlag},
		Numbers: map[string]float64{}, Text: text,
	}
}

// flagsIn lists the flags an error of argparse names, as they were written; of several spellings of
// one flag ("--tp-size/--tp") the first.
func flagsIn(msg string) []string {
	var out []string
	for _, word := range strings.Fields(msg) {
		word = strings.Trim(word, ",:'\"()")
		word, _, _ = strings.Cut(word, "/")
		word, _, _ = strings.Cut(word, "=")
		if strings.HasPrefix(word, "-") && len(word) > 1 && (word[1] < '0' || word[1] > '9') && word != "--" {
			out = append(out, word)
		}
	}
	return out
}

func orFlag(flags []string) string {
	if len(flags) == 0 {
		return "a flag"
	}
	return flags[0]
}

// badConfigFile: a --config file that SGLang does not take.
func badConfigFile(_ *Facts, e sglang.Event) Verdict {
	v := rejected("bad_value", "SGLang refused the file of --config: "+e.Text+"; correct the file")
	if flag := e.Words["flag"]; flag != "" {
		v.Cause, v.RejectedFlags = "unknown_flag", []string{flag}
		v.Text = fmt.Sprintf("SGLang does not take %s in a --config file: %s; give it on the command line", flag, e.Text)
	}
	return v
}

// combination: SGLang refused flags that do not go together.
func combination(_ *Facts, e sglang.Event) Verdict {
	v := rejected("unsupported_combination", "SGLang refused this combination of flags: "+e.Text+"; change one of them")
	if e.Phase != sglang.PhaseLaunch {
		v.Phase = e.Phase
	}
	return v
}

// badValue: SGLang refused one value, itself and not by argparse.
func badValue(f *Facts, e sglang.Event) Verdict {
	v := combination(f, e)
	v.Cause = "bad_value"
	v.Text = "SGLang refused a value: " + e.Text + "; correct it"
	return v
}

func smallerHicache(f *Facts, _ sglang.Event) Verdict {
	v := rejected("hicache_smaller_than_device", "this version wants the host pool larger than the KV pool of the GPU; raise hicache-size or switch the hierarchical cache off")
	v.Phase, v.Advice = sglang.PhaseHostPool, []string{adviceRaiseHicache, adviceNoHicache}
	if m := f.Log.Memory; m.KVGiB > 0 {
		const decimal = 1.073741824 // hicache-size counts in 10^9 bytes, the pool's size is printed in GiB
		v.Text = fmt.Sprintf("this version wants the host pool larger than the KV pool, which is %.2f GB a rank; raise hicache-size above %.0f or switch the hierarchical cache off",
			m.KVGiB, m.KVGiB*decimal+1)
	}
	return v
}
