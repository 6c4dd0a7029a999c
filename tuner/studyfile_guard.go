package tuner

import (
	"fmt"

	"sgtune/sglang"
)

// leastRAMFloor is the least HostSpec.RAMFloorBytes: below it the kernel may be faster than the guard.
const leastRAMFloor = 1e9

// readRAMFloor reads the guard's line. What is admitted leaves HostReserveBytes free, so a higher line would end servers
// that take no more than they may.
func (d *decoder) readRAMFloor(f field) {
	v, ok := d.size(f, "host.ram_floor")
	switch {
	case !ok:
	case v < leastRAMFloor:
		d.wrong(f.value, "`host.ram_floor` %s is too low: the kernel might choose a victim before the guard has ended the server; write %s or more", quote(f.value.text), FormatSize(leastRAMFloor))
	case v > sglang.HostReserveBytes:
		d.wrong(f.value, "`host.ram_floor` %s is too high: a configuration is admitted when it leaves %s free, so the guard would end it; write %s or less",
			quote(f.value.text), FormatSize(sglang.HostReserveBytes), FormatSize(sglang.HostReserveBytes))
	default:
		d.study.Host.RAMFloorBytes = v
	}
}

// guardRow says where the guard's line is. A simulated machine has no memory that could run out.
func guardRow(s *Study) []Row {
	if s.Host.Kind == HostSimulated {
		return nil
	}
	line := "5% of the memory is free, 1 to 4 GiB"
	if s.Host.RAMFloorBytes > 0 {
		line = FormatSize(s.Host.RAMFloorBytes) + " of the memory is free"
	}
	return []Row{{"guard", "ends the server when less than " + line + " (host.ram_floor), or when sgtune is not heard for " + FormatDuration(s.Host.TunerGone)}}
}

// guardAgainst is why a guard would end every server at once, "" for no reason.
func guardAgainst(s *Study, f HostFacts) string {
	floor, free := s.Host.RAMFloorBytes, f.Available()
	if floor == 0 || free < 0 || free >= floor {
		return ""
	}
	return fmt.Sprintf("only %s of host memory is available, less than host.ram_floor, %s: the guard would end every server at once", FormatSize(free), FormatSize(floor))
}
