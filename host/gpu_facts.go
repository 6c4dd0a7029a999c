package host

import (
	"context"
	"strings"
	"sync"
)

// GPUFacts reads the GPUs of this machine through NVML, and by nvidia-smi where the library cannot be used. The way
// of the first answer is kept: the two need not agree on what counts as used memory. It must not be copied after
// the first Read.
type GPUFacts struct {
	NVML *Probe // nil in a program without cgo
	SMI  *SMI   // nil = no fallback

	mu     sync.Mutex
	chosen GPUReader
}

// Read returns the GPUs, or none and a note that says why; see GPUReader.
func (f *GPUFacts) Read(ctx context.Context) ([]GPU, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.chosen != nil {
		return f.chosen(ctx)
	}
	var said []string
	for _, way := range f.ways() {
		gpus, note := way(ctx)
		if note == "" {
			f.chosen = way
			return gpus, ""
		}
		said = append(said, strings.TrimPrefix(note, notePrefix))
		if trouble := TroubleOf(note); trouble != TroubleNoLibrary && trouble != TroubleOld && trouble != TroubleOther {
			break // nvidia-smi would ask the same driver
		}
	}
	return nil, notePrefix + strings.Join(said, "; ")
}

func (f *GPUFacts) ways() []GPUReader {
	var ways []GPUReader
	if f.NVML != nil {
		ways = append(ways, f.NVML.Read)
	}
	if f.SMI != nil {
		ways = append(ways, f.SMI.Read)
	}
	return ways
}
