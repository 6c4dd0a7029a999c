package physics_test

import (
	"math"

	"sgtune/tuner/physics"
)

// server is a batching server of another structure than the engine's: a closed queueing network
// solved with Little's law, a roofline with padded batches instead of a linear step, an LRU over a
// fixed set of prefixes instead of a hit curve, and prefill that takes slices of decode's time.
type server struct {
	card
	clients       float64
	thinkMs       float64 // a client's pause between two requests
	fresh, output float64 // tokens of a request that no cache holds; tokens it writes
	prefixes      []prefix

	readMs    float64 // a decode step reads the weights, ms
	seqMs     float64 // and computes for each sequence, ms; the larger of the two counts
	kvMs      float64 // and reads the KV of each sequence, ms per 1,000 tokens
	cpuMs     float64 // and is scheduled
	eagerMs   float64 // a step without a graph, more
	prefillMs float64 // per 1,000 tokens
	sliceMs   float64 // fixed cost of one prefill slice
	linkGiBs  float64 // host to device
	actGiB    float64 // what prefill needs per 1,000 tokens of a slice
	logitGiB  float64 // and per 100 running requests
	ranks     float64
}

// prefix is a shared beginning of prompts.
type prefix struct{ tokens, weight float64 }

// prefixes are n prefixes whose use falls with the power of their rank and whose lengths go up and
// down around mean.
func prefixes(n int, mean, power float64) []prefix {
	out := make([]prefix, n)
	sum := 0.0
	for i := range out {
		out[i] = prefix{tokens: mean * (1 + 0.6*math.Sin(float64(i)*2.4)), weight: math.Pow(float64(i+1), -power)}
		sum += out[i].weight
	}
	for i := range out {
		out[i].weight /= sum
	}
	return out
}

// shared is the mean number of prompt tokens that a prefix accounts for.
func (s *server) shared() float64 {
	sum := 0.0
	for _, p := range s.prefixes {
		sum += p.tokens * p.weight
	}
	return sum
}

// hit is the share of prefix tokens found in an LRU cache of so many tokens (Che's approximation),
// with pages that lose the end of each prefix.
func (s *server) hit(capacity, page float64) float64 {
	all, size := 0.0, 0.0
	for _, p := range s.prefixes {
		all += p.tokens * p.weight
		size += p.tokens
	}
	if capacity <= 0 || all <= 0 {
		return 0
	}
	low, high := 0.0, 40/s.prefixes[len(s.prefixes)-1].weight
	if capacity < size {
		for range 30 {
			mid := (low + high) / 2
			if filled(s.prefixes, mid) > capacity {
				high = mid
			} else {
				low = mid
			}
		}
	} else {
		low = high
	}
	found := 0.0
	for _, p := range s.prefixes {
		found += p.weight * -math.Expm1(-p.weight*low) * max(p.tokens-page/2, 0)
	}
	return found / all
}

// filled is how many tokens an LRU holds whose entries live for so many requests.
func filled(all []prefix, life float64) float64 {
	sum := 0.0
	for _, p := range all {
		sum += p.tokens * -math.Expm1(-p.weight*life)
	}
	return sum
}

// setting is one configuration of a server.
type setting struct {
	slots, tokens, hostTokens, chunk, graphs, conserve, page float64
	policy, write                                            int
	overlap                                                  bool
}

// speed is output tokens/s, requests running, and the hit ratio over the prompt.
func (s *server) speed(c setting) (rate, running, ratio float64) {
	reserve := s.fresh + s.output*max(c.conserve, 0.2)
	n := min(s.clients, c.slots, c.tokens*0.98/reserve)
	hold := s.fresh + s.output/2
	n = max(min(n, c.tokens/hold*0.99), 0.5)
	spill := 0.5 * math.Erfc((c.tokens-n*hold)/(s.output/math.Sqrt(12)*math.Sqrt(n))/math.Sqrt2)
	prefill, ratio := s.prefill(c, n)
	step := func(b float64) float64 { return s.step(c, b) }
	b := n * 0.7
	var rho, perMs float64
	for range 40 {
		// Little's law: n slots = rate x (wait for prefill + prefill + decode slowed by others' prefill)
		rate := b / (s.output*step(b) + b*prefill)
		rho = min(rate*prefill, 0.97)
		wait := rho*prefill*0.75/(1-rho) + 0.5*rho*s.slice(c)
		perMs = min(rate, s.clients/(s.thinkMs+wait+prefill+s.output*step(b)/(1-rho)))
		b = 0.5*b + 0.5*max(n-perMs*(wait+prefill), 0.2)
	}
	return perMs * s.output * 1000 * (1 - 0.6*spill), b, ratio
}

