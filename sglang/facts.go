package sglang

import "time"

// Phase is where in a server's life something happened: the closed list of the failure
// vocabulary. The order of the constants is the order of a start.
type Phase string

// Phases, in the order a healthy server passes them.
const (
	PhaseLaunch       Phase = "launch"
	PhaseDistInit     Phase = "dist_init"
	PhaseWeightLoad   Phase = "weight_load"
	PhaseKVPool       Phase = "kv_pool"
	PhaseGraphCapture Phase = "graph_capture"
	PhaseHostPool     Phase = "host_pool"
	PhaseHTTPStart    Phase = "http_start"
	PhaseWarmup       Phase = "warmup"
	PhaseReady        Phase = "ready"
	PhasePrefill      Phase = "prefill"
	PhaseDecode       Phase = "decode"
	PhaseBench        Phase = "bench"
	PhaseShutdown     Phase = "shutdown"
)

// Event is one log line that means something.
type Event struct {
	Kind   string             // name of the pattern: "weight_end", "gpu_oom", ...
	Line   int                // physical line, from 1; lines end at \n only
	Offset int64              // byte offset of the line's first byte in the log
	Rank   int                // TP rank named in the line's prefix, -1 when none
	DP, PP int                // DP and PP rank named there, -1 when none
	At     time.Time          // time in the line's prefix (server's clock, no zone), zero when none
	Phase  Phase              // furthest phase this rank's log had reached when the line came
	Values map[string]float64 // numbers, named as in the failure vocabulary
	Words  map[string]string  // captured words: dtype, error text, flag name
	Before int                // batch lines that came before it: progress since then shows what a server survived
	Text   string             // the line without its prefix, at most 400 bytes, secrets masked
}

// LogFacts is what a server log says so far. The zero value is an empty log.
type LogFacts struct {
	Phase                    Phase            // furthest phase reached
	Ready                    bool             // "fired up and ready to roll" was seen
	Port                     int              // port of the "Uvicorn running" line, 0 before it
	Memory                   Observation      // memory steps of the smallest rank, and the capacity line
	Fatal                    []Event          // fatal lines in log order (the first is the first cause), at most 64
	Notes                    []Event          // lines worth showing that are not fatal (warnings, clamps), at most 64
	First, Last              map[string]Event // first and last event of each kind
	LastBatch                Event            // last prefill or decode batch line
	Decodes                  int              // decode batch lines; with DP attention those of all DP ranks
	Prefills                 int              // prefill batch lines, likewise
	Health200                int              // answers of 200 to /health, as the access lines say
	Health503                int              // every other answer to /health; 503 in practice
	Retracts                 int              // retraction lines of one rank (of each DP rank)
	Retracted                int              // requests retracted, summed over those
	MaxRunning               float64          // largest #running-req of a decode line
	LastGenTokS, PeakGenTokS float64          // "gen throughput" of decode lines, tok/s
	Tempo                    Tempo            // its course, of one rank
	Lines                    int
	Bytes                    int64
	Restarts                 int // servers whose log came before this one's in the same file; they are not in these facts
	LongLines                int // lines over 64 KiB; only their beginning was read
	Coloured                 int // lines with terminal colours
	Wrapped                  int // lines behind the prefix of a container runtime, a launcher or a logging tool
	Echoed                   int // lines that repeat a client's request
}

// Observation is what one start-up log says about memory. Figures are as printed (SGLang writes GB
// but means GiB, two decimals); 0 means the line was not there.
type Observation struct {
	Fraction       float64 // mem-fraction-static as resolved in the server_args line
	TP             int
	KVDtype        string // as printed: "torch.bfloat16"; before 0.5.15 as asked for: "fp8_e4m3"; "" when not said
	PageSize       int
	ChunkedPrefill int
	MaxRunning     int // granted, from the capacity line
	ContextLen     int
	BeforeLoadGiB  float64 // T: smallest rank's "Load weight begin. avail mem"
	AfterLoadGiB   float64 // A: smallest rank's "Load weight end. avail mem"
	WeightsGiB     float64
	KVGiB          float64 // KV (or K+V) size of the pool
	KVParts        int     // printed figures KVGiB is the sum of: 1 (MLA) or 2 (K and V)
	MaxTotalTokens int     // max_total_tokens as asked for in the server_args line, 0 when not
	AfterPoolGiB   float64
	GraphGiB       float64
	AfterGraphGiB  float64 // "avail mem" of the graph end line
	AvailableGiB   float64 // available_gpu_mem of the capacity line
	Tokens         int     // max_total_num_tokens
	HostPoolTokens int
	HostPoolGB     float64 // decimal GB a rank
}
