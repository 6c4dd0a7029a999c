package tuner

import (
	"math"
	"slices"

	"sgtune/sglang"
	"sgtune/trial"
)

// HostFacts is what a host says about itself before anything is launched: plain data, so that this
// package does not know how hosts are asked. Negative figures are unknown.
type HostFacts struct {
	Name           string // "local", "simulated kimi-8x96"
	MemTotal       int64  // bytes
	MemAvailable   int64  // bytes
	CgroupHeadroom int64  // bytes left under the strictest limit, negative without one
	ContainerLimit int64  // bytes that the study's container may take, 0 = no limit
	GPUs           []GPUFact
	GPUNote        string   // why there are no GPU facts
	GPUFault       string   // why no trial can use the GPUs and what to do (MIG on, broken memory, a lost GPU), "" = they are fit
	PortHolders    []string // who listens on the study's fixed port: "pid 4711 (python3)"
	Leftovers      int      // processes of earlier trials that still run
	Lease          string   // who holds the host, "" = nobody
	BootID         string   // of the running kernel, "" unknown
	Driver         string   // version of the NVIDIA driver, "" unknown
	Kernel         string   // release of the kernel, "" unknown
	Residents      []string // servers that sgtune left running there, each with how to stop it
}

// GPUFact is one GPU's memory and who holds it.
type GPUFact struct {
	Index       int
	Name        string
	UUID        string   // "" unknown
	Total, Used int64    // bytes
	Holders     []string // "pid 4711 (python3) 71.2 GB"
}

// Available is what rule 2 of the host RAM starts from: the smallest of MemAvailable, the cgroup's headroom and the
// container's limit, bytes; negative when none is known.
func (f HostFacts) Available() float64 {
	left := f.left()
	if limit := float64(f.ContainerLimit); limit > 0 && (left < 0 || limit < left) {
		return limit
	}
	return left
}

func (f HostFacts) left() float64 {
	switch {
	case f.CgroupHeadroom < 0 && f.MemAvailable < 0:
		return -1
	case f.CgroupHeadroom < 0:
		return float64(f.MemAvailable)
	case f.MemAvailable < 0:
		return float64(f.CgroupHeadroom)
	}
	return float64(min(f.MemAvailable, f.CgroupHeadroom))
}

// smallestGPU is the memory of the smallest GPU, GiB; 0 when none was read.
func (f HostFacts) smallestGPU() float64 {
	least := int64(0)
	for _, g := range f.GPUs {
		if g.Total > 0 && (least == 0 || g.Total < least) {
			least = g.Total
		}
	}
	return float64(least) / bytesPerGiB
}

// gpusUnread reports whether the GPUs could not be read.
func (f HostFacts) gpusUnread() bool { return len(f.GPUs) == 0 && f.GPUNote != "" }

// Admission decides whether a configuration may be launched now: the quality rule, what SGLang does
// not take together, both host RAM rules, the memory arithmetic, what was learnt, no repeat. It is built anew for every proposal
// from history and the host's facts, and asks nobody.
type Admission struct {
	constraints []Constraint
}

// NewAdmission builds the admission of a study. line is the learnt memory line (Frontier.Cautious
// or Frontier.Check), nil for none. The facts must be those of an idle host: memory that a running
// server of ours holds would be counted twice.
func NewAdmission(s *Study, history []*trial.Trial, facts HostFacts, line func(sglang.Config) error) *Admission {
	a := rulesOnly(s, history, facts)
	if line != nil {
		a.constraints = append(a.constraints, Rule(line))
	}
	a.constraints = append(a.constraints, NewRepeat(history))
	return a
}

// rulesOnly are the rules that hold for every launch, what was launched or learnt left out.
func rulesOnly(s *Study, history []*trial.Trial, facts HostFacts) *Admission {
	return &Admission{constraints: []Constraint{
		Quality{Fixed: sglang.Merge(s.Server.Flags, s.Passed)},
		newCombination(s),
		hostRAM(s, history, facts, OwnRAM(history)),
		Memory{Predict: Predictor(s, history)},
	}}
}

// hostRAM is the rule for host pools on a host as it is now; own is what a server takes beside them, bytes,
// negative = unknown.
func hostRAM(s *Study, history []*trial.Trial, facts HostFacts, own float64) HostRAM {
	predict := Predictor(s, history)
	return HostRAM{
		Fixed: sglang.Merge(s.Server.Flags, s.Passed), Budget: s.Host.RAMBudgetBytes, PerRank: s.Host.RAMPerRank,
		Available: facts.Available(), Own: own,
		Pool: func(c sglang.Config) float64 {
			p, _ := predict(c)
			return p.HostPoolGBPerRank * sglang.GB
		},
	}
}

// Admit returns nil when c may be launched, else the *Infeasible of the first rule against it.
func (a *Admission) Admit(c sglang.Config) error {
	for _, rule := range a.constraints {
		if err := rule.Check(c); err != nil {
			return err
		}
	}
	return nil
}

// OwnRAM is the most host memory a server took for itself in the launches so far (the largest fall
// of MemAvailable before its host pool), bytes; negative before any launch has shown it. A reading
// that has the host pool in it, because the server's log came late on a busy machine, does not count:
// one such figure would keep all host pools out for the rest of the night.
func OwnRAM(history []*trial.Trial) float64 {
	return ownRAM(history, func(*trial.Trial) bool { return true })
}

// ownRAM is OwnRAM of some of the launches; all of them tell which reading is off.
func ownRAM(history []*trial.Trial, of func(*trial.Trial) bool) float64 {
	usual := usualRAM(history)
	own := -1.0
	for _, t := range history {
		if !of(t) {
			continue
		}
		if sum, pools := accounted(t); sum > 0 && usual > 0 && pools > 0 && sum-usual > pools/2 {
			continue
		}
		if t.OwnRAM > 0 {
			own = math.Max(own, float64(t.OwnRAM))
		}
	}
	return own
}

// accounted adds up what was left, what the server took and its host pools: about what was available
// before the launch. Bytes; sum is 0 where a figure is missing.
func accounted(t *trial.Trial) (sum, pools float64) {
	pools = float64(max(1, t.Memory.TP)) * t.Memory.HostPoolGB * sglang.GB
	if t.MinRAM <= 0 || t.OwnRAM <= 0 {
		return 0, pools
	}
	return float64(t.MinRAM) + float64(t.OwnRAM) + pools, pools
}

// usualRAM is the median of what the launches account for, 0 before three of them do.
func usualRAM(history []*trial.Trial) float64 {
	var sums []float64
	for _, t := range history {
		if sum, _ := accounted(t); sum > 0 {
			sums = append(sums, sum)
		}
	}
	if len(sums) < 3 {
		return 0
	}
	slices.Sort(sums)
	return sums[len(sums)/2]
}

// Predictor is the memory arithmetic calibrated by the newest start-up log of history that shows
// its KV pool; before there is one it knows nothing.
func Predictor(s *Study, history []*trial.Trial) func(sglang.Config) (sglang.Prediction, bool) {
	fixed := sglang.Merge(s.Server.Flags, s.Passed)
	for i := len(history) - 1; i >= 0; i-- {
		calibration, err := sglang.Calibrate(history[i].Memory)
		if err != nil {
			continue // this launch did not reach its KV pool
		}
		return func(c sglang.Config) (sglang.Prediction, bool) {
			return calibration.Predict(sglang.Merge(fixed, c)), true
		}
	}
	return func(sglang.Config) (sglang.Prediction, bool) { return sglang.Prediction{}, false }
}