// slice is the time of one full prefill slice, ms.
func (s *server) slice(c setting) float64 {
	return min(c.chunk, s.fresh+s.shared())*s.prefillMs/1000 + s.sliceMs
}

// prefill is a request's own prefill, ms, and the hit ratio of its prompt.
func (s *server) prefill(c setting, n float64) (ms, ratio float64) {
	spare := c.tokens - n*(s.fresh+s.output/2)
	locality := []float64{1, 1.2, 1.12}[c.policy]
	device := s.hit(spare*locality, c.page)
	both := device
	if c.hostTokens > 0 {
		keep := []float64{0.95, 0.75, 0.9}[c.write]
		both = max(device, s.hit((spare+c.hostTokens*keep)*locality, c.page))
	}
	shared := s.shared()
	tokens := s.fresh + shared*(1-both)
	slices := max(tokens/c.chunk, 0.25)
	if tokens > c.chunk {
		slices = math.Ceil(tokens / c.chunk)
	}
	ms = tokens*s.prefillMs/1000*(1+tokens/200_000) + slices*s.sliceMs
	perToken := s.cell / gib / s.linkGiBs * 1000
	ms += shared * (both - device) * perToken * 0.6
	if c.hostTokens > 0 {
		ms += (tokens + s.output) * perToken * []float64{0.12, 0.05, 0.3}[c.write]
	}
	return ms, shared * both / (shared + s.fresh)
}

// step is one decode step of b sequences, ms.
func (s *server) step(c setting, b float64) float64 {
	padded := math.Pow(2, math.Ceil(math.Log2(max(b, 1))*2)/2)
	extra := 0.0
	if b > c.graphs {
		padded, extra = b, s.eagerMs
	}
	ms := max(s.readMs, padded*s.seqMs) + b*s.kvMs*(s.fresh+s.shared()+s.output/2)/1000 + extra
	if c.page < 2 {
		ms *= 1.02
	}
	cpu := s.cpuMs * (1 + b/150)
	if c.policy > 0 {
		cpu += s.cpuMs * 0.3 * max(s.clients-b, 0) / 100
	}
	if c.overlap {
		cpu *= 0.4
	}
	return ms + cpu
}

// serverSpace is the space of a server world.
func serverSpace() physics.Space {
	const host = 1
	return physics.Space{
		ordered("mem-fraction-static", physics.RoleMemFraction, steps(0.78, 0.95, 0.01)...),
		ordered("hicache-size", physics.RoleHostPool, 0, 4, 8, 16, 24, 32, 48, 64, 96, 128),
		ordered("chunked-prefill-size", physics.RoleChunk, 512, 1024, 2048, 4096, 8192, 16384),
		logged("max-running-requests", physics.RoleMaxRunning, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384),
		ordered("cuda-graph-max-bs", physics.RoleGraphBS, 8, 16, 32, 64, 128, 256),
		ordered("schedule-conservativeness", physics.RoleConservativeness, steps(0.2, 1.4, 0.1)...),
		ordered("page-size", physics.RoleOther, 1, 16, 64),
		choice("schedule-policy", 3),
		needing(choice("hicache-write-policy", 3), host),
		choice("attention-backend", 3),
		choice("disable-overlap", 2),
		ordered("num-continuous-decode-steps", physics.RoleOther, 1, 2, 4, 8), // accepted and never read
	}
}

// world is the server as a world; hostGB is what host pools may take in all.
func (s *server) world(name string, hostGB float64, start ...float64) *world {
	space := serverSpace()
	w := &world{name: name, space: space, launch: 0.025, window: 0.015}
	w.facts = physics.Facts{
		Ranks: int(s.ranks), GPUGiB: s.before + 0.6, WeightsGiB: s.weights * 1.02, CellBytes: s.cell, HostGB: hostGB, Budget: 30,
		Load:  physics.Load{Clients: s.clients, InputTokens: s.fresh + s.shared(), OutputTokens: s.output, SharedTokens: s.shared()},
		Start: at(space, start...),
		Admit: func(p physics.Point) bool { return w.num(p, "hicache-size")*s.ranks <= hostGB },
	}
	w.truth = func(p physics.Point) fate { return s.fate(w, p) }
	return w
}

