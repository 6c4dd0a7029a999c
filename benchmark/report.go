package benchmark

// ReportSchema is the version of a report's shape.
const ReportSchema = 1

// Report is what one load level measured. Counts cover the measured part; sent = ok + sum(failed).
//
// The measured part begins where throughput is steady (steady.go) and ends when sending ended. Requests that
// finished in it or while draining are counted; rates are of what came inside it. Where the level's end is a
// number of requests, all of them are measured, and if most of them were still running when the last was sent
// the measured part lasts until the last answer (level.go). Times are host time.
type Report struct {
	Schema   int `json:"schema"`
	Requests struct {
		Sent   int            `json:"sent"`
		OK     int            `json:"ok"`
		Failed map[string]int `json:"failed"`
	} `json:"requests"`
	Warmup   int `json:"warmup"`             // requests finished before the measured part
	Cut      int `json:"cut,omitempty"`      // requests still in flight when draining ended: neither ok nor failed, not in sent
	Attempts int `json:"attempts,omitempty"` // tries of the requests in sent, where there may be more than one
	Tokens   struct {
		Wanted       int64 `json:"wanted"`
		Got          int64 `json:"got"` // of complete requests
		Prompt       int64 `json:"prompt"`
		PromptWanted int64 `json:"prompt_wanted"` // of complete requests whose length was asked for
		Cached       int64 `json:"cached"`
	} `json:"tokens"`
	Concurrency struct {
		Mean float64 `json:"mean"`
		Peak int     `json:"peak"`
	} `json:"concurrency"`
	Arrivals         *ArrivalReport `json:"arrivals,omitempty"` // nil for a closed loop
	OutputTokS       float64        `json:"output_tok_s"`
	OutputLow        float64        `json:"output_tok_s_low"` // 95% interval over windows (batch means), 0 and 0 without one
	OutputHigh       float64        `json:"output_tok_s_high"`
	PromptTokS       float64        `json:"prompt_tok_s"` // prompts count when their first token comes
	RequestsS        float64        `json:"requests_s"`
	GoodputS         float64        `json:"goodput_requests_s"` // requests/s that met Options.SLO; RequestsS without one
	SLO              *SLOReport     `json:"slo,omitempty"`      // the limits that goodput counts, nil without
	TTFTms           *Distribution  `json:"ttft_ms,omitempty"`
	ITLms            *Distribution  `json:"itl_ms,omitempty"` // absent in scaled time
	TPOTms           *Distribution  `json:"tpot_ms,omitempty"`
	E2Ems            *Distribution  `json:"e2e_ms,omitempty"`
	TTFTResolutionMs float64        `json:"ttft_resolution_ms,omitempty"` // scaled time only
	Buckets          []Bucket       `json:"buckets,omitempty"`            // by prompt length, where there is more than one
	CacheHitRatio    float64        `json:"cache_hit_ratio"`
	CacheFull        bool           `json:"cache_full"` // set by the caller that filled it
	Client           ClientReport   `json:"client"`
	Seconds          float64        `json:"seconds"` // measured part
	Steady           bool           `json:"steady"`
	Pruned           bool           `json:"pruned,omitempty"`
	Windows          []Window       `json:"windows"`
	Series           []Point        `json:"series,omitempty"` // one per second from the level's start, drain included
	Passes           int            `json:"passes"`
	Valid            bool           `json:"valid"`
	Invalid          string         `json:"invalid,omitempty"` // "client_limited", "failed_requests", "wrong_token_count", "client_hung"
	StoodS           float64        `json:"stood_s,omitempty"` // the load generator stood still so long (host time), which ended the level
	Advice           string         `json:"advice,omitempty"`
	ServerTokS       float64        `json:"server_tok_s,omitempty"` // server's own figure for the same window, 0 unknown
	Flags            []string       `json:"flags,omitempty"`        // remarks: "not steady: ...", "server disagrees by 7%"
	Errors           []string       `json:"errors,omitempty"`       // first few different error texts

	// What only the caller knows; Run leaves these alone.
	CacheState string      `json:"cache_state,omitempty"` // CacheCold, CacheWarm, CacheFlushed or CacheUnknown
	Server     *ServerView `json:"server,omitempty"`      // the server's own counts of the measured part
	Energy     *Energy     `json:"energy,omitempty"`
	Workload   *Summary    `json:"workload,omitempty"` // what was replayed
	Setup      *Setup      `json:"setup,omitempty"`
}

// State of the server's prefix cache when the level began.
const (
	CacheCold    = "cold"    // the server was just started
	CacheWarm    = "warm"    // what was replayed before is still there
	CacheFlushed = "flushed" // emptied on request
	CacheUnknown = "unknown"
)

// ArrivalReport is how well an open loop kept its schedule.
type ArrivalReport struct {
	Process      string  `json:"process"`
	ScheduledRPS float64 `json:"scheduled_rps"` // of the schedule as it was drawn: (n-1) over the time from first to last
	AchievedRPS  float64 `json:"achieved_rps"`  // the same of the times those requests were sent
	Scheduled    int     `json:"scheduled"`     // requests with a time of their own, later turns of conversations not
	Late         int     `json:"late"`          // of those, sent more than 10 ms real after their time
}

// SLOReport are the limits of Options.SLO in milliseconds, 0 = none.
type SLOReport struct {
	TTFTms float64 `json:"ttft_ms,omitempty"`
	TPOTms float64 `json:"tpot_ms,omitempty"`
	E2Ems  float64 `json:"e2e_ms,omitempty"`
}

// ClientReport is how well the load generator itself did.
type ClientReport struct {
	CPUShare  float64 `json:"cpu_share"` // of its cores in the measured part, 1 = all of them
	Cores     float64 `json:"cores"`     // GOMAXPROCS, mean over the measured part
	SendLagMs struct {
		P50 float64 `json:"p50"` // of requests due in the measured part, host time
		P99 float64 `json:"p99"`
		Max float64 `json:"max"`
	} `json:"send_lag_ms"`
	// ReadLagMs is how late this program notices things, in real time: a heartbeat each 10 ms against its due
	// time, over the whole level.
	ReadLagMs struct {
		P99 float64 `json:"p99"`
		Max float64 `json:"max"`
	} `json:"read_lag_ms"`
}

// Setup is what was asked for, so that a report can be repeated and compared.
type Setup struct {
	Sgtune    string `json:"sgtune"`     // version
	StartedAt string `json:"started_at"` // RFC 3339, UTC
	URL       string `json:"url"`
	Endpoint  string `json:"endpoint"`
	Model     string `json:"model,omitempty"`
	Server    string `json:"server,omitempty"` // what the server calls itself
	Workload  string `json:"workload"`         // name of the file without its folder, or of the generated set
	Load      string `json:"load"`             // in words: "32 clients", "poisson, 500 requests/s"
	Seed      uint64 `json:"seed"`
	Salt      string `json:"salt,omitempty"`
}
