package sglang

import "math"

// AutoInput is what SGLang derives its automatic memory settings from.
type AutoInput struct {
	Version     Version // zero means the newest known
	GPUMiB      float64 // smallest GPU of the launch, nvidia-smi's total; 0 unknown
	TP, PP, DP  int
	DPAttention bool
	MLA         bool
	Chunk       int    // --chunked-prefill-size, 0 when not given
	GraphMax    int    // --cuda-graph-max-bs(-decode), 0 when not given
	MaxRunning  int    // --max-running-requests, 0 when not given
	Draft       string // speculative algorithm, upper case
	DeepEP      bool   // --moe-a2a-backend deepep
}

// Auto is what SGLang chooses where a launch says nothing. It is a check on a log, not a source: the
// server_args line has the values in force. Multimodal models lower the fraction further.
type Auto struct {
	Fraction    float64
	Chunk       int // before it is divided by data-parallel attention
	GraphMax    int
	ReservedMiB float64 // kept out of the static budget
}

// AutoDefaults follows SGLang's memory heuristics (arg_groups/memory_hook.py in 0.5.23,
// server_args.py before).
func AutoDefaults(in AutoInput) Auto {
	a := Auto{Chunk: in.Chunk, GraphMax: in.GraphMax}
	chunk, graphs := in.byGPU()
	if a.Chunk == 0 {
		a.Chunk = chunk
	}
	if a.GraphMax == 0 {
		a.GraphMax = graphs
		if in.MaxRunning > 0 && in.since(mem0515) {
			a.GraphMax = min(a.GraphMax, in.MaxRunning)
		}
	}
	switch {
	case !in.since(Version{Minor: 4, Patch: 9}):
		a.Fraction = in.fixedFraction()
		a.ReservedMiB = in.GPUMiB * (1 - a.Fraction)
		return a
	case in.GPUMiB <= 0:
		a.Fraction = 0.88
		if in.since(mem0515) {
			a.Fraction = 0.95
		}
		return a
	case !in.since(Version{Minor: 5, Patch: 4}):
		a.ReservedMiB = in.tableReserve()
	default:
		a.ReservedMiB = in.reserve(a)
	}
	a.Fraction = math.Round((in.GPUMiB-a.ReservedMiB)/in.GPUMiB*1000) / 1000
	return a
}

func (in AutoInput) since(v Version) bool {
	return in.Version == Version{} || in.Version.Compare(v) >= 0
}

func (in AutoInput) ranks() float64 { return float64(max(1, in.TP) * max(1, in.PP)) }

// byGPU is the chunk and the largest decode graph by GPU size.
func (in AutoInput) byGPU() (chunk, graphs int) {
	wide := func(narrow, w int) int {
		if in.TP >= 4 {
			return w
		}
		return narrow
	}
	const gib = 1024
	switch m := in.GPUMiB; {
	case m <= 0:
		return 4096, 160
	case m < 20*gib:
		return 2048, 8
	case m < 35*gib:
		if !in.since(mem0520) {
			return 2048, wide(24, 80)
		}
		return 4096, wide(48, 160)
	case m < 60*gib:
		return 4096, wide(32, 160)
	case m < 160*gib:
		return 8192, wide(256, 512)
	}
	return 16384, 512
}

// reserve is the rule from 0.5.4 on, in MiB.
func (in AutoInput) reserve(a Auto) float64 {
	dp := float64(max(1, in.DP))
	graphMax := float64(a.GraphMax)
	r := 512 + 1.5*float64(max(a.Chunk, 2048)) + in.ranks()/8*1024 + 2*graphMax
	if in.DPAttention {
		r += 3 * graphMax * dp
		if a.GraphMax > 300 {
			r += 1.5 * graphMax * dp
		}
	}
	if in.since(mem0512) {
		if in.MLA {
			r += 1536
		} else {
			r += 8 * float64(prefillGraphs(a.Chunk))
		}
	}
	if in.GPUMiB > 60*1024 {
		r = max(r, 10*1024)
	}
	if !in.since(mem0515) {
		r += draftReserve(in.Draft)
	}
	if in.DeepEP && in.since(mem0515) {
		r += 2048
	}
	return r
}

// prefillGraphs is how many prefill graph sizes are captured up to a chunk
// (arg_groups/cuda_graph_hook.py).
func prefillGraphs(chunk int) int {
	n := 0
	for _, step := range []struct{ from, to, by int }{
		{4, 32, 4}, {48, 256, 16}, {288, 512, 32}, {576, 1024, 64}, {1280, 4096, 256}, {4608, max(chunk, 0), 512},
	} {
		if to := min(step.to, chunk); to >= step.from {
			n += (to-step.from)/step.by + 1
		}
	}
	return n
}

// draftReserve is what speculation adds up to 0.5.12, in MiB.
func draftReserve(algorithm string) float64 {
	switch algorithm {
	case "", "NGRAM":
		return 0
	case "STANDALONE":
		return 6 * 1024
	}
	return 2 * 1024
}

// tableReserve is the rule of 0.4.9 to 0.5.3, in MiB.
func (in AutoInput) tableReserve() float64 {
	const gib = 1024
	var r float64
	switch m := in.GPUMiB; {
	case m < 35*gib:
		r = (2.8 + in.ranks()/10) * gib
	case m < 90*gib:
		r = (9.5 + in.ranks()/2) * gib
	case m < 160*gib:
		r = (12 + in.ranks()/2) * gib
	default:
		r = 32 * gib
	}
	r += draftReserve(in.Draft)
	if in.DPAttention {
		r += 4 * gib
	}
	return r
}

// fixedFraction is the rule before 0.4.9: by the number of ranks, and higher on GPUs above 96 GiB.
func (in AutoInput) fixedFraction() float64 {
	const f = 0.88
	switch r := in.ranks(); {
	case in.GPUMiB > 96*1024:
		return min(f+48*1024*(1-f)/in.GPUMiB, (in.GPUMiB-18*1024)/in.GPUMiB)
	case in.GPUMiB <= 0 || in.GPUMiB > 81920:
		return f
	case r >= 16:
		return 0.79
	case r >= 8:
		return 0.81
	case r >= 4:
		return 0.85
	case r >= 2:
		return 0.87
	}
	return 0.88
}