// fate is what becomes of a point.
func (s *server) fate(w *world, p physics.Point) fate {
	backend, pool := int(w.num(p, "attention-backend")), w.num(p, "hicache-size")
	page := w.num(p, "page-size")
	switch {
	case pool*s.ranks > w.facts.HostGB:
		return failed(p, physics.HostOOM)
	case backend == 2 && page > 1: // this backend knows only single-token pages
		return failed(p, physics.Crashed)
	}
	c := setting{
		slots: w.num(p, "max-running-requests"), hostTokens: pool * 1e9 / s.cell, chunk: w.num(p, "chunked-prefill-size"),
		graphs: w.num(p, "cuda-graph-max-bs"), conserve: w.num(p, "schedule-conservativeness"), page: page,
		policy: int(w.num(p, "schedule-policy")), write: int(w.num(p, "hicache-write-policy")), overlap: w.num(p, "disable-overlap") == 0,
	}
	seen, up := s.launch(p, w.num(p, "mem-fraction-static"), 0.5+0.005*c.graphs+0.002*c.slots)
	if !up {
		return fate{ends: physics.StartOOM, oom: 1, seen: seen}
	}
	c.tokens = seen.Tokens
	need := 0.6 + s.actGiB*math.Pow(c.chunk/1000, 0.9) + s.logitGiB*min(c.slots, s.clients)/100
	if pool > 0 {
		need += 0.15
	}
	f := fate{seen: seen}
	f.oom, f.seen.LowWaterGiB = s.oom(seen.AfterGraphGiB, need)
	f.value, f.seen.Running, f.seen.HitRatio = s.speed(c)
	f.value *= []float64{1, 0.93, 1.03}[backend]
	return f
}

// serverWorlds are three servers: long answers that fill the KV pool, a small model with shared
// prompts, and conversations whose history only host memory can hold.
func serverWorlds() []*world {
	long := &server{
		card: card{before: 94, weights: 73, cell: 70_000, pool: 2.6, fewest: 4000, scale: 0.15}, ranks: 8,
		clients: 140, fresh: 700, output: 3500, prefixes: prefixes(20, 300, 0.8),
		readMs: 24, seqMs: 0.45, kvMs: 0.04, cpuMs: 4, eagerMs: 9, prefillMs: 110, sliceMs: 4, linkGiBs: 20, actGiB: 0.18, logitGiB: 0.25,
	}
	small := &server{
		card: card{before: 23.3, weights: 15.1, cell: 131_072, pool: 0.5, fewest: 2000, scale: 0.08}, ranks: 1,
		clients: 64, thinkMs: 50, fresh: 250, output: 220, prefixes: prefixes(48, 2200, 1.0),
		readMs: 19, seqMs: 0.35, kvMs: 0.03, cpuMs: 3, eagerMs: 8, prefillMs: 95, sliceMs: 6, linkGiBs: 12, actGiB: 0.09, logitGiB: 0.3,
	}
	talk := &server{
		card: card{before: 78.5, weights: 16.6, cell: 65_536, pool: 1.1, fewest: 4000, scale: 0.2}, ranks: 4,
		clients: 90, thinkMs: 2000, fresh: 600, output: 350, prefixes: prefixes(160, 16_000, 0.5),
		readMs: 13, seqMs: 0.3, kvMs: 0.012, cpuMs: 3, eagerMs: 6, prefillMs: 60, sliceMs: 5, linkGiBs: 24, actGiB: 0.3, logitGiB: 0.4,
	}
	return []*world{
		long.world("server: long answers", 420, 0.85, 0, 8192, 256, 128, 1, 1, 0, 0, 0, 0, 1),
		small.world("server: shared prompts", 40, 0.83, 0, 8192, 128, 32, 1, 1, 0, 0, 0, 0, 1),
		talk.world("server: conversations", 420, 0.84, 0, 4096, 192, 128, 1, 1, 0, 0, 0, 0, 1),
	}
}
