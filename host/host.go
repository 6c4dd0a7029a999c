package host

import (
	"context"
	"errors"
	"net"
	"time"
)

// MarkerEnv is the environment variable that marks every process of a trial, on every kind of
// host; nothing else on the machine has it.
const MarkerEnv = "SGTUNE_TRIAL"

// Host is a machine that runs SGLang servers. Implementations: Local, Simulated, Remote (over a Link). All of
// them must pass the conformance suite of internal/hosttest.
type Host interface {
	// Start starts c in a session and process group of its own and returns at once. The process
	// is not tied to ctx: it lives until it ends or Stop is called.
	Start(ctx context.Context, c Command) (Process, error)
	// Find lists every living process (zombies are gone) whose environment carries
	// MarkerEnv=marker; an empty marker finds all marked ones. Containers of trials are listed too, also stopped ones.
	Find(ctx context.Context, marker string) ([]Process, error)
	// Usage reads GPUs and memory now. Missing GPU facts are not an error: Usage.GPUNote says why.
	Usage(ctx context.Context) (Usage, error)
	// Lease takes the one lease of this host, kept on the host. ErrLeased names the holder. The lease of
	// a dead holder is taken over. Release it with the returned function; it is never lost by a crash.
	Lease(ctx context.Context, holder string) (release func() error, err error)
	// Reach tells how to talk to a port of this host and who listens on it. Port 0 picks a free one.
	Reach(ctx context.Context, port int) (Endpoint, error)
}

// ErrLeased is wrapped by Lease's error when a living sgtune holds the host.
var ErrLeased = errors.New("host is leased")

// Command is one program to run on a host. Argv never passes through a shell.
type Command struct {
	Argv    []string
	Env     map[string]string // added to what the host's processes inherit
	Dir     string            // working directory, "" = sgtune's own
	LogPath string            // file that receives stdout and stderr together (appended)
	Marker  string            // value of MarkerEnv, "" = no marker (before, after, finish)
	// Container has Argv run in a container; Marker is needed then. The process is its holder: it prints the container's
	// log, passes SIGTERM on and ends as the container does. nil = no container.
	Container *Container
	Guard     *GuardLimits // the process is guarded within these, or it is not started; a Simulated has no guard. nil = none
}

// ID proves which process is meant: a pid alone can be reused.
type ID struct {
	BootID     string   `json:"boot_id"`
	PID        int      `json:"pid"`
	PGID       int      `json:"pgid"`
	StartTicks uint64   `json:"start_ticks"` // field 22 of /proc/PID/stat
	Marker     string   `json:"marker,omitempty"`
	Argv       []string `json:"argv,omitempty"`
	Container  string   `json:"container,omitempty"` // name of a found container; PID is 0 when nothing in it runs
}

// Process is one process on a host, either started here or found by its marker.
type Process interface {
	ID() ID
	// Log returns at most limit bytes of what this process and its children wrote, from offset on (0 = its
	// first byte, also when the file held something before); empty at its end. Found processes of a Local have no log.
	Log(ctx context.Context, offset int64, limit int) ([]byte, error)
	// Done is closed when the process has ended and Exit is valid.
	Done() <-chan struct{}
	// Exit tells how it ended; only valid after Done is closed.
	Exit() Exit
	// Stop ends the process: with grace > 0 SIGTERM to the main process alone and up to grace to end,
	// then SIGKILL to the whole group; with grace 0 SIGKILL to the group at once. It then waits, until ctx ends,
	// for every member of the group to be gone. A found process is only killed if its identity still holds.
	Stop(ctx context.Context, grace time.Duration) error
}

// Exit tells how a process ended. Code, Signal and OOMKilled are separate facts.
type Exit struct {
	Code      int       // exit status, -1 when a signal ended it
	Signal    int       // signal number, 0 when none
	OOMKilled bool      // a kernel or container counter says so
	At        time.Time // host time
	Known     bool      // false for a found process, whose status cannot be read
}

// Usage is what a host uses now. Byte figures are exact; a negative figure means not known.
type Usage struct {
	At             time.Time
	GPUs           []GPU
	GPUNote        string // why GPUs is empty ("no GPU facts: …"), "" when it is not
	BootID         string // of the running kernel: another one is another start of the machine
	Kernel         string // release of the kernel, "" unknown
	MemTotal       int64  // bytes
	MemAvailable   int64  // bytes, MemAvailable of /proc/meminfo
	CgroupHeadroom int64  // bytes left under the strictest cgroup limit, -1 without one
	OOMKills       int64  // kernel's counter (oom_kill of /proc/vmstat), -1 unknown
	CgroupOOMKills int64  // oom_kill of our cgroup's memory.events, -1 unknown
	Processes      int    // processes with any marker
	DiskRead       int64  // bytes those processes have had read from storage (read_bytes of /proc/PID/io), -1 unknown
}

// GPU is one accelerator's readings. Memory is always known: a GPU that does not tell it makes the whole
// reading fail, because held memory could not be told from free. What follows the processes may be unknown, which is
// the zero value of each and never the same as 0 or no.
type GPU struct {
	Index     int
	UUID      string
	Name      string
	Total     int64 // bytes
	Used      int64 // bytes
	Processes []GPUProcess

	PCI             string   `json:",omitempty"` // bus id, "00000000:17:00.0"; "" unknown
	Driver          string   `json:",omitempty"` // version of its driver, "" unknown
	PowerWatts      Figure   `json:",omitzero"`  // now
	PowerLimitWatts Figure   `json:",omitzero"`  // enforced
	EnergyJoules    Figure   `json:",omitzero"`  // since the driver was loaded
	SMClockMHz      Figure   `json:",omitzero"`
	MemoryClockMHz  Figure   `json:",omitzero"`
	TemperatureC    Figure   `json:",omitzero"` // of the chip
	Throttle        Throttle `json:",omitzero"` // why its clocks are lowered now
	UncorrectedECC  Figure   `json:",omitzero"` // memory errors that could not be corrected, since the driver was loaded
	RemapPending    Answer   `json:",omitzero"` // a broken row waits for a reset to be replaced
	RemapFailed     Answer   `json:",omitzero"` // a broken row could not be replaced
	MIG             Answer   `json:",omitzero"` // it is split into instances
}

// GPUProcess is one holder of GPU memory as the driver lists it (host pids: inside a container they need not match ours).
type GPUProcess struct {
	PID  int
	Used int64  // bytes
	Name string // short command name when it can be read
}

// Endpoint is how to reach one port of a host.
type Endpoint struct {
	Port      int
	URL       string                                                            // http://127.0.0.1:PORT
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error) // nil = ordinary dialling
	Listening bool
	Owners    []int // pids that listen on it, where they can be read
}
