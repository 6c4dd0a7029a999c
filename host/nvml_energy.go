//go:build cgo

package host

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// energyFunctions are what reading energy needs of the library, and what it can do without.
var energyFunctions = []string{"nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"}

// ReadEnergy reads the energy counter and the power of every GPU, as ReadGPUs reads them and as dangerous:
// call it through EnergyMain. The counter exists from Volta on.
func ReadEnergy(library string) ([]GPUEnergy, error) {
	return eachGPU(library, energyFunctions, readEnergy)
}

func readEnergy(lib nvml.Interface, index int) (GPUEnergy, error) {
	g := GPUEnergy{Index: index, Joules: -1, Watts: -1}
	dev, ret := lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return g, failed("open", ret)
	}
	if g.UUID, ret = dev.GetUUID(); ret != nvml.SUCCESS {
		return g, failed("read UUID", ret)
	}
	if lib.Extensions().LookupSymbol("nvmlDeviceGetTotalEnergyConsumption") == nil {
		if millijoules, ret := dev.GetTotalEnergyConsumption(); ret == nvml.SUCCESS {
			g.Joules = float64(millijoules) / 1000
		} else if ret != nvml.ERROR_NOT_SUPPORTED {
			return g, failed("read energy", ret)
		}
	}
	if lib.Extensions().LookupSymbol("nvmlDeviceGetPowerUsage") == nil {
		if milliwatts, ret := dev.GetPowerUsage(); ret == nvml.SUCCESS {
			g.Watts = float64(milliwatts) / 1000
		} else if ret != nvml.ERROR_NOT_SUPPORTED {
			return g, failed("read power", ret)
		}
	}
	return g, nil
}
