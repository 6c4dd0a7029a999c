package simulator

import "strings"

// Settings is what the model needs of a launch's flags; zero values mean SGLang's automatic choice.
type Settings struct {
	Model, Served     string
	Host              string
	Port              int
	TP                int
	Fraction          float64
	KVDtype           string
	MaxTotalTokens    int
	MaxRunning        int
	MaxQueued         int
	Chunk             int
	MaxPrefillTokens  int
	PageSize          int
	Policy            string
	Conservativeness  float64
	MixedChunk        bool
	DisableRadix      bool
	ContextLen        int
	Hicache           bool
	HicacheGB         float64
	HicacheRatio      float64
	WritePolicy       string
	GraphMaxBS        int
	DisableGraphs     bool
	DecodeLogInterval int
	StreamInterval    int
	SkipWarmup        bool
	WatchdogS         float64
	APIKey, AdminKey  string
	Metrics           bool // --enable-metrics
	CacheReport       bool // --enable-cache-report
	Incremental       bool // --incremental-streaming-output
	DefaultUsage      bool // --stream-response-default-include-usage
	Sim               SimSettings
}

// SimSettings are the simulator's own flags (--sim-...).
type SimSettings struct {
	Profile   string
	TimeScale float64
	Seed      uint64
	StartupS  float64 // simulated seconds from process start to ready, host pool not counted
	Faults    Faults
}

func (s *Settings) hicache() bool { return s.Hicache }

// graphsOff is how many ways SGLang has to switch decode graphs off.
func graphsOff(a *Args) bool {
	return a.Bool("disable_cuda_graph") || a.Bool("disable_decode_cuda_graph") || a.Text("cuda_graph_backend_decode") == "disabled"
}

// settings reads the parsed flags; the parser has checked types and choices already.
func (a *Args) settings(p *Profile) Settings {
	s := Settings{
		Model: a.Text("model_path"), Served: a.Text("served_model_name"),
		Host: a.Text("host"), Port: a.Int("port"), TP: a.Int("tp_size"),
		Fraction: a.Float("mem_fraction_static"), KVDtype: a.Text("kv_cache_dtype"),
		MaxTotalTokens: a.Int("max_total_tokens"), MaxRunning: a.Int("max_running_requests"), MaxQueued: a.Int("max_queued_requests"),
		Chunk: a.Int("chunked_prefill_size"), MaxPrefillTokens: a.Int("max_prefill_tokens"), PageSize: max(a.Int("page_size"), 1),
		Policy: a.Text("schedule_policy"), Conservativeness: a.Float("schedule_conservativeness"), MixedChunk: a.Bool("enable_mixed_chunk"),
		DisableRadix: a.Bool("disable_radix_cache"), ContextLen: a.Int("context_length"),
		Hicache: a.Bool("enable_hierarchical_cache"), HicacheGB: float64(a.Int("hicache_size")), HicacheRatio: a.Float("hicache_ratio"),
		WritePolicy: a.Text("hicache_write_policy"), GraphMaxBS: max(a.Int("cuda_graph_max_bs_decode"), a.Int("cuda_graph_max_bs")), DisableGraphs: graphsOff(a),
		DecodeLogInterval: max(a.Int("decode_log_interval"), 1), StreamInterval: max(a.Int("stream_interval"), 1),
		SkipWarmup: a.Bool("skip_server_warmup"), WatchdogS: a.Float("watchdog_timeout"), APIKey: a.Text("api_key"), AdminKey: a.Text("admin_api_key"),
		Metrics: a.Bool("enable_metrics"), CacheReport: a.Bool("enable_cache_report"),
		Incremental: a.Bool("incremental_streaming_output"), DefaultUsage: a.Bool("stream_response_default_include_usage"),
		Sim: a.sim,
	}
	if s.ContextLen == 0 {
		s.ContextLen = p.ContextLen
	}
	if s.Served == "" {
		s.Served = s.Model
	}
	if s.HicacheRatio == 0 {
		s.HicacheRatio = 2
	}
	if strings.HasPrefix(s.KVDtype, "bf") {
		s.KVDtype = "auto"
	}
	return s
}
