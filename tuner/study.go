package tuner

import (
	"context"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// Study is one search as the study file describes it, defaults filled in, units resolved.
type Study struct {
	Name          string
	Path          string // study file, "" when it came from elsewhere
	Source        []byte // the file as read, secrets masked
	Server        sglang.Server
	Baseline      sglang.Config // what runs today: knob values of trial 0
	ReadyTimeout  time.Duration
	Port          int // fixed by the user ("port" among the flags), 0 = chosen
	Before, After []string
	Host          HostSpec
	Space         Space
	Workload      WorkloadSpec
	Objective     Objective
	Quality       string // "bf16-only"
	Measure       MeasureSpec
	Confirm       int    // launches each side, 0 = auto
	Sampler       string // physics | tpe | random | grid
	Recover       string // RecoverReclaim | RecoverAdopt
	Seed          int64
	Budget        Budget
	Finish        Finish
	Simulated     bool // the servers are sim-server: everything shown says SIMULATED
	// Passed is laid under the configuration of every search trial, never under the baseline, which
	// runs as the user runs it: kv-cache-dtype bf16 where the user leaves the choice to SGLang.
	Passed   sglang.Config
	Excluded []Exclusion // values of the file's space that a rule left out
	Notes    []string    // what was decided for the user, in plain words
}

// Exclusion is one value of the study file's space that a rule keeps out.
type Exclusion struct {
	Knob  string
	Value any
	Rule  string // "quality"
	Text  string // one sentence that names the rule and the value
}

// HostSpec is the host part of a study file.
type HostSpec struct {
	Kind           string        // local | ssh | slurm | simulated
	Address        string        // of an ssh host, or of a login node of Slurm: what ssh is called with; "" = Slurm's commands are on this machine
	SSHConfig      string        // file for ssh -F, absolute, "" = the user's
	RAMBudgetBytes float64       // what host pools may take in all, 0 = no rule 1
	RAMBudgetText  string        // as written
	RAMPerRank     float64       // bytes, when ram_budget was written per rank; RAMBudgetBytes is this times the ranks
	RAMFloorBytes  float64       // what must stay free of the host's memory, else the guard ends the server; 0 = the guard's own choice
	WorkDir        string        // where a host's files go, absolute (of an ssh host: or relative to the home folder there), "" = the default
	ReplayFrom     string        // host | here (ReplayHere)
	TunerGone      time.Duration // how long a sgtune that is not heard keeps the host
	Slurm          SlurmSpec
	// Simulated hosts only.
	Profile   string
	TimeScale float64
	Startup   time.Duration // simulated start-up
	Seed      int64
	Faults    []string
	RAMBytes  float64 // total host RAM, default 449e9
}

// SlurmSpec is what each job of a Slurm host asks its site for. Empty values are left to the site.
type SlurmSpec struct {
	Partition, Account string
	Gres               string        // "gpu:h200:8"
	CPUs               int           // processors of the job, 0 = as the site has it
	Memory             float64       // bytes, 0 = as the site has it
	TimeLimit          time.Duration // of a job, 0 = the partition's
	QueueLimit         time.Duration // longest wait for a node, 0 = no limit but the study's own
	Parallel           int           // trials at once, at least 1
}

// WorkloadSpec is the workload part of a study file.
type WorkloadSpec struct {
	File        string  // absolute
	Concurrency []int   // load levels, ascending
	Target      float64 // half-width that ends a level, 0.03
	Cap         time.Duration
	Total       int // requests of the whole job, 0 unknown
}

// MeasureSpec is the measure part of a study file.
type MeasureSpec struct {
	Window, Max, Canary, Fill time.Duration
}

// Budget ends the search: whichever comes first.
type Budget struct {
	Trials int           // baseline and search launches, 0 = no limit
	Wall   time.Duration // host time, 0 = no limit
	Until  string        // "07:00", host's clock, "" = no limit
	// UntilAt is when the host's clock will show Until, told by the study's clock, in the host's zone; zero where the
	// study's clock is the host's own.
	UntilAt time.Time
}

// Finish is what happens however the study ends.
type Finish struct {
	Launch string // best | baseline | none
	Notify []Notify
}

// Notify is one notification: a program to run where sgtune runs, or a URL to post to.
type Notify struct {
	Run []string
	URL string
}

// Sampler proposes configurations. Implementations keep no memory between calls: everything they
// may know is in the Problem, so resuming after a crash is the ordinary path.
type Sampler interface {
	Sample(ctx context.Context, p Problem) (Proposal, error)
	Recommend(ctx context.Context, p Problem) (sglang.Config, error)
}

// Problem is what a sampler may know.
type Problem struct {
	Space Space
	Admit func(sglang.Config) error // nil error = admitted now; *Infeasible otherwise
	// Refused is told of each admitted point that the sampler's own caution passed over; may be nil.
	Refused  func(sglang.Config, error)
	Workload *benchmark.Workload
	Levels   []int
	History  []*trial.Trial // finished, oldest first, void ones included (marked)
	Pending  []*trial.Trial // running or waiting elsewhere
	Baseline sglang.Config
	Base     sglang.Config // laid under every point: what baseline and study set outside of the space
	Seed     int64

	// What models of a server may know besides; zero values are unknown.
	Flags     sglang.Config  // fixed flags of every launch, the baseline's too
	Version   sglang.Version // of the installed SGLang
	GPUGiB    float64        // memory of the smallest GPU
	PoolGB    float64        // most that host pools may take in all by both RAM rules, decimal GB
	Objective Objective
	Remaining int // trials that still fit, the one asked for included; 0 = not known
}

// Proposal is a sampler's answer.
type Proposal struct {
	Config     sglang.Config
	Levels     []int         // load levels worth measuring, nil = the loop's choice
	AbortBelow float64       // objective below which the trial may be pruned; the loop takes it where it is stricter than its own limit, 0 = none
	Why        string        // plain words, stored and shown
	Reason     *trial.Reason // the same in figures, nil from samplers without a model
	Sampler    string        // "physics", "sobol", "tpe", "random", "grid"
	Skipped    int           // points skipped because they were not admitted
}

// Event is one stored happening of a study.
type Event struct {
	At     time.Time     `json:"at"`
	Kind   string        `json:"kind"` // admit, reject, step, finding, requeue, verdict, command, host, plan, ...
	Text   string        `json:"text"`
	Config sglang.Config `json:"config,omitempty"`
	Trial  *int          `json:"trial,omitempty"`
}

// StudyState is where a study stands.
type StudyState string

// Study states.
const (
	StudyRunning  StudyState = "running"
	StudyComplete StudyState = "complete"
	StudyStopped  StudyState = "stopped"
)

// Record is the stored row of a study.
type Record struct {
	Name                          string
	State                         StudyState
	Reason                        string // why it stopped, "" otherwise
	Simulated                     bool
	Host                          string            // shown name: "simulated kimi-8x96", "local", ...
	Source                        string            // study file, masked
	Identity                      map[string]string // section (server, host, workload, objective, quality) to canonical text; compared on resume
	Verdict                       *Verdict
	Confirm                       int           // launches each side fixed beforehand, 0 = not yet fixed
	Candidate                     sglang.Config // chosen for confirmation, nil before
	Second                        sglang.Config // the second candidate, fixed with the first; nil = none
	BaselineConfig                sglang.Config
	AfterDone                     string        // result of after: "", "ok", "failed: ...", "not run: ..."
	AfterDue                      bool          // before: ran, so after: must run, also after a crash
	Releases                      string        // host state at the end in words
	Machine                       *Machine      // what the host was when the first trials ran, nil before, and in old databases
	Server                        sglang.Server // masked secrets are references
	Objective                     string
	CreatedAt, StartedAt, EndedAt time.Time // host time
}

// Verdict is the study's answer.
type Verdict struct {
	Answer        string        `json:"answer"` // better | no difference found | worse | not confirmed
	Gain          float64       `json:"gain"`   // relative
	Low           *float64      `json:"gain_low,omitempty"`
	High          *float64      `json:"gain_high,omitempty"`
	Trial         int           `json:"trial"` // search trial whose configuration was confirmed
	Config        sglang.Config `json:"config"`
	BaselineValue float64       `json:"baseline_value"`
	Value         float64       `json:"value"`
	Level         int           `json:"level"`
	Launches      int           `json:"launches"`             // each side
	Detectable    float64       `json:"detectable,omitempty"` // smallest gain these launches could have shown
	MannWhitneyP  *float64      `json:"mann_whitney_p,omitempty"`
	Why           string        `json:"why"` // tie-breaks, in words
	Text          string        `json:"text"`
	Looked        float64       `json:"looked,omitempty"` // relative gain of Trial over the baseline in the search, 0 unknown
	Notes         []string      `json:"notes,omitempty"`  // what else Text tells beside the figures above, each a sentence

	Total         int     `json:"total,omitempty"`          // requests of the whole job, 0 unknown
	Hours         float64 `json:"hours,omitempty"`          // it takes with Config, 0 unknown
	BaselineHours float64 `json:"baseline_hours,omitempty"` // and with the baseline
}

// Command is one request of a person to a running study, a row of the commands table.
type Command struct {
	ID     int64
	Kind   string        // stop_after_trial | stop_now | void | enqueue
	Trial  int           // for void
	Config sglang.Config // for enqueue
	Text   string        // reason
	At     time.Time     // when it was asked for; real time
	By     string        // who asked, "" unknown

	Once    string    // names the form it came from: sent twice, it is one request; "" = each is its own
	TakenAt time.Time // zero while it waits
}

// Store is what the loop needs of the database.
type Store interface {
	trial.Saver
	// Trials lists all trials of a study, oldest first.
	Trials(ctx context.Context, study string) ([]*trial.Trial, error)
	// VoidTrial marks a finished trial as contaminated: it is not ranked. Nothing else of it changes. ErrNoTrial when there is none.
	VoidTrial(ctx context.Context, study string, number int, reason string) error
	// SaveStudy inserts or updates the study's row.
	SaveStudy(ctx context.Context, r *Record) error
	// AddEvent appends an event.
	AddEvent(ctx context.Context, study string, e Event) error
	// TakeCommand hands out the oldest untaken command once (guarded update), nil when there is none.
	TakeCommand(ctx context.Context, study string) (*Command, error)
}
