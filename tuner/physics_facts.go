package tuner

import (
	"math"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// Flags that the adapter to the search engine knows by name, beside those of space.go and frontier.go.
const (
	maxRunning   = "max-running-requests"
	graphBatch   = "cuda-graph-max-bs"
	graphDecode  = "cuda-graph-max-bs-decode" // what it is called from 0.5.15 on
	pageSize     = "page-size"
	conservative = "schedule-conservativeness"
)

// today is what runs now as a point of the space sees it: the baseline's own values of the searched
// knobs over what every search trial has.
func (p Problem) today() sglang.Config {
	c := p.Base.Clone()
	if c == nil {
		c = sglang.Config{}
	}
	for _, d := range p.Space {
		if v, has := p.Baseline[d.Name]; has {
			c[d.Name] = v
		}
	}
	return Canonical(c)
}

// autoInput is what SGLang derives its automatic settings from, as far as it is known here.
func (p Problem) autoInput() sglang.AutoInput {
	c := sglang.Merge(p.Flags, p.today())
	number := func(name string) int {
		v, _ := c.Float(name)
		return int(v)
	}
	on, _ := c["enable-dp-attention"].(bool)
	return sglang.AutoInput{
		Version: p.Version, GPUMiB: p.GPUGiB * 1024, TP: number("tp-size"), PP: number("pp-size"), DP: number("dp-size"), DPAttention: on,
		Chunk: max(0, number(chunkedSize)), GraphMax: max(number(graphBatch), number(graphDecode)), MaxRunning: number(maxRunning),
	}
}

// facts is what the engine may know beside the trials. seen is how many of them said something; admit is
// asked for every candidate.
func (s *codedSpace) facts(p Problem, seen int, admit func(physics.Point) bool) physics.Facts {
	f := physics.Facts{
		Ranks: Ranks(sglang.Merge(p.Flags, p.Base)), GPUGiB: p.GPUGiB, HostGB: p.PoolGB, CellScale: s.cellScale(), Load: loadOf(p),
		Start: s.start, Fixed: s.fixed(p), Seed: uint64(p.Seed), Admit: admit,
	}
	if p.Remaining > 0 {
		f.Budget = seen + len(p.Pending) + p.Remaining
	}
	return f
}

// roleFlags are the flags physics knows, and that count in numbers.
var roleFlags = []string{memFraction, hicacheSize, chunkedSize, maxRunning, graphBatch, graphDecode, conservative}

// fixed are the values of physics' own flags where the space does not have them.
func (s *codedSpace) fixed(p Problem) map[physics.Role]float64 {
	all := sglang.Merge(p.Flags, p.Base)
	out := map[physics.Role]float64{}
	for _, name := range roleFlags {
		_, given := all[name]
		if _, have := out[physics.RoleOf(name)]; have && !given || s.coded.Role(physics.RoleOf(name)) >= 0 {
			continue
		}
		on, _ := all[hicacheOn].(bool)
		if _, sized := all[hicacheSize]; name == hicacheSize && on && !sized {
			continue // sized by ratio: not known before the pool is
		}
		if v, ok := s.valueOf(Dimension{Name: name}, all, s.running).(float64); ok && v != 0 || ok && name == hicacheSize {
			out[physics.RoleOf(name)] = v
		}
	}
	return out
}

// loadOf computes what physics needs to know of the workload: from the file where it is at hand, else
// from what trials replayed of it.
func loadOf(p Problem) physics.Load {
	l := physics.Load{}
	for _, n := range p.Levels {
		l.Clients = math.Max(l.Clients, float64(n))
	}
	if p.Workload != nil && p.Workload.Len() > 0 {
		l.InputTokens, l.OutputTokens, l.SharedTokens = meanRequest(p.Workload)
		return l
	}
	var requests, prompt, output, cached float64
	for _, t := range firstOf(p.History) {
		for _, level := range t.Levels {
			if r := level.Report; r != nil && r.Valid {
				requests += float64(r.Requests.OK)
				prompt, output, cached = prompt+float64(r.Tokens.Prompt), output+float64(r.Tokens.Got), cached+float64(r.Tokens.Cached)
			}
		}
	}
	if requests > 0 {
		l.InputTokens, l.OutputTokens, l.SharedTokens = prompt/requests, output/requests, cached/requests
	}
	return l
}

// meanRequest is the mean prompt and output of a request, and how much of the prompt an endless cache
// would hold already. A later turn of a conversation carries everything said before, which is the
// part it shares.
func meanRequest(w *benchmark.Workload) (input, output, shared float64) {
	requests := 0.0
	for _, r := range w.All() {
		said, rest := 0.0, 0
		if len(r.Turns) > 1 {
			rest = r.Input()
			for _, turn := range r.Turns {
				part := float64(rest) / float64(len(r.Turns))
				input, shared = input+said+part, shared+said
				said += part + float64(turn.OutputTokens)
			}
		} else {
			input += float64(r.Input())
		}
		output += float64(r.OutputTokens)
		requests += float64(r.Requests())
	}
	if requests == 0 {
		return 0, 0, 0
	}
	shared += w.Reuse * float64(w.PromptTokens())
	return input / requests, output / requests, math.Min(shared, input) / requests
}

// longestPrompt is the 99th percentile of the prompt lengths, tokens; 0 without a workload.
func longestPrompt(w *benchmark.Workload) int {
	if w == nil || w.Len() == 0 {
		return 0
	}
	return w.InputQuantile(0.99)
}

// ratio converts the objective to output tokens a second, in which physics thinks: a constant of the
// study, taken from the first trial that has both. It is 1 for output_tok_s itself.
func ratio(p Problem) float64 {
	if p.Objective.Metric == "" || p.Objective.Metric == "output_tok_s" {
		return 1
	}
	for _, t := range p.History {
		if r := bestReport(t); r != nil && t.Value != nil && *t.Value > 0 && r.OutputTokS > 0 {
			return r.OutputTokS / *t.Value
		}
	}
	return 1
}

// bestReport is what a trial measured at the load level its value belongs to, nil without.
func bestReport(t *trial.Trial) *benchmark.Report {
	for _, l := range t.Levels {
		if l.Concurrency == t.Best {
			return l.Report
		}
	}
	return nil
}
