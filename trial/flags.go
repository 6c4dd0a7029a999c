package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// badFlag: argparse refused a flag or a value, before any process was spawned.
func badFlag(_ *Facts, e sglang.Event) Verdict {
	msg := e.Words["msg"]
	v := Verdict{Outcome: ConfigRejected, Phase: sglang.PhaseLaunch, Cause: "bad_value", Blames: BlameYes, Advice: []string{adviceFixFlag}}
	switch {
	case strings.HasPrefix(msg, "unrecognized arguments"), strings.HasPrefix(msg, "ambiguous option"):
		v.Cause = "unknown_flag"
		v.Text = fmt.Sprintf("SGLang does not know %s: %s; check the name against --help of the installed version", orFlag(e.Words["flag"]), msg)
	default:
		v.Text = fmt.Sprintf("SGLang refused the value of %s: %s", orFlag(e.Words["flag"]), msg)
	}
	return v
}

func orFlag(flag string) string {
	if flag == "" {
		return "a flag"
	}
	return flag
}

// combination: SGLang refused flags that do not go together.
func combination(_ *Facts, e sglang.Event) Verdict {
	return Verdict{
		Outcome: ConfigRejected, Phase: sglang.PhaseLaunch, Cause: "unsupported_combination", Blames: BlameYes,
		Advice: []string{adviceFixFlag}, Text: "SGLang refused this combination of flags: " + e.Text,
	}
}
