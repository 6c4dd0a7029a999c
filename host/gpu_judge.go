package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Freed memory: the driver's own contexts come and go, so a GPU counts as freed when no more than this is in use
// beyond what was before the launch, for so many readings in a row.
const (
	MemorySlack = 512 << 20 // bytes
	FreedReads  = 2
)

// Held is a GPU that has not given its memory back.
type Held struct {
	GPU
	Before int64 // bytes in use before the launch
}

// Ghost reports whether the memory belongs to nobody the driver lists: the holder is in another container or
// virtual machine, or a dead process whose memory the driver has not let go.
func (h Held) Ghost() bool { return len(h.Processes) == 0 }

// Holders says in words who holds the memory.
func (h Held) Holders() string {
	if h.Ghost() {
		return "no process is listed: the holder is outside this container or VM"
	}
	who := make([]string, len(h.Processes))
	for i, p := range h.Processes {
		who[i] = strings.TrimSpace(fmt.Sprintf("pid %d %s", p.PID, p.Name))
	}
	return "held by " + strings.Join(who, ", ")
}

// StillHeld lists the GPUs that use more than before the launch (bytes by position) and MemorySlack. It goes by
// memory, not by pids: the driver's are the host's, which inside a container are not ours.
func StillHeld(before []int64, now []GPU) []Held {
	var held []Held
	for i, g := range now {
		if i < len(before) && g.Used > before[i]+MemorySlack {
			held = append(held, Held{GPU: g, Before: before[i]})
		}
	}
	return held
}

// FreedCheck decides from one reading after the other whether GPU memory is back. The zero value with
// Before set is ready to use.
type FreedCheck struct {
	Before []int64 // bytes in use on each GPU before the launch

	clean int
}

// Read takes a reading: freed is true once FreedReads in a row were clean, held is what this one shows. A
// reading without GPUs, or with another number of them, is never clean.
func (c *FreedCheck) Read(now []GPU) (freed bool, held []Held) {
	held = StillHeld(c.Before, now)
	if len(held) > 0 || len(now) == 0 || len(now) != len(c.Before) {
		c.clean = 0
		return false, held
	}
	c.clean++
	return c.clean >= FreedReads, nil
}

// GPUFault is a state of the GPUs in which no trial can be run or believed.
type GPUFault struct {
	Cause string // FaultLost, FaultECC or FaultMIG: causes of the failure vocabulary
	Text  string // which GPU, what is wrong, and what to do
}

// Causes of a GPUFault.
const (
	FaultLost = "gpu_lost"
	FaultECC  = "ecc"
	FaultMIG  = "mig_on"
)

// FaultOf finds the worst fault of a reading, nil when there is none: a lost GPU, then broken memory, then a GPU
// that is split into instances. What a driver does not tell is no fault.
func FaultOf(gpus []GPU, note string) *GPUFault {
	if TroubleOf(note) == TroubleLost {
		return &GPUFault{FaultLost, strings.TrimPrefix(note, notePrefix) + "; reset it or restart the host"}
	}
	for _, g := range gpus {
		if text := brokenMemory(g); text != "" {
			return &GPUFault{FaultECC, fmt.Sprintf("GPU %d%s %s; reset it (nvidia-smi --gpu-reset) or restart the host, and replace it if this comes back", g.Index, g.card(), text)}
		}
	}
	for _, g := range gpus {
		if g.MIG == Yes {
			return &GPUFault{FaultMIG, fmt.Sprintf("GPU %d%s is split into instances (MIG), so its memory is not that of a whole GPU; turn MIG off (nvidia-smi -i %d -mig 0)", g.Index, g.card(), g.Index)}
		}
	}
	return nil
}

// card names the slot, so that a person finds the card whatever the numbering.
func (g GPU) card() string {
	if g.PCI == "" {
		return ""
	}
	return " (" + g.PCI + ")"
}

func brokenMemory(g GPU) string {
	var says []string
	if n := g.UncorrectedECC; n.Known && n.Value > 0 {
		errs := "errors"
		if n.Value == 1 {
			errs = "error"
		}
		says = append(says, fmt.Sprintf("has had %.0f memory %s that it could not correct", n.Value, errs))
	}
	if g.RemapFailed == Yes {
		says = append(says, "could not replace a broken row of its memory")
	}
	if g.RemapPending == Yes {
		says = append(says, "waits for a reset to replace a broken row of its memory")
	}
	return strings.Join(says, " and ")
}

// A window counts as throttled from this share of its samples on, and not below so many: a tenth of the time at
// half the clock is the 5% difference from which on a report is flagged.
const (
	throttledShare   = 0.1
	throttledSamples = 3
)

// ThrottleWindow counts over a window how often the clocks were lowered, and why. A sample counts once, however
// many GPUs were affected: the slowest rank sets the pace.
type ThrottleWindow struct {
	Samples int                    // readings in which a driver told it
	Slowed  int                    // those with another reason than the power limit
	By      map[ThrottleReason]int // samples with each reason
}

// Add counts a reading.
func (w *ThrottleWindow) Add(gpus []GPU) {
	seen := map[ThrottleReason]bool{}
	known, slowed := false, false
	for _, g := range gpus {
		known = known || g.Throttle.Known
		slowed = slowed || g.Throttle.slowed()
		for _, reason := range g.Throttle.Reasons {
			seen[reason] = true
		}
	}
	if !known {
		return
	}
	w.Samples++
	if slowed {
		w.Slowed++
	}
	if w.By == nil {
		w.By = map[ThrottleReason]int{}
	}
	for reason := range seen {
		w.By[reason]++
	}
}

// Share is the share of the samples with a reason, 0 without samples.
func (w *ThrottleWindow) Share(reason ThrottleReason) float64 {
	if w.Samples == 0 {
		return 0
	}
	return float64(w.By[reason]) / float64(w.Samples)
}

// Throttled reports whether heat, hardware or the power supply slowed the GPUs for so long that the window's
// figures are the machine's. The power limit alone does not count: many cards run at it all the time under full
// load, in every trial alike.
func (w *ThrottleWindow) Throttled() bool {
	return w.Slowed >= throttledSamples && float64(w.Slowed) >= throttledShare*float64(w.Samples)
}

// Text names each reason with its share of the samples, "" when there was none.
func (w *ThrottleWindow) Text() string {
	var says []string
	for _, reason := range ThrottleReasons {
		if w.By[reason] > 0 {
			says = append(says, fmt.Sprintf("%s in %.0f%%", reason, 100*w.Share(reason)))
		}
	}
	if says == nil {
		return ""
	}
	return fmt.Sprintf("%s of %d samples", strings.Join(says, ", "), w.Samples)
}

// Foreign lists the processes on the GPUs that are not ours (pids of everything with our marker), each once, by
// pid. known is false where that cannot be told: processes are listed and none of them is ours while ours should be
// there, as in a container that does not share the host's pids; then memory has to decide.
func Foreign(gpus []GPU, ours []int) (list []GPUProcess, known bool) {
	mine := 0
	for _, g := range gpus {
		for _, p := range g.Processes {
			switch {
			case slices.Contains(ours, p.PID):
				mine++
			case !slices.ContainsFunc(list, func(q GPUProcess) bool { return q.PID == p.PID }):
				list = append(list, p)
			}
		}
	}
	if len(list) > 0 && len(ours) > 0 && mine == 0 {
		return nil, false
	}
	slices.SortFunc(list, func(a, b GPUProcess) int { return cmp.Compare(a.PID, b.PID) })
	return list, true
}
