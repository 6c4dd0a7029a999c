package physics

import "reflect"

// Facts is what is known before the first trial. Zero figures are unknown, and the models begin
// wide where they lack them.
type Facts struct {
	Ranks      int     // ranks that share the host's memory, at least 1
	GPUGiB     float64 // memory of one GPU
	WeightsGiB float64 // weights of one rank, a guess until a log shows it
	CellBytes  float64 // bytes of one KV token on one rank at bf16, a guess until a log shows it
	HostGB     float64 // what host pools may take in all, in units of PoolBytes; 0 = Admit alone knows
	PoolBytes  float64 // bytes of one unit of the host-pool knob, 0 = 10^9

	// CellScale is the KV token's size for each choice of the KV-dtype knob, 1 for bf16; nil = all 1.
	CellScale []float64

	Load   Load
	Start  Point            // what runs today; also where knobs that do nothing rest
	Fixed  map[Role]float64 // values of roles the space lacks, as far as they are known
	Budget int              // trials in all, 0 = unknown
	Seed   uint64

	// Admit says whether a point may be launched at all (host RAM, flags that exclude each other, no
	// repeats). The search proposes nothing else. nil = all.
	Admit func(Point) bool
}

// Alike reports whether an engine learns the same with either: all but what Renew replaces is equal.
func (f Facts) Alike(o Facts) bool {
	f.HostGB, f.Budget, f.Admit = 0, 0, nil
	o.HostGB, o.Budget, o.Admit = 0, 0, nil
	return reflect.DeepEqual(f, o)
}

// Load is the workload as physics needs it, computed from the workload itself and never asked.
type Load struct {
	Clients      float64 // requests in flight at most: the busiest load level
	InputTokens  float64 // mean prompt tokens of a request
	OutputTokens float64 // mean output tokens of a request
	SharedTokens float64 // of the prompt tokens, how many an endless cache would hold already, mean
}
