package trial

import (
	"time"

	"sgtune/benchmark"
)

// Load is how a trial is measured; the same for every trial of a study.
type Load struct {
	Workload       *benchmark.Workload
	Levels         []int         // all concurrencies of the study, ascending; a trial's Plan picks from them
	Window         time.Duration // length of a window
	Cap            time.Duration // a level measures at most this long; its warm-up is at most as long again
	Warmup         time.Duration
	SLO            benchmark.SLO // of a request, for goodput
	Target         float64       // half-width of the 95% interval of a level
	Canary         time.Duration // 0 = none
	Fill           time.Duration // cap of the fill, 0 = none
	FillHostPoolGB float64       // biggest host pool in the space, GB a rank; 0 = no hicache knob in the space (no fill)
	Salt           string        // same for every trial of a study
}
