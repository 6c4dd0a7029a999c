package tuner

import (
	"fmt"

	"sgtune/sglang"
	"sgtune/trial"
)

// Rules of admission, as events and messages name them.
const (
	RuleHostRAM    = "host RAM"
	RuleHostTokens = "host tokens"
	RuleKVTokens   = "KV tokens"
	RuleRepeat     = "no repeat"
)

// Constraint says whether a configuration may be launched. A refusal is an *Infeasible.
type Constraint interface {
	Check(c sglang.Config) error
}

// Infeasible is why a configuration is not admitted: which limit and by how much.
type Infeasible struct {
	Rule        string  // "host RAM", "quality", ...
	Text        string  // one sentence with the numbers
	Limit, Want float64 // the limit and what the configuration wants, in Unit; 0 where the rule has no numbers
	Unit        string  // "bytes", "tokens", "GiB", ""
}

// Error names the rule and says why.
func (e *Infeasible) Error() string { return e.Rule + ": " + e.Text }

// Ranks is the number of GPU processes a configuration (fixed flags merged with knobs) starts on
// its host: tp x pp, times dp where the copies are plain replicas, divided by the nodes.
func Ranks(c sglang.Config) int {
	factor := func(name string) int {
		if v, ok := c.Float(name); ok && v >= 1 && v <= 4096 {
			return int(v)
		}
		return 1
	}
	n := factor("tp-size") * factor("pp-size")
	if on, _ := c["enable-dp-attention"].(bool); !on {
		n *= factor("dp-size")
	}
	return max(1, n/factor("nnodes"))
}

// HostRAM refuses host pools that the host cannot hold, by both rules of the design:
//
//	(1) pools <= ram_budget
//	(2) pools + server's own <= min(MemAvailable before launch, cgroup headroom) - 10.7 GB
//
// where pools = ranks x hicache-size x 1e9. SGLang's own check compares each rank alone with the
// whole host in older versions, and the host dies.
type HostRAM struct {
	Fixed     sglang.Config               // flags laid under every configuration
	Budget    float64                     // rule 1, bytes; 0 = no rule 1
	PerRank   float64                     // rule 1 as written per rank, bytes; 0 = not per rank
	Available float64                     // rule 2: min(MemAvailable, headroom), bytes; negative = unknown, no rule 2
	Own       float64                     // server's own, bytes, as learnt; negative = 2 GB a rank
	Pool      func(sglang.Config) float64 // bytes a rank of a pool given by ratio; nil or 0 = unknown
}

// Check applies rule 1, then rule 2. A configuration without a host pool always passes: its RAM
// is what the baseline needs too.
func (r HostRAM) Check(c sglang.Config) error {
	all := sglang.Merge(r.Fixed, c)
	ranks := float64(Ranks(all))
	perRank, what := r.pool(all)
	if perRank <= 0 {
		return nil
	}
	pools := ranks * perRank
	sum := fmt.Sprintf("%s takes %.0f ranks x %s = %s of host pools", what, ranks, FormatSize(perRank), FormatSize(pools))
	budget := r.budget(ranks)
	if budget > 0 && pools > budget {
		return &Infeasible{
			Rule: RuleHostRAM, Limit: budget, Want: pools, Unit: "bytes",
			Text: fmt.Sprintf("%s, more than ram_budget allows: %s", sum, FormatSize(budget)),
		}
	}
	if r.Available < 0 {
		return nil
	}
	own := r.own(ranks)
	limit := r.Available - sglang.HostReserveBytes
	if pools+own > limit {
		return &Infeasible{
			Rule: RuleHostRAM, Limit: limit, Want: pools + own, Unit: "bytes",
			Text: fmt.Sprintf("%s, with the server's own %s it needs %s, and %s available - %s reserve leave %s",
				sum, FormatSize(own), FormatSize(pools+own), FormatSize(r.Available), FormatSize(sglang.HostReserveBytes), FormatSize(limit)),
		}
	}
	return nil
}

// budget is rule 1's limit in bytes, 0 without the rule.
func (r HostRAM) budget(ranks float64) float64 {
	if r.PerRank > 0 {
		return r.PerRank * ranks
	}
	return r.Budget
}

// own is what the server takes beside its pools, bytes.
func (r HostRAM) own(ranks float64) float64 {
	if r.Own < 0 {
		return sglang.HostOwnBytesPerRank * ranks
	}
	return r.Own
}

