//go:build cgo

package host_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
)

// nvmlFacts reads everything a driver may tell, and may not tell, through the stand-in library.
func nvmlFacts(t *testing.T, lib string) {
	const id = "GPU-fa4e0000-0000-0000-0000-000000000000"
	want := host.GPU{
		UUID: id, Name: "NVIDIA H200", Total: 143771 * mib, PCI: "00000000:10:00.0", Driver: "570.00.00",
		PowerWatts: host.Known(81.5), PowerLimitWatts: host.Known(600), EnergyJoules: host.Known(123.456), SMClockMHz: host.Known(1200), MemoryClockMHz: host.Known(3201),
		TemperatureC: host.Known(0), UncorrectedECC: host.Known(0), Throttle: host.Throttle{Known: true}, RemapPending: host.No, RemapFailed: host.No, MIG: host.No,
	}
	state := "gpu.0.power_w = 81.5\ngpu.0.power_limit_w = 600\ngpu.0.energy_mj = 123456\ngpu.0.clock_sm = 1200\ngpu.0.temp = 0\n"
	read := func(t *testing.T, lib, state string) host.GPU {
		t.Helper()
		u := newNVML(t, lib, state).usage(t)
		if len(u.GPUs) != 1 {
			t.Fatalf("%+v", u)
		}
		return u.GPUs[0]
	}
	for _, c := range []struct {
		name, more string
		change     func(*host.GPU)
	}{
		{"all there", "", func(*host.GPU) {}},
		{"idle is no reason", "gpu.0.throttle = 0x1\n", func(*host.GPU) {}},
		{"nor are clocks that somebody fixed", "gpu.0.throttle = 0x713\n", func(*host.GPU) {}},
		{"power and heat", "gpu.0.throttle = 0x45\n", func(g *host.GPU) {
			g.Throttle.Reasons = []host.ThrottleReason{host.PowerCap, host.HardwareThermal}
		}},
		{"every reason", "gpu.0.throttle = 0xec\n", func(g *host.GPU) { g.Throttle.Reasons = host.ThrottleReasons }},
		{"no ECC on this card", "gpu.0.ecc = 0\n", func(g *host.GPU) { g.UncorrectedECC = host.Figure{} }},
		{"broken memory", "gpu.0.ecc_uncorrected = 3\ngpu.0.remap_pending = 1\ngpu.0.remap_failed = 1\n", func(g *host.GPU) {
			g.UncorrectedECC, g.RemapPending, g.RemapFailed = host.Known(3), host.Yes, host.Yes
		}},
		{"corrected errors are no errors", "gpu.0.ecc_corrected = 3\n", func(*host.GPU) {}},
		{"MIG", "gpu.0.mig = 1\n", func(g *host.GPU) { g.MIG = host.Yes }},
	} {
		want := want
		c.change(&want)
		if diff := cmp.Diff(want, read(t, lib, state+c.more)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
	// A driver that lacks all of them still tells memory, and the reasons by their older name.
	old := buildNVML(t, "nvmlDeviceGetPciInfo", "lacksPci", "nvmlDeviceGetPowerUsage", "lacksPower", "nvmlDeviceGetEnforcedPowerLimit", "lacksLimit",
		"nvmlDeviceGetTotalEnergyConsumption", "lacksEnergy", "nvmlDeviceGetClockInfo", "lacksClock", "nvmlDeviceGetTemperature", "lacksTemperature",
		"nvmlDeviceGetTotalEccErrors", "lacksECC", "nvmlDeviceGetRemappedRows", "lacksRows", "nvmlDeviceGetMigMode", "lacksMIG",
		"nvmlDeviceGetCurrentClocksEventReasons", "lacksReasons", "nvmlSystemGetDriverVersion", "lacksVersion")
	only := host.GPU{UUID: id, Name: "NVIDIA H200", Total: 143771 * mib, Throttle: host.Throttle{Known: true, Reasons: []host.ThrottleReason{host.PowerBrake}}}
	if diff := cmp.Diff(only, read(t, old, "gpu.0.throttle = 0x80\n")); diff != "" {
		t.Errorf("old driver (-want +got)\n%s", diff)
	}
}

// nvmlFaults is what the judgements make of each fault that the stand-in library can have.
func nvmlFaults(t *testing.T, lib string) {
	noWords := buildNVML(t, "nvmlErrorString", "lacksWords") // called for any error, without a look first
	noUUID := buildNVML(t, "nvmlDeviceGetUUID", "lacksUUID")
	for _, c := range []struct {
		name, lib, state string
		timeout          time.Duration
		trouble          host.GPUTrouble
		fault            string // cause, "" none
		text             string // of the note or the fault
	}{
		{"healthy", lib, "", 0, host.NoTrouble, "", ""},
		{"MIG on", lib, "count = 2\ngpu.1.mig = 1", 0, host.NoTrouble, host.FaultMIG, "GPU 1 (00000000:11:00.0) is split"},
		{"ECC error", lib, "count = 2\ngpu.1.ecc_uncorrected = 1", 0, host.NoTrouble, host.FaultECC, "has had 1 memory error that"},
		{"row remap pending", lib, "gpu.0.remap_pending = 1", 0, host.NoTrouble, host.FaultECC, "waits for a reset"},
		{"GPU lost", lib, "count = 8\ngpu.5.error = 15", 0, host.TroubleLost, host.FaultLost, "GPU 5: open: the GPU is lost"},
		{"GPU wants a reset", lib, "count = 2\ngpu.1.error = 16", 0, host.TroubleLost, host.FaultLost, "GPU 1: read name: the GPU is lost"},
		{"hung call", lib, "delay_ms = 60000", 300 * time.Millisecond, host.TroubleHung, "", "did not answer within 300ms"},
		{"driver missing", lib, "init_error = 9", 0, host.TroubleNoDriver, "", "the NVIDIA driver cannot be used: initialise NVML: Driver Not Loaded (NVML 9)"},
		{"driver of another version", lib, "init_error = 18", 0, host.TroubleNoDriver, "", "version mismatch"},
		{"no GPU", lib, "count = 0", 0, host.TroubleNoGPU, "", "lists no GPU"},
		{"missing library", filepath.Join(t.TempDir(), "libnvidia-ml.so.1"), "", 0, host.TroubleNoLibrary, "", "NVIDIA library not found"},
		{"missing symbol, looked up", noUUID, "", 0, host.TroubleOld, "", "no GPU facts: the NVIDIA driver is too old: its library lacks nvmlDeviceGetUUID"},
		{"missing symbol that ends the probe", noWords, "gpu.0.error = 15", 0, host.TroubleOther, "", "the GPU probe failed: exit status 127: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNVML(t, c.lib, c.state)
			if c.timeout > 0 {
				n.probe.Timeout = c.timeout
			}
			u := n.usage(t)
			if got := host.TroubleOf(u.GPUNote); got != c.trouble {
				t.Errorf("trouble %q of note %q, want %q", got, u.GPUNote, c.trouble)
			}
			said, cause := u.GPUNote, ""
			if f := host.FaultOf(u.GPUs, u.GPUNote); f != nil {
				said, cause = f.Text, f.Cause
			}
			if cause != c.fault || !strings.Contains(said, c.text) || strings.Contains(said, "\n") {
				t.Errorf("fault %q, want %q; it says %q", cause, c.fault, said)
			}
		})
	}
}

// nvmlJudgements follows a window and a release through the stand-in library.
func nvmlJudgements(t *testing.T, lib string) {
	n := newNVML(t, lib, "count = 2\ngpu.*.used_mib = 600\n")
	var window host.ThrottleWindow
	idle := n.usage(t)
	n.set(t, "count = 2\ngpu.*.used_mib = 600\ngpu.1.throttle = 0x44\n")
	for range 3 {
		window.Add(n.usage(t).GPUs)
	}
	if !window.Throttled() || window.Text() != "sw_power_cap in 100%, hw_thermal in 100% of 3 samples" {
		t.Errorf("throttled %v: %s", window.Throttled(), window.Text())
	}
	n.claim(t, 0, 999999, "90000 sticky")
	n.claim(t, 1, 999999, "70000 ghost")
	check := host.FreedCheck{}
	for _, g := range idle.GPUs {
		check.Before = append(check.Before, g.Used)
	}
	freed, held := check.Read(n.usage(t).GPUs)
	if freed || len(held) != 2 || held[0].Ghost() || !held[1].Ghost() || held[0].Holders() != "held by pid 999999" {
		t.Errorf("freed %v, held %+v", freed, held)
	}
	if foreign, known := host.Foreign(n.usage(t).GPUs, nil); !known || len(foreign) != 1 || foreign[0].PID != 999999 {
		t.Errorf("foreign %+v, %v", foreign, known)
	}
}
