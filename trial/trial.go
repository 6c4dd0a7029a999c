package trial

import (
	"context"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
)

// Role tells why a trial was launched.
type Role string

// Roles. Confirmation launches are rows like any other but do not count against the trial budget.
const (
	RoleBaseline Role = "baseline"
	RoleSearch   Role = "search"
	RoleConfirm  Role = "confirm"
)

// Trial is one launched configuration: the row of the store. Only Runner and Recover change its
// State; a finished row (complete, pruned, failed, cancelled) never changes again except for its void mark.
// All times are host time.
type Trial struct {
	Study   string        `json:"study"`
	Number  int           `json:"number"` // never reused; 0 is the baseline
	Role    Role          `json:"role"`
	Config  sglang.Config `json:"config"`           // knobs only, by SGLang's flag names
	Why     string        `json:"why"`              // the sampler's reason
	Reason  *Reason       `json:"reason,omitempty"` // the same in figures, nil from samplers without a model
	Sampler string        `json:"sampler"`
	Plan    []int         `json:"plan"` // concurrency of each load level to measure, in this order
	State   State         `json:"state"`
	Step    Step          `json:"step"` // of a finished row: the step in which it ended (save when it ran to its end)
	Verdict Verdict       `json:"verdict"`
	Value   *float64      `json:"value,omitempty"` // objective at its best level; nil where none was measured
	Best    int           `json:"best_level"`      // concurrency of that level, 0 without value
	Levels  []Level       `json:"levels"`
	Void    string        `json:"void"`    // reason; a void trial is not ranked
	Adopted bool          `json:"adopted"` // its server was taken over from a sgtune that died: Adoptions
	Release Release       `json:"release"`

	Memory     sglang.Observation     `json:"memory"`              // from the server's log
	LowWater   int64                  `json:"low_water_bytes"`     // least free GPU memory seen under load, -1 unknown
	OwnRAM     int64                  `json:"own_ram_bytes"`       // largest fall of MemAvailable from launch to just before the host pool, -1 unknown
	MinRAM     int64                  `json:"min_available_bytes"` // least MemAvailable seen, -1 unknown
	Startup    time.Duration          `json:"startup"`             // launch to ready, 0 when never ready
	Steps      map[Step]time.Duration `json:"steps"`               // time spent in each step so far
	Cache      Cache                  `json:"cache"`
	MaxRunning float64                `json:"max_running"` // largest #running-req the server printed

	// CanaryShrunk asks for the smaller canary: the trace's own worst minute instead of prompts all of
	// p99 length. The loop sets it when the baseline failed the full canary, once, and runs the
	// baseline again with it; from then on every trial of the study carries it.
	CanaryShrunk bool `json:"canary_shrunk,omitempty"`

	// GPUBaseline is the memory in use on each GPU before the launch, in bytes; nil without GPU facts.
	// Recover compares with it after a crash of sgtune.
	GPUBaseline []int64 `json:"gpu_baseline_bytes,omitempty"`

	SGLang string `json:"sglang"` // version the server reported, "" when it was never ready

	Process   host.ID   `json:"process"`
	Port      int       `json:"port"`
	Marker    string    `json:"marker"`
	Dir       string    `json:"dir"`  // evidence folder, relative to the study's files
	Argv      []string  `json:"argv"` // as launched, secrets masked
	CreatedAt time.Time `json:"created_at"`
	StartedAt time.Time `json:"started_at"` // zero until launched
	EndedAt   time.Time `json:"ended_at"`   // zero until finished

	Adoptions []Adoption `json:"adoptions,omitempty"` // oldest first
}

// Level is one measured load level of a trial.
type Level struct {
	Concurrency int               `json:"concurrency"`
	Report      *benchmark.Report `json:"report"`
	StartedAt   time.Time         `json:"started_at"`
	EndedAt     time.Time         `json:"ended_at"`
}

// Cache says how the cache protocol went before the measured rows.
type Cache struct {
	Flushed      bool   `json:"flushed"`
	FillWanted   int64  `json:"fill_wanted_tokens"` // prompt tokens the fill should admit, 0 = no fill needed
	FillAdmitted int64  `json:"fill_admitted_tokens"`
	Full         bool   `json:"full"` // false with FillWanted > 0: hicache effects are lower bounds
	FillPasses   int    `json:"fill_passes"`
	Note         string `json:"note"`
}

// Release says whether the host was proven clean after the trial.
type Release string

// Releases.
const (
	ReleaseNone       Release = ""             // not reached yet
	ReleaseVerified   Release = "verified"     // no process, GPU memory back, port free
	ReleaseUnverified Release = "not verified" // no process, port free, but no GPU facts
	ReleaseDirty      Release = "dirty"        // something is still held: Verdict names it
)

// Verdict is why a trial ended: the schema of the failure vocabulary.
type Verdict struct {
	Outcome  Outcome            `json:"outcome"`
	Phase    sglang.Phase       `json:"phase"`
	Cause    string             `json:"cause"`
	Blames   Blame              `json:"blames_config"`
	Numbers  map[string]float64 `json:"numbers,omitempty"`
	Findings []Finding          `json:"findings,omitempty"`
	Evidence string             `json:"evidence,omitempty"` // quoted line
	Line     int                `json:"evidence_line,omitempty"`
	Offset   int64              `json:"evidence_offset,omitempty"` // where Line begins in the log as it was read: near there in the stored one, whose secrets are masked
	Advice   []string           `json:"advice,omitempty"`          // closed list of codes
	Text     string             `json:"text"`                      // one sentence for a person, with numbers
	Also     []int              `json:"evidence_also,omitempty"`   // other lines that prove the same

	FailingRanks  []int    `json:"failing_ranks,omitempty"`  // ranks of the first cause, not of what followed
	RejectedFlags []string `json:"rejected_flags,omitempty"` // flags SGLang did not take, as they were written
}

// Finding is a secondary observation worth showing.
type Finding struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Blame says whether the search may learn from a trial.
type Blame string

// Blames.
const (
	BlameYes    Blame = "yes"
	BlameNo     Blame = "no"
	BlamePartly Blame = "partly"
)

// Outcome is how a trial ended: the closed list.
type Outcome string

// Outcomes.
const (
	OK                Outcome = "ok"
	Degraded          Outcome = "degraded"
	GPUOOM            Outcome = "gpu_oom"
	HostOOM           Outcome = "host_oom"
	ConfigRejected    Outcome = "config_rejected"
	EnvFault          Outcome = "env_fault"
	Crashed           Outcome = "crashed"
	StartupTimeout    Outcome = "startup_timeout"
	Stuck             Outcome = "stuck"
	MonitorWrong      Outcome = "monitor_wrong"
	Unreachable       Outcome = "unreachable"
	BenchInvalid      Outcome = "bench_invalid"
	QualityRejected   Outcome = "quality_rejected"
	QualityUnmeasured Outcome = "quality_unmeasured"
	DirtyHost         Outcome = "dirty_host"
	Aborted           Outcome = "aborted"
	Unknown           Outcome = "unknown"
)

// Saver stores a trial: the row and its load levels in one transaction, guarded by the state
// transition (a finished row cannot be changed).
type Saver interface {
	SaveTrial(ctx context.Context, t *Trial) error
}

// Progress is a live report of a running trial; it is shown, not stored.
type Progress struct {
	Number   int // of the trial
	Step     Step
	Text     string            // what is happening, in plain words
	Elapsed  time.Duration     // in this step
	Expected time.Duration     // learnt or configured length of this step, 0 unknown
	Window   *benchmark.Window // newest window while measuring
	Level    int
}
