package benchmark

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Clock is the host's time (a simulated host's runs faster than ours). host.Clock satisfies it.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
	After(d time.Duration) <-chan time.Time
	Scale() float64 // host seconds per real second, 1 for a real host
}

// Target is the server under load.
type Target struct {
	URL    string // base, for example http://127.0.0.1:30000
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Header http.Header // added to every request
}

// Row is one request of a workload: either lengths (with prefix block ids) or a text.
type Row struct {
	Number       int     // position in the file, from 0
	InputTokens  int     // wanted; 0 for a text of unknown length
	OutputTokens int     // wanted
	HashIDs      []int64 // ids of the prefix blocks, nil when the file has none
	Text         string  // prompt text, "" for rows of lengths
}

// Workload is a file that was read: rows in file order and what was dropped.
type Workload struct {
	Path        string
	Format      string // "mooncake" or "prompts"
	BlockTokens int    // tokens a hash id stands for, 0 without ids
	Rows        []Row
	Dropped     map[string]int // reason to count
	Reuse       float64        // prefix_hit_token_ratio of an endless cache over the rows in file order
}

// Prompt is one request ready to send.
type Prompt struct {
	Row          Row
	Pass         int   // how often the feed has started over before this row
	IDs          []int // input_ids; nil when Text is sent
	Text         string
	OutputTokens int
}

// Feed hands out prompts; it never ends (a short file is passed again under a new salt) and never
// repeats a text. Safe for concurrent use.
type Feed interface {
	Next() Prompt
	Passes() int // passes begun so far
}

// Request is one finished request: facts only. Times are host time, offsets from Start.
type Request struct {
	Row      int
	Intended time.Time     // when it should have been sent
	Sent     time.Time     // when it was
	TTFT     time.Duration // intended to first token
	E2E      time.Duration // intended to last byte
	Prompt   int           // prompt tokens as the server counted
	Cached   int           // of those, served from cache
	Output   int           // completion tokens as the server counted
	Wanted   int           // completion tokens asked for
	Failed   string        // "" or one of: refused reset cut_stream http_status stream_error wrong_tokens timeout
	Error    string
}

// Options is one load level: closed loop at a fixed number of clients.
type Options struct {
	Clock        Clock
	Concurrency  int           // clients
	Warmup       time.Duration // shortest warm-up left out of the measured part; the steady rule may lengthen it
	Window       time.Duration // length of one window
	Cap          time.Duration // the level ends here at the latest
	Target       float64       // half-width of the 95% interval of throughput that ends the level early, 0.03
	Requests     int           // stop after so many requests were sent, 0 = no limit
	PromptTokens int64         // stop once so many prompt tokens were admitted (fill), 0 = no limit
	// Prune is asked after each window with the windows' output tok/s so far; true ends the level (Report.Pruned).
	Prune func(windows []float64) bool
	// Window callback for live progress; may be nil.
	OnWindow func(w Window)
	CPUShare func() float64 // nil = this process's own CPU over its cores
}

// Window is one fixed slice of a load level.
type Window struct {
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"seconds"`
	Output   float64   `json:"output_tok_s"`
	Prompt   float64   `json:"prompt_tok_s"`
	InFlight float64   `json:"in_flight"` // time average
	Steady   bool      `json:"steady"`
}

// Distribution summarises kept raw samples, nearest rank.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Report is what one load level measured. Counts cover the measured part; sent = ok + sum(failed).
type Report struct {
	Requests struct {
		Sent   int            `json:"sent"`
		OK     int            `json:"ok"`
		Failed map[string]int `json:"failed"`
	} `json:"requests"`
	Warmup int `json:"warmup"` // requests finished before the measured part
	Tokens struct {
		Wanted int64 `json:"wanted"`
		Got    int64 `json:"got"`
		Prompt int64 `json:"prompt"`
		Cached int64 `json:"cached"`
	} `json:"tokens"`
	Concurrency struct {
		Mean float64 `json:"mean"`
		Peak int     `json:"peak"`
	} `json:"concurrency"`
	OutputTokS       float64       `json:"output_tok_s"`
	OutputLow        float64       `json:"output_tok_s_low"` // 95% interval over windows (batch means)
	OutputHigh       float64       `json:"output_tok_s_high"`
	RequestsS        float64       `json:"requests_s"`
	TTFTms           *Distribution `json:"ttft_ms,omitempty"`
	ITLms            *Distribution `json:"itl_ms,omitempty"` // absent in scaled time
	TPOTms           *Distribution `json:"tpot_ms,omitempty"`
	E2Ems            *Distribution `json:"e2e_ms,omitempty"`
	TTFTResolutionMs float64       `json:"ttft_resolution_ms,omitempty"` // scaled time only
	CacheHitRatio    float64       `json:"cache_hit_ratio"`
	CacheFull        bool          `json:"cache_full"` // set by the caller that filled it
	Client           struct {
		CPUShare  float64 `json:"cpu_share"` // of its cores
		SendLagMs struct {
			P99 float64 `json:"p99"` // host milliseconds
		} `json:"send_lag_ms"`
	} `json:"client"`
	Seconds    float64  `json:"seconds"` // measured part, host time
	Steady     bool     `json:"steady"`
	Pruned     bool     `json:"pruned,omitempty"`
	Windows    []Window `json:"windows"`
	Passes     int      `json:"passes"`
	Valid      bool     `json:"valid"`
	Invalid    string   `json:"invalid,omitempty"` // "client_limited", "failed_requests", "wrong_token_count", "client_hung"
	Advice     string   `json:"advice,omitempty"`
	ServerTokS float64  `json:"server_tok_s,omitempty"` // server's own figure for the same window, 0 unknown
	Flags      []string `json:"flags,omitempty"`        // remarks: "not steady", "server disagrees by 7%"
	Errors     []string `json:"errors,omitempty"`       // first few error texts
}
