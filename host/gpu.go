package host

import (
	"encoding/json"
	"math"
	"slices"
)

// Figure is a reading that a driver may not tell. The zero value is "unknown"; 0 that was read is
// Figure{Known: true}. As JSON it is a number or null.
type Figure struct {
	Value float64
	Known bool
}

// Known is a figure that was read. What is no finite number was not.
func Known(value float64) Figure {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return Figure{}
	}
	return Figure{Value: value, Known: true}
}

// MarshalJSON writes the number, or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.Known {
		return []byte("null"), nil
	}
	return json.Marshal(f.Value)
}

// UnmarshalJSON reads a number, or null.
func (f *Figure) UnmarshalJSON(text []byte) error {
	var value *float64
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	*f = Figure{}
	if value != nil {
		*f = Known(*value)
	}
	return nil
}

// Answer is yes or no where a driver may say neither. As JSON it is true, false or null.
type Answer int8

// Answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// AnswerOf is the answer of a driver that gave one.
func AnswerOf(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// MarshalJSON writes true, false or null.
func (a Answer) MarshalJSON() ([]byte, error) {
	switch a {
	case Yes:
		return []byte("true"), nil
	case No:
		return []byte("false"), nil
	default:
		return []byte("null"), nil
	}
}

// UnmarshalJSON reads true, false or null.
func (a *Answer) UnmarshalJSON(text []byte) error {
	var yes *bool
	if err := json.Unmarshal(text, &yes); err != nil {
		return err
	}
	*a = Unknown
	if yes != nil {
		*a = AnswerOf(*yes)
	}
	return nil
}

// Throttle is why a GPU's clocks are lowered now: with Known and no Reasons they are not.
type Throttle struct {
	Known   bool
	Reasons []ThrottleReason `json:",omitempty"` // in the order of ThrottleReasons
}

// ThrottleReason is one reason of the closed list.
type ThrottleReason string

// Reasons for lowered clocks, as NVML's bits name them.
const (
	PowerCap        ThrottleReason = "sw_power_cap" // the card is at its power limit: usual under full load
	HardwareSlow    ThrottleReason = "hw_slowdown"  // halved or worse; the driver mostly adds which of the two below
	SoftwareThermal ThrottleReason = "sw_thermal"
	HardwareThermal ThrottleReason = "hw_thermal"
	PowerBrake      ThrottleReason = "power_brake" // the power supply asked for it
)

// ThrottleReasons are all of them, in the order of NVML's bits.
var ThrottleReasons = []ThrottleReason{PowerCap, HardwareSlow, SoftwareThermal, HardwareThermal, PowerBrake}

// throttleBits are nvmlClocksEventReasons (also called throttle reasons). The other bits say that the card is idle
// (0x1), or that somebody fixed its clocks (0x2, 0x10, 0x100) or that it can't go faster (0x200, 0x400): nothing
// that differs from one trial to the next.
var throttleBits = map[ThrottleReason]uint64{
	PowerCap: 0x4, HardwareSlow: 0x8, SoftwareThermal: 0x20, HardwareThermal: 0x40, PowerBrake: 0x80,
}

// throttleOf decodes NVML's mask.
func throttleOf(mask uint64) Throttle {
	t := Throttle{Known: true}
	for _, reason := range ThrottleReasons {
		if mask&throttleBits[reason] != 0 {
			t.Reasons = append(t.Reasons, reason)
		}
	}
	return t
}

// slowed reports whether the clocks are lowered for another reason than the power limit.
func (t Throttle) slowed() bool {
	return slices.ContainsFunc(t.Reasons, func(r ThrottleReason) bool { return r != PowerCap })
}