// most is the largest sum of host pools that both rules let through, bytes; 0 when none limits it.
// all is a whole configuration.
func (r HostRAM) most(all sglang.Config) float64 {
	ranks := float64(Ranks(all))
	most := r.budget(ranks)
	if r.Available >= 0 {
		free := max(1, r.Available-sglang.HostReserveBytes-r.own(ranks))
		if most <= 0 || free < most {
			most = free
		}
	}
	return most
}

// pool is the host pool of one rank in bytes, and its flag in words.
func (r HostRAM) pool(all sglang.Config) (bytes float64, what string) {
	if size, ok := all.Float(hicacheSize); ok {
		return size * sglang.GB, hicacheSize + " " + sglang.FormatValue(size)
	}
	if on, _ := all[hicacheOn].(bool); !on || r.Pool == nil {
		return 0, ""
	}
	return r.Pool(all), hicacheOn
}

// Quality refuses settings that may change answers (bf16-only).
type Quality struct {
	Fixed sglang.Config
}

// Check looks at the knobs of the configuration, and at the KV cache type also where it is fixed.
func (q Quality) Check(c sglang.Config) error {
	for _, name := range c.Names() {
		if why := keptOut(name, c[name]); why != "" {
			return &Infeasible{Rule: RuleQuality, Text: fmt.Sprintf("%s %s: %s", name, c.Text(name), why)}
		}
	}
	if v, fixed := q.Fixed[kvDtype]; fixed && c[kvDtype] == nil {
		if why := keptOut(kvDtype, v); why != "" {
			return &Infeasible{Rule: RuleQuality, Text: fmt.Sprintf("%s %s: %s", kvDtype, sglang.FormatValue(v), why)}
		}
	}
	return nil
}

// Repeat refuses what was launched already: a measured configuration is not measured again.
// Void trials and those that ended by no fault of their own do not count.
type Repeat struct {
	keys map[string]int
}

// NewRepeat remembers the baseline and search launches of a history.
func NewRepeat(history []*trial.Trial) Repeat {
	r := Repeat{keys: map[string]int{}}
	for _, t := range history {
		if t.Role != trial.RoleConfirm && !again(t) {
			r.keys[Key(spelt(t))] = t.Number
		}
	}
	return r
}

// spelt is a trial's configuration with the KV cache type its log showed, where it left the choice
// to SGLang: bf16 by choice and bf16 by default are one launch.
func spelt(t *trial.Trial) sglang.Config {
	if v, set := t.Config[kvDtype]; (set && v != "auto") || t.Memory.KVDtype != "torch.bfloat16" {
		return t.Config
	}
	return sglang.Merge(t.Config, sglang.Config{kvDtype: "bf16"})
}

// Check refuses a configuration of the history.
func (r Repeat) Check(c sglang.Config) error {
	n, ok := r.keys[Key(c)]
	if !ok && c[kvDtype] == nil {
		n, ok = r.keys[Key(sglang.Merge(c, sglang.Config{kvDtype: "bf16"}))]
	}
	if ok {
		return &Infeasible{Rule: RuleRepeat, Text: fmt.Sprintf("this configuration is trial %d already", n)}
	}
	return nil
}

// Memory refuses what the memory arithmetic of a start-up log of this study rules out.
type Memory struct {
	Predict func(sglang.Config) (p sglang.Prediction, ok bool) // ok is false while no log was calibrated
}

// Check wants KV tokens above 0, and a host pool that holds more tokens than the device pool: a
// smaller one only copies what the device has (and versions up to 0.5.12 refuse to start).
func (m Memory) Check(c sglang.Config) error {
	p, ok := m.Predict(c)
	if !ok {
		return nil
	}
	if p.Tokens.Mid <= 0 {
		return &Infeasible{
			Rule: RuleKVTokens, Limit: 1, Want: p.Tokens.Mid, Unit: "tokens",
			Text: fmt.Sprintf("%s %s leaves no room for the KV cache; it must be above %.3f", memFraction, c.Text(memFraction), p.LowestFraction),
		}
	}
	if host := p.HostPoolTokens.Mid; p.HostPoolGBPerRank > 0 && host <= p.Tokens.Mid {
		return &Infeasible{
			Rule: RuleHostTokens, Limit: p.Tokens.Mid, Want: host, Unit: "tokens",
			Text: fmt.Sprintf("a host pool of %.0f GB a rank holds %.0f tokens, no more than the %.0f on the GPU, so it would add nothing",
				p.HostPoolGBPerRank, host, p.Tokens.Mid),
		}
	}
	return nil
}

// Rule is a constraint made from a function, for limits that live elsewhere (the learnt line).
type Rule func(sglang.Config) error

// Check calls the function.
func (r Rule) Check(c sglang.Config) error { return r(c) }
