package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
)

// TestGPUAsJSON: what is unknown stays unknown and 0 stays 0 on the way from a probe or an agent.
func TestGPUAsJSON(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]host.GPU{
		"nothing known": {Index: 1, Total: 5},
		"all zero or no": {
			PowerWatts: host.Known(0), PowerLimitWatts: host.Known(0), EnergyJoules: host.Known(0), SMClockMHz: host.Known(0), MemoryClockMHz: host.Known(0),
			TemperatureC: host.Known(0), UncorrectedECC: host.Known(0), Throttle: host.Throttle{Known: true}, RemapPending: host.No, RemapFailed: host.No, MIG: host.No,
		},
		"all there": {
			PCI: "00000000:17:00.0", Driver: "570", PowerWatts: host.Known(75.5), UncorrectedECC: host.Known(3), MIG: host.Yes, RemapFailed: host.Yes,
			Throttle: host.Throttle{Known: true, Reasons: []host.ThrottleReason{host.PowerCap, host.PowerBrake}},
		},
	} {
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		var got host.GPU
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(g, got); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", name, text, diff)
		}
		if name == "nothing known" && strings.Contains(string(text), "Watts") {
			t.Errorf("unknown readings are written: %s", text)
		}
	}
	text, err := json.Marshal(struct {
		F host.Figure
		A host.Answer
	}{})
	if err != nil || string(text) != `{"F":null,"A":null}` {
		t.Errorf("unknown is %s, %v", text, err)
	}
	for _, bad := range []string{`{"PowerWatts":"x"}`, `{"MIG":1}`} {
		if err := json.Unmarshal([]byte(bad), &host.GPU{}); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestFaultOf(t *testing.T) {
	t.Parallel()
	healthy := host.GPU{Index: 0, PCI: "00000000:10:00.0", UncorrectedECC: host.Known(0), RemapPending: host.No, RemapFailed: host.No, MIG: host.No}
	with := func(change func(*host.GPU)) []host.GPU {
		g := healthy
		g.Index, g.PCI = 1, "00000000:11:00.0"
		change(&g)
		return []host.GPU{healthy, g}
	}
	for _, c := range []struct {
		name  string
		gpus  []host.GPU
		note  string
		cause string // "" = no fault
		text  string // contained
	}{
		{"healthy", with(func(*host.GPU) {}), "", "", ""},
		{"nothing known", []host.GPU{{}}, "", "", ""},
		{"no GPU facts", nil, "no GPU facts: NVIDIA library not found", "", ""},
		{"hung is not lost", nil, "no GPU facts: the NVIDIA driver did not answer within 5s", "", ""},
		{"lost", nil, "no GPU facts: GPU 5: open: the GPU is lost: x (NVML 15)", host.FaultLost, "GPU 5: open: the GPU is lost: x (NVML 15); reset it or restart the host"},
		{"ECC", with(func(g *host.GPU) { g.UncorrectedECC = host.Known(2) }), "", host.FaultECC, "GPU 1 (00000000:11:00.0) has had 2 memory errors that it could not correct; reset it"},
		{"remap pending", with(func(g *host.GPU) { g.RemapPending = host.Yes }), "", host.FaultECC, "waits for a reset"},
		{"remap failed and ECC", with(func(g *host.GPU) { g.RemapFailed, g.UncorrectedECC = host.Yes, host.Known(1) }), "", host.FaultECC, "correct and could not replace a broken row"},
		{"MIG", with(func(g *host.GPU) { g.MIG = host.Yes }), "", host.FaultMIG, "GPU 1 (00000000:11:00.0) is split into instances (MIG)"},
		{"ECC before MIG", append(with(func(g *host.GPU) { g.MIG = host.Yes }), host.GPU{Index: 2, UncorrectedECC: host.Known(1)}), "", host.FaultECC, "GPU 2 has had"},
	} {
		switch f := host.FaultOf(c.gpus, c.note); {
		case c.cause == "" && f != nil:
			t.Errorf("%s: %+v", c.name, *f)
		case c.cause != "" && (f == nil || f.Cause != c.cause || !strings.Contains(f.Text, c.text)):
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestFreedCheck(t *testing.T) {
	t.Parallel()
	const before = 600 * mib
	at := func(used ...int64) []host.GPU {
		var gpus []host.GPU
		for i, u := range used {
			gpus = append(gpus, host.GPU{Index: i, Used: u})
		}
		return gpus
	}
	for _, c := range []struct {
		name  string
		reads [][]host.GPU
		freed bool // by the last read
		held  int  // GPUs in the last read
	}{
		{"one clean read is not enough", [][]host.GPU{at(before, before)}, false, 0},
		{"two are", [][]host.GPU{at(before, before), at(0, before)}, true, 0},
		{"the slack", [][]host.GPU{at(before+host.MemorySlack, before), at(before+host.MemorySlack, before)}, true, 0},
		{"a byte more", [][]host.GPU{at(before, before), at(before+host.MemorySlack+1, before)}, false, 1},
		{"held in between", [][]host.GPU{at(before, before), at(before, 90<<30), at(before, before)}, false, 0},
		{"not read in between", [][]host.GPU{at(before, before), nil, at(before, before)}, false, 0},
		{"a GPU is missing", [][]host.GPU{at(before), at(before)}, false, 0},
		{"both held", [][]host.GPU{at(9<<30, 9<<30)}, false, 2},
	} {
		check := host.FreedCheck{Before: []int64{before, before}}
		freed, held := false, []host.Held(nil)
		for _, r := range c.reads {
			freed, held = check.Read(r)
		}
		if freed != c.freed || len(held) != c.held {
			t.Errorf("%s: freed %v, held %+v", c.name, freed, held)
		}
	}
	gpus := []host.GPU{{Used: 3 << 30}, {Used: 3 << 30, Processes: []host.GPUProcess{{PID: 7, Name: "python3"}, {PID: 8}}}}
	held := host.StillHeld([]int64{0, 0}, gpus)
	if len(held) != 2 || !held[0].Ghost() || held[1].Ghost() {
		t.Fatalf("%+v", held)
	}
	if got := held[0].Holders(); got != "no process is listed: the holder is outside this container or VM" {
		t.Errorf("ghost: %s", got)
	}
	if got := held[1].Holders(); got != "held by pid 7 python3, pid 8" {
		t.Errorf("listed: %s", got)
	}
}

func TestThrottleWindow(t *testing.T) {
	t.Parallel()
	none, unknown := host.Throttle{Known: true}, host.Throttle{}
	why := func(reasons ...host.ThrottleReason) host.Throttle {
		return host.Throttle{Known: true, Reasons: reasons}
	}
	for _, c := range []struct {
		name      string
		samples   map[string]int // how often each of the readings below
		throttled bool
		text      string
	}{
		{"nothing read", nil, false, ""},
		{"not told", map[string]int{"unknown": 50}, false, ""},
		{"never", map[string]int{"none": 50}, false, ""},
		{"power limit all the time", map[string]int{"cap": 50}, false, "sw_power_cap in 100% of 50 samples"},
		{"hot for a moment", map[string]int{"none": 50, "hot": 5}, false, "hw_thermal in 9% of 55 samples"},
		{"hot for a tenth", map[string]int{"none": 45, "hot": 5}, true, "hw_thermal in 10% of 50 samples"},
		{"two samples of three", map[string]int{"none": 1, "hot": 2}, false, "hw_thermal in 67% of 3 samples"},
		{"hot and capped", map[string]int{"hot": 10, "cap": 10}, true, "sw_power_cap in 50%, hw_thermal in 50% of 20 samples"},
		{"brake", map[string]int{"brake": 3}, true, "hw_slowdown in 100%, power_brake in 100% of 3 samples"},
		{"unknown ones do not count", map[string]int{"unknown": 90, "hot": 9, "none": 1}, true, "hw_thermal in 90% of 10 samples"},
	} {
		var w host.ThrottleWindow
		for name, n := range c.samples {
			gpus := map[string][]host.GPU{
				"unknown": {{Throttle: unknown}}, "none": {{Throttle: none}, {Throttle: none}}, "cap": {{Throttle: why(host.PowerCap)}, {Throttle: none}},
				"hot": {{Throttle: none}, {Throttle: why(host.HardwareThermal)}}, "brake": {{Throttle: why(host.HardwareSlow, host.PowerBrake)}},
			}[name]
			for range n {
				w.Add(gpus)
			}
		}
		if w.Throttled() != c.throttled || w.Text() != c.text {
			t.Errorf("%s: %v, %q", c.name, w.Throttled(), w.Text())
		}
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	on := func(pids ...int) host.GPU {
		var g host.GPU
		for _, pid := range pids {
			g.Processes = append(g.Processes, host.GPUProcess{PID: pid})
		}
		return g
	}
	for _, c := range []struct {
		name  string
		gpus  []host.GPU
		ours  []int
		want  []int
		known bool
	}{
		{"nobody", []host.GPU{on(), on()}, nil, nil, true},
		{"ours only", []host.GPU{on(5), on(6)}, []int{5, 6}, nil, true},
		{"one more, on two GPUs", []host.GPU{on(9, 5), on(6, 9)}, []int{5, 6}, []int{9}, true},
		{"sorted", []host.GPU{on(9, 5), on(3)}, []int{5}, []int{3, 9}, true},
		{"nothing of ours runs", []host.GPU{on(9)}, nil, []int{9}, true},
		{"pids of another namespace", []host.GPU{on(90001), on(90002)}, []int{5, 6}, nil, false},
		{"ours hold nothing yet", []host.GPU{on(), on()}, []int{5}, nil, true},
	} {
		list, known := host.Foreign(c.gpus, c.ours)
		var got []int
		for _, p := range list {
			got = append(got, p.PID)
		}
		if known != c.known || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", c.name, got, known)
		}
	}
}
