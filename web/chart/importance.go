package chart

import (
	"fmt"

	"sgtune/sglang"
	"sgtune/tuner"
)

func importanceSentence(all []tuner.Importance) string {
	if len(all) == 0 {
		return "The models cannot tell yet what matters."
	}
	i := all[0]
	if i.Low <= 0 {
		return fmt.Sprintf("No knob is proven to matter; %s may, up to %s between its worst and its best value.", i.Knob, share(i.High))
	}
	sure := 0
	for _, k := range all {
		if k.Low > 0 {
			sure++
		}
	}
	return fmt.Sprintf("%s matters most: %s between its worst and its best value (80%% range %s to %s); %d of %d knobs are proven to matter.",
		i.Knob, share(i.Effect), share(i.Low), share(i.High), sure, len(all))
}

// share spells a relative size.
func share(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func importanceTable(all []tuner.Importance, most int) Table {
	t := Table{most: most, Caption: "Knobs by what they matter around the best configuration", Head: []string{"Knob", "Effect", "80% range", "Best value"}}
	for _, i := range all {
		t.text(i.Knob, share(i.Effect), share(i.Low)+" to "+share(i.High), sglang.FormatValue(i.Best))
	}
	return t
}
