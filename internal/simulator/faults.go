package simulator

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Faults is what --sim-fault asks for. Times are simulated seconds after ready.
type Faults struct {
	LoadOOM, HostOOM             bool
	PrefillOOM, Hang, Silent     float64 // +Inf = never
	IgnoreTerm, Sticky, Ghost    bool
	SlowLoadS                    float64
	PrefillOOMSet, HangSet, Dies bool
}

func noFaults() Faults {
	return Faults{PrefillOOM: math.Inf(1), Hang: math.Inf(1), Silent: math.Inf(1)}
}

// ParseFaults reads a list such as "prefill_oom:30,ignore_term".
func ParseFaults(spec string) (Faults, error) {
	f := noFaults()
	for word := range strings.SplitSeq(spec, ",") {
		word = strings.TrimSpace(word)
		name, arg, has := strings.Cut(word, ":")
		after := 0.0
		if has {
			x, err := strconv.ParseFloat(strings.TrimSuffix(arg, "s"), 64)
			if err != nil || x < 0 {
				return f, fmt.Errorf("fault %q: %q is not a number of seconds", name, arg)
			}
			after = x
		}
		switch name {
		case "", "none", "empty_health":
		case "load_oom":
			f.LoadOOM = true
		case "host_oom":
			f.HostOOM = true
		case "prefill_oom":
			f.PrefillOOM = after
		case "hang":
			f.Hang = after
		case "silent_death":
			f.Silent = after
		case "ignore_term":
			f.IgnoreTerm = true
		case "sticky":
			f.Sticky = true
		case "ghost":
			f.Ghost = true
		case "slow_load":
			f.SlowLoadS = after
		default:
			return f, fmt.Errorf("unknown fault %q; known: load_oom prefill_oom[:S] host_oom hang[:S] silent_death[:S] ignore_term sticky ghost slow_load:S", name)
		}
	}
	return f, nil
}
