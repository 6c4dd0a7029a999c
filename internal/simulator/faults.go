package simulator

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Faults is what --sim-fault asks for. Times that end in At are simulated seconds after ready, +Inf = never.
type Faults struct {
	LoadOOM, HostOOM, LoadHang bool
	PortTaken, NoReadyLine     bool
	BusyHealth                 bool
	IgnoreTerm, Sticky, Ghost  bool

	PrefillOOMAt, HangAt, WatchdogAt, SilentAt float64
	SchedulerKilledAt, NCCLAt, CUDAAt          float64

	SlowLoadS       float64 // longer load
	LongPrefillS    float64 // longer prefill steps
	StartingHealthS float64 // /health goes on answering 503 this long after ready
}

func noFaults() Faults {
	never := math.Inf(1)
	return Faults{
		PrefillOOMAt: never, HangAt: never, WatchdogAt: never, SilentAt: never,
		SchedulerKilledAt: never, NCCLAt: never, CUDAAt: never,
	}
}

// fault is one word of --sim-fault.
type fault struct {
	name string
	arg  argument
	text string // for --help
	set  func(f *Faults, seconds float64)
}

// argument says whether a fault takes ":SECONDS".
type argument uint8

const (
	noTime       argument = iota
	optionalTime          // 0 without
	neededTime
)

// faults in the order a server meets them.
var faults = []fault{
	{"load_oom", noTime, "GPU memory runs out while loading weights", func(f *Faults, _ float64) { f.LoadOOM = true }},
	{"slow_load", neededTime, "the weights take this much longer", func(f *Faults, s float64) { f.SlowLoadS = s }},
	{"load_hang", noTime, "the load stands still half-way, in silence", func(f *Faults, _ float64) { f.LoadHang = true }},
	{"host_oom", noTime, "the kernel kills a rank while the host pool is pinned", func(f *Faults, _ float64) { f.HostOOM = true }},
	{"port_taken", noTime, "the HTTP port cannot be bound", func(f *Faults, _ float64) { f.PortTaken = true }},
	{"health_starting", optionalTime, "/health answers 503 for this long after ready, without a time for ever", func(f *Faults, s float64) {
		if f.StartingHealthS = s; s == 0 {
			f.StartingHealthS = math.Inf(1)
		}
	}},
	{"no_ready_line", noTime, "the ready line is not printed", func(f *Faults, _ float64) { f.NoReadyLine = true }},
	{"empty_health", noTime, "the body of /health is empty: so it always is, here as in SGLang; nothing changes", func(*Faults, float64) {}},
	{"busy_503", noTime, "/health answers 503 after its 20 s while requests run, whatever they get", func(f *Faults, _ float64) { f.BusyHealth = true }},
	{"long_prefill", neededTime, "each prefill step takes this much longer", func(f *Faults, s float64) { f.LongPrefillS = s }},
	{"prefill_oom", optionalTime, "GPU memory runs out in the first prefill from then on", func(f *Faults, s float64) { f.PrefillOOMAt = s }},
	{"hang", optionalTime, "from then on no step ends and nothing is printed", func(f *Faults, s float64) { f.HangAt = s }},
	{"watchdog", optionalTime, "as hang, until SGLang's own watchdog ends the server", func(f *Faults, s float64) { f.WatchdogAt = s }},
	{"silent_death", optionalTime, "the whole tree is gone, without a word", func(f *Faults, s float64) { f.SilentAt = s }},
	{"scheduler_killed", optionalTime, "a scheduler is killed (-9); before 0.5.10 the rest waits for it for ever", func(f *Faults, s float64) { f.SchedulerKilledAt = s }},
	{"nccl", optionalTime, "a collective operation times out", func(f *Faults, s float64) { f.NCCLAt = s }},
	{"cuda_error", optionalTime, "a kernel makes an illegal memory access", func(f *Faults, s float64) { f.CUDAAt = s }},
	{"ignore_term", noTime, "SIGTERM is ignored", func(f *Faults, _ float64) { f.IgnoreTerm = true }},
	{"sticky", noTime, "GPU memory stays held after the end", func(f *Faults, _ float64) { f.Sticky = true }},
	{"ghost", noTime, "as sticky, with no process to blame", func(f *Faults, _ float64) { f.Ghost = true }},
}

// spelling is the word with its argument, as --help shows it.
func (f fault) spelling() string {
	switch f.arg {
	case optionalTime:
		return f.name + "[:S]"
	case neededTime:
		return f.name + ":S"
	default:
		return f.name
	}
}

// faultWords lists all spellings.
func faultWords() string {
	words := make([]string, len(faults))
	for i, f := range faults {
		words[i] = f.spelling()
	}
	return strings.Join(words, " ")
}

// ParseFaults reads a list such as "prefill_oom:30,ignore_term": the value of --sim-fault, and a study's
// host.faults joined by commas. The error names the known faults.
func ParseFaults(spec string) (Faults, error) {
	out := noFaults()
	for word := range strings.SplitSeq(spec, ",") {
		name, arg, has := strings.Cut(strings.TrimSpace(word), ":")
		if name == "" || name == "none" {
			continue
		}
		f, err := lookupFault(name)
		if err != nil {
			return out, err
		}
		if has && f.arg == noTime || !has && f.arg == neededTime {
			return out, fmt.Errorf("fault %q: write it as %s", word, f.spelling())
		}
		seconds := 0.0
		if has {
			seconds, err = strconv.ParseFloat(strings.TrimSuffix(arg, "s"), 64)
			if err != nil || !(seconds >= 0) || math.IsInf(seconds, 0) {
				return out, fmt.Errorf("fault %q: %q is not a number of seconds", name, arg)
			}
		}
		f.set(&out, seconds)
	}
	return out, nil
}

func lookupFault(name string) (fault, error) {
	for _, f := range faults {
		if f.name == name {
			return f, nil
		}
	}
	return fault{}, fmt.Errorf("unknown fault %q; known: %s", name, faultWords())
}
