//go:build cgo

package host

import (
	"errors"
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// notAvailable is NVML_VALUE_NOT_AVAILABLE, in place of a process's memory under some drivers.
const notAvailable = math.MaxUint64

// functions that every driver we support has. A call of a function that the loaded library lacks
// ends the whole process and cannot be recovered from, so each is looked up first.
var functions = []string{
	"nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName",
	"nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetComputeRunningProcesses",
}

// ReadGPUs reads every GPU through the NVIDIA management library at the path (empty = its usual
// name). One GPU that does not answer makes the whole reading an error: memory on it could not be
// told free from held. Call it in a process of its own (ProbeMain): a driver can block it for ever.
func ReadGPUs(library string) (gpus []GPU, err error) {
	return eachGPU(library, functions, readGPU)
}

// eachGPU opens the library, makes sure that it has the functions, and reads every GPU with read.
func eachGPU[T any](library string, functions []string, read func(lib nvml.Interface, index int) (T, error)) (all []T, err error) {
	var opts []nvml.LibraryOption
	if library != "" {
		opts = append(opts, nvml.WithLibraryPath(library))
	}
	lib := nvml.New(opts...)
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, ErrNoLibrary
	default:
		return nil, fmt.Errorf("%s: %w", phraseNoDriver, failed("initialise NVML", ret))
	}
	for _, name := range functions {
		if lib.Extensions().LookupSymbol(name) != nil {
			return nil, fmt.Errorf("%s: its library lacks %s", phraseOld, name)
		}
	}
	defer func() {
		if ret := lib.Shutdown(); ret != nvml.SUCCESS {
			err = errors.Join(err, failed("shut NVML down", ret))
		}
	}()
	n, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, failed("count GPUs", ret)
	}
	for i := range n {
		g, err := read(lib, i)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		all = append(all, g)
	}
	return all, nil
}

func readGPU(lib nvml.Interface, index int) (GPU, error) {
	g := GPU{Index: index}
	dev, ret := lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return g, failed("open", ret)
	}
	if g.Name, ret = dev.GetName(); ret != nvml.SUCCESS {
		return g, failed("read name", ret)
	}
	if g.UUID, ret = dev.GetUUID(); ret != nvml.SUCCESS {
		return g, failed("read UUID", ret)
	}
	if g.Total, g.Used, ret = readGPUMemory(lib, dev); ret != nvml.SUCCESS {
		return g, failed("read memory", ret)
	}
	var err error
	if g.Processes, err = readGPUProcesses(lib, dev); err != nil {
		return g, err
	}
	return g, readGPUFacts(lib, dev, &g)
}

// readGPUMemory prefers version 2, which does not count the driver's reserved part as used. Which
// one is taken depends on the driver alone, so two readings of one machine can be compared.
func readGPUMemory(lib nvml.Interface, dev nvml.Device) (total, used int64, ret nvml.Return) {
	if lib.Extensions().LookupSymbol("nvmlDeviceGetMemoryInfo_v2") == nil {
		m, ret := dev.GetMemoryInfo_v2()
		if ret != nvml.ERROR_NOT_SUPPORTED {
			return int64(m.Total), int64(m.Used), ret
		}
	}
	m, ret := dev.GetMemoryInfo()
	return int64(m.Total), int64(m.Used), ret
}

func readGPUProcesses(lib nvml.Interface, dev nvml.Device) ([]GPUProcess, error) {
	infos, ret := dev.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED { // not supported: MIG, some virtual GPUs
		return nil, failed("list compute processes", ret)
	}
	if lib.Extensions().LookupSymbol("nvmlDeviceGetGraphicsRunningProcesses") == nil {
		if more, ret := dev.GetGraphicsRunningProcesses(); ret == nvml.SUCCESS {
			infos = append(infos, more...)
		}
	}
	var list []GPUProcess
	seen := map[uint32]bool{} // a process that computes and draws is in both lists
	for _, info := range infos {
		if seen[info.Pid] {
			continue
		}
		seen[info.Pid] = true
		p := GPUProcess{PID: int(info.Pid), Used: int64(info.UsedGpuMemory)}
		if info.UsedGpuMemory == notAvailable {
			p.Used = -1
		}
		list = append(list, p)
	}
	return list, nil
}

// failed puts a return code into words. A GPU that is lost, or answers nothing until it is reset, is said in one
// phrase, whatever was asked.
func failed(what string, ret nvml.Return) error {
	if ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
		return fmt.Errorf("%s: %s: %s (NVML %d)", what, phraseLost, ret.Error(), int(ret))
	}
	return fmt.Errorf("%s: %s (NVML %d)", what, ret.Error(), int(ret))
}
