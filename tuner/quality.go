package tuner

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// RuleQuality is the rule that keeps settings out that may change answers.
const RuleQuality = "quality"

// Lossy says why a knob value makes answers worse or may, "" when it does not (design: "Quality").
// What is lossy is sglang.Lossy's business.
func Lossy(knob string, value any) string {
	text := sglang.FormatValue(value)
	switch {
	case !sglang.Lossy(knob, value):
		return ""
	case knob == kvDtype:
		return fmt.Sprintf("KV cache type %s is below bf16 and answers may get worse", text)
	case strings.HasPrefix(knob, "speculative-accept-threshold"):
		return fmt.Sprintf("an acceptance threshold of %s takes draft tokens the model would not give", text)
	}
	return fmt.Sprintf("%s %s may make answers worse", knob, text)
}

// keptOut says why the rule bf16-only keeps a value out of the search, "" when it does not: what
// is lossy, and a KV cache type that is only known once a server has started.
func keptOut(knob string, value any) string {
	if knob == kvDtype && value == "auto" {
		return "auto may resolve below bf16 and answers may get worse"
	}
	return Lossy(knob, value)
}
