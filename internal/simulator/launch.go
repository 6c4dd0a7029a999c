package simulator

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"slices"
	"strings"

	"sgtune/sglang"
)

// defaultRAM is MemAvailable of the founding host before a launch.
const defaultRAM = 440e9

// hostReserve is what SGLang keeps back of host memory: 10 GiB.
const hostReserve = 10 * gib

// launch is one parsed and sized launch.
type launch struct {
	d    *dialect
	args *Args
	p    Profile
	s    Settings
	b    Budget
}

// newLaunch sizes a configuration as the command line would.
func newLaunch(cfg sglang.Config, seed uint64, opts Options) (*launch, error) {
	p, err := Lookup(cmp.Or(opts.Profile, kimi8x96.Name))
	if err != nil {
		return nil, err
	}
	c := sglang.Config{"tp-size": float64(p.Ranks)}
	argv := append([]string{"--model-path", "model"}, sglang.FlagWords(sglang.Merge(c, cfg))...)
	a, err := ParseArgs(argv)
	if err != nil {
		return nil, fmt.Errorf("run configuration %s: %w", cfg.Key(), err)
	}
	a.sim.Profile = p.Name
	a.sim.StartupS = opts.StartupS
	a.sim.Seed = seed
	return a.launch()
}

// launch sizes parsed arguments; the error is a refused combination (RefusedError) or an unknown profile.
func (a *Args) launch() (*launch, error) {
	p, err := Lookup(a.sim.Profile)
	if err != nil {
		return nil, err
	}
	if a.sim.StartupS == 0 {
		a.sim.StartupS = p.StartupS
	}
	l := &launch{d: a.d, args: a, p: p, s: a.settings(&p)}
	if err := l.s.check(&p); err != nil {
		return nil, err
	}
	l.b = l.d.plan(&l.p, &l.s, a.sim.Seed)
	return l, nil
}

// RefusedError is a combination of flags that SGLang refuses with a traceback before it loads anything.
type RefusedError struct{ Kind, Message string }

// Error is the traceback's last line.
func (e *RefusedError) Error() string { return e.Kind + ": " + e.Message }

// check makes SGLang's cross-checks of flags the simulator knows.
func (s *Settings) check(p *Profile) error {
	refuse := func(kind, format string, a ...any) error {
		return &RefusedError{kind, fmt.Sprintf(format, a...)}
	}
	switch {
	case s.Hicache && s.DisableRadix:
		return refuse("ValueError", "The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be used at the same time. Please use only one of them.")
	case s.Chunk > 0 && s.Chunk%s.PageSize != 0:
		return refuse("AssertionError", "chunked_prefill_size must be divisible by page_size")
	case s.Fraction < 0 || s.Fraction >= 1:
		return refuse("ValueError", "mem_fraction_static must be in (0, 1), got %s", pyFloat(s.Fraction))
	case s.Conservativeness < 0:
		return refuse("AssertionError", "schedule_conservativeness must be non-negative")
	case s.TP != p.Ranks:
		return refuse("ValueError", "simulated profile %s is measured at --tp-size %d, not %d; pass --tp-size %d", p.Name, p.Ranks, s.TP, p.Ranks)
	}
	return nil
}

// hostRefusal is SGLang's own check of the host pool. From 0.5.20 on a rank may take its share of what is
// available less 10 GiB; before, each rank compares its request with the whole host's. Up to 0.5.12 the pool
// must be larger than the device's. 0.4.9 and older print a free figure that still contains the 10 GiB.
func (d *dialect) hostRefusal(s *Settings, b *Budget, available float64) *Failure {
	if !s.hicache() {
		return nil
	}
	if d.release < r0523 && b.HostTokens <= b.Tokens {
		return &Failure{Phase: sglang.PhaseHostPool, Cause: "hicache_smaller_than_device", Rank: 0, Text: smallHost}
	}
	share := available - hostReserve
	if d.release >= r0523 {
		share /= float64(s.TP)
	}
	want := float64(b.HostTokens) * float64(b.CellBytes)
	if want <= share {
		return nil
	}
	if d.release <= r049 {
		share = available
	}
	return &Failure{Phase: sglang.PhaseHostPool, Cause: "hicache_check_refused", Rank: 0, Text: fmt.Sprintf(
		"ValueError: Not enough host memory available. Requesting %.2f GB but only have %.2f GB free. Please reduce the size of the hierarchical cache.",
		want/1e9, math.Max(share, 0)/1e9)}
}

// observation is what the start-up log will say, two decimals.
func (l *launch) observation() sglang.Observation {
	b := &l.b
	r := func(x float64) float64 { return math.Round(x*100) / 100 }
	return sglang.Observation{
		Fraction: b.Fraction, TP: l.s.TP, KVDtype: b.kvDtype, PageSize: l.s.PageSize, ChunkedPrefill: b.Chunk,
		MaxRunning: b.MaxRunning, ContextLen: b.contextLen,
		BeforeLoadGiB: r(b.BeforeLoadGiB), AfterLoadGiB: r(b.AfterLoadGiB), WeightsGiB: r(b.BeforeLoadGiB - b.AfterLoadGiB),
		KVGiB: r(b.KVGiB), AfterPoolGiB: r(b.AfterPoolGiB), GraphGiB: r(b.GraphGiB), AfterGraphGiB: r(b.AfterGraphGiB),
		AvailableGiB: r(b.AfterGraphGiB), Tokens: b.Tokens, HostPoolTokens: b.HostTokens, HostPoolGB: r(b.HostGB),
	}
}

// availableRAM is MemAvailable before this launch: the environment's figure, or the default, less what other
// living simulated servers claim.
func availableRAM(c *claims) float64 {
	total := defaultRAM
	if v, ok := numberEnv("SGTUNE_SIM_RAM_AVAILABLE"); ok {
		total = v
	}
	return total - c.othersRAM()
}

func numberEnv(name string) (float64, bool) {
	var x float64
	if _, err := fmt.Sscanf(os.Getenv(name), "%g", &x); err != nil {
		return 0, false
	}
	return x, true
}

// sortedRanks is every rank in the order their lines appear in the log: shuffled, but the same for a seed.
func (l *launch) sortedRanks(salt uint64) []int {
	ranks := make([]int, l.s.TP)
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortFunc(ranks, func(a, b int) int {
		x, y := mix(l.s.Sim.Seed^salt<<8^uint64(a+1)), mix(l.s.Sim.Seed^salt<<8^uint64(b+1))
		if x < y {
			return -1
		}
		return 1
	})
	return ranks
}

// launchSeed is the seed of one launch's noise. The machine (rank spread) is the same in every launch of a
// seed; its noise is not: where a trial's marker says which launch this is (STUDY.NUMBER.CREATED), study and
// number are mixed in, so that a repeated night is the same night and no two launches are copies.
func launchSeed(seed uint64) uint64 {
	marker := os.Getenv("SGTUNE_TRIAL")
	if marker == "" {
		return seed
	}
	if i := strings.LastIndexByte(marker, '.'); i > 0 {
		marker = marker[:i]
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(marker))
	return mix(seed ^ h.Sum64())
}
