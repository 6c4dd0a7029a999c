package host

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// GPUEnergy is what one GPU says of its energy; a negative figure means not known.
type GPUEnergy struct {
	Index  int     `json:"index"`
	UUID   string  `json:"uuid"`
	Joules float64 `json:"joules"` // used since the driver was loaded
	Watts  float64 `json:"watts"`  // now
}

// DriverPresent reports whether this machine may have an NVIDIA driver, without touching it: a probe costs
// the start of a program, and most machines without GPUs can be told by their lack of the driver's devices.
func DriverPresent() bool {
	for _, path := range []string{"/dev/nvidiactl", "/dev/dxg"} { // the second under WSL
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// energyReading is what "nvml-probe --energy" prints: one JSON object on one line.
type energyReading struct {
	GPUs      []GPUEnergy `json:"gpus,omitempty"`
	Error     string      `json:"error,omitempty"`
	NoLibrary bool        `json:"no_library,omitempty"`
}

// EnergyMain is ProbeMain for energy: the body of "sgtune nvml-probe --energy".
func EnergyMain(w io.Writer, library string) error {
	gpus, err := ReadEnergy(library)
	r := energyReading{GPUs: gpus, NoLibrary: errors.Is(err, ErrNoLibrary)}
	if err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("print GPU energy: %w", err)
	}
	return nil
}

// Energy reads the energy of all GPUs by running a program that calls EnergyMain. Like Read it takes
// Timeout and a second at most.
func (p *Probe) Energy(ctx context.Context) ([]GPUEnergy, error) {
	out, err := p.Output(ctx)
	if err != nil {
		return nil, err
	}
	var r energyReading
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("the GPU probe printed no reading: %w", err)
	}
	switch {
	case r.NoLibrary:
		return nil, ErrNoLibrary
	case r.Error != "":
		return nil, errors.New(r.Error)
	case len(r.GPUs) == 0:
		return nil, errors.New("the NVIDIA driver " + phraseNoGPU)
	}
	return r.GPUs, nil
}

// SMIEnergyArgv is the command whose output SMIEnergy reads, for programs without cgo. It tells power only:
// nvidia-smi has no query for the energy counter.
func SMIEnergyArgv() []string {
	return []string{"nvidia-smi", "--query-gpu=index,uuid,power.draw", "--format=csv,noheader,nounits"}
}

// SMIEnergy reads the power of all GPUs by a Probe that runs SMIEnergyArgv.
func SMIEnergy(ctx context.Context, p *Probe) ([]GPUEnergy, error) {
	out, err := p.Output(ctx)
	if err != nil {
		return nil, err
	}
	return parseSMIEnergy(string(out))
}

// parseSMIEnergy reads lines like "0, GPU-fa4e0000-..., 75.12". A GPU without a reading says [N/A] or
// [Not Supported].
func parseSMIEnergy(out string) ([]GPUEnergy, error) {
	lines := csv.NewReader(strings.NewReader(out))
	lines.FieldsPerRecord, lines.TrimLeadingSpace = 3, true
	var gpus []GPUEnergy
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read power of nvidia-smi: %w", err)
		}
		index, err := strconv.Atoi(strings.TrimSpace(line[0]))
		if err != nil {
			return nil, fmt.Errorf("read power of nvidia-smi: GPU %q: %w", line[0], err)
		}
		g := GPUEnergy{Index: index, UUID: strings.TrimSpace(line[1]), Joules: -1, Watts: -1}
		if power := strings.TrimSpace(line[2]); !strings.HasPrefix(power, "[") {
			if g.Watts, err = strconv.ParseFloat(power, 64); err != nil {
				return nil, fmt.Errorf("read power of nvidia-smi: GPU %d: %w", index, err)
			}
		}
		gpus = append(gpus, g)
	}
	if len(gpus) == 0 {
		return nil, errors.New("nvidia-smi lists no GPU")
	}
	return gpus, nil
}
