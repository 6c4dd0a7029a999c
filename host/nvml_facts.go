//go:build cgo

package host

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// fact is one optional reading: the function it needs, and how it is taken. A driver that lacks the function, or
// says that this card has no such reading, leaves it unknown.
type fact struct {
	function string
	read     func(dev nvml.Device, g *GPU) nvml.Return
}

var facts = []fact{
	{"nvmlDeviceGetPciInfo", func(dev nvml.Device, g *GPU) nvml.Return {
		pci, ret := dev.GetPciInfo()
		if ret == nvml.SUCCESS {
			g.PCI = cString(pci.BusId[:])
		}
		return ret
	}},
	figure("nvmlDeviceGetPowerUsage", 1e-3, nvml.Device.GetPowerUsage, func(g *GPU) *Figure { return &g.PowerWatts }),
	figure("nvmlDeviceGetEnforcedPowerLimit", 1e-3, nvml.Device.GetEnforcedPowerLimit, func(g *GPU) *Figure { return &g.PowerLimitWatts }),
	figure("nvmlDeviceGetTotalEnergyConsumption", 1e-3, nvml.Device.GetTotalEnergyConsumption, func(g *GPU) *Figure { return &g.EnergyJoules }),
	figure("nvmlDeviceGetClockInfo", 1, clock(nvml.CLOCK_SM), func(g *GPU) *Figure { return &g.SMClockMHz }),
	figure("nvmlDeviceGetClockInfo", 1, clock(nvml.CLOCK_MEM), func(g *GPU) *Figure { return &g.MemoryClockMHz }),
	figure("nvmlDeviceGetTemperature", 1, func(dev nvml.Device) (uint32, nvml.Return) {
		return dev.GetTemperature(nvml.TEMPERATURE_GPU)
	}, func(g *GPU) *Figure { return &g.TemperatureC }),
	figure("nvmlDeviceGetTotalEccErrors", 1, func(dev nvml.Device) (uint64, nvml.Return) {
		return dev.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	}, func(g *GPU) *Figure { return &g.UncorrectedECC }),
	{"nvmlDeviceGetRemappedRows", func(dev nvml.Device, g *GPU) nvml.Return {
		_, _, pending, broken, ret := dev.GetRemappedRows()
		if ret == nvml.SUCCESS {
			g.RemapPending, g.RemapFailed = AnswerOf(pending), AnswerOf(broken)
		}
		return ret
	}},
	{"nvmlDeviceGetMigMode", func(dev nvml.Device, g *GPU) nvml.Return {
		now, _, ret := dev.GetMigMode()
		if ret == nvml.SUCCESS {
			g.MIG = AnswerOf(now == nvml.DEVICE_MIG_ENABLE)
		}
		return ret
	}},
}

// clocksReasons is one reading under two names: drivers before 535 know the older one only.
var clocksReasons = []fact{
	throttle("nvmlDeviceGetCurrentClocksEventReasons", nvml.Device.GetCurrentClocksEventReasons),
	throttle("nvmlDeviceGetCurrentClocksThrottleReasons", nvml.Device.GetCurrentClocksThrottleReasons), //nolint:staticcheck // for old drivers
}

func figure[T uint32 | uint64](function string, scale float64, read func(nvml.Device) (T, nvml.Return), to func(*GPU) *Figure) fact {
	return fact{function, func(dev nvml.Device, g *GPU) nvml.Return {
		value, ret := read(dev)
		if ret == nvml.SUCCESS {
			*to(g) = Known(float64(value) * scale)
		}
		return ret
	}}
}

func throttle(function string, read func(nvml.Device) (uint64, nvml.Return)) fact {
	return fact{function, func(dev nvml.Device, g *GPU) nvml.Return {
		mask, ret := read(dev)
		if ret == nvml.SUCCESS {
			g.Throttle = throttleOf(mask)
		}
		return ret
	}}
}

func clock(kind nvml.ClockType) func(nvml.Device) (uint32, nvml.Return) {
	return func(dev nvml.Device) (uint32, nvml.Return) { return dev.GetClockInfo(kind) }
}

// readGPUFacts reads what may be unknown. Only a lost GPU is an error.
func readGPUFacts(lib nvml.Interface, dev nvml.Device, g *GPU) error {
	has := func(f fact) bool { return lib.Extensions().LookupSymbol(f.function) == nil }
	if lib.Extensions().LookupSymbol("nvmlSystemGetDriverVersion") == nil {
		if version, ret := lib.SystemGetDriverVersion(); ret == nvml.SUCCESS {
			g.Driver = version
		}
	}
	all := facts
	for _, f := range clocksReasons {
		if has(f) {
			all = append(all[:len(all):len(all)], f)
			break
		}
	}
	for _, f := range all {
		if !has(f) {
			continue
		}
		if ret := f.read(dev, g); ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
			return failed("read "+f.function, ret)
		}
	}
	return nil
}

// cString is a C string of a fixed field.
func cString(field []int8) string {
	var b []byte
	for _, c := range field {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
