package host_test

import (
	"strings"
	"testing"

	"sgtune/host"
)

// samples are n of one kind behind m quiet ones.
func samples(quiet, n int, s host.GuardSample) []host.GuardSample {
	list := make([]host.GuardSample, quiet)
	for range n {
		list = append(list, s)
	}
	return list
}

func TestGPUStrangers(t *testing.T) {
	t.Parallel()
	on := func(foreign host.GuardForeign, pids ...int) host.GuardSample {
		g := host.GPU{Index: 3, Processes: []host.GPUProcess{{PID: foreign.PID}}}
		for _, pid := range pids {
			g.Processes = append(g.Processes, host.GPUProcess{PID: pid})
		}
		return host.GuardSample{GPUs: []host.GPU{g}, ForeignGPU: []host.GuardForeign{foreign}}
	}
	stranger := host.GuardForeign{PID: 9, Name: "train", GPU: 3, Memory: 1 << 30}
	before := []host.GPU{{Processes: []host.GPUProcess{{PID: 4, Name: "Xorg"}}}}
	for _, c := range []struct {
		name    string
		samples []host.GuardSample
		want    string
	}{
		{"nobody", samples(9, 0, host.GuardSample{}), ""},
		{"a stranger for two seconds", samples(7, 2, on(stranger, 5)), "another process used the GPUs in 2 of 9 samples: pid 9 (train) on GPU 3"},
		{"for one", samples(7, 1, on(stranger, 5)), ""},
		{"there before the launch", samples(0, 9, on(host.GuardForeign{PID: 4, Name: "Xorg", GPU: 3}, 5)), ""},
		{"without a name it may be the trial itself", samples(0, 9, on(host.GuardForeign{PID: 90001, GPU: 3}, 5)), ""},
		{"none of the trial's is listed: the numbers are another namespace's", samples(0, 9, on(stranger)), ""},
	} {
		if got := host.GPUStrangers(c.samples, before); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCPUStrangers(t *testing.T) {
	t.Parallel()
	at := func(busy float64, foreign ...float64) host.GuardSample {
		s := host.GuardSample{Cores: 8, BusyCores: busy}
		for i, cores := range foreign {
			s.ForeignCPU = append(s.ForeignCPU, host.GuardForeign{PID: 70 + i, Name: "cc1", GPU: -1, Cores: cores})
		}
		return s
	}
	for _, c := range []struct {
		name    string
		samples []host.GuardSample
		want    string
	}{
		{"nobody", samples(0, 30, at(8)), ""},
		{"a build on a full machine", samples(20, 10, at(7.6, 0.9, 0.8)), "all of the 8 cores were busy and other processes took 1.7 of them in 10 of 30 samples: pid 70 (cc1), pid 71 (cc1)"},
		{"with cores to spare", samples(0, 30, at(5, 2)), ""},
		{"too short", samples(0, 4, at(8, 2)), ""},
		{"too seldom", samples(45, 5, at(8, 2)), ""},
		{"too little of so many cores", samples(0, 30, at(8, 0.6)), ""},
		{"cores unknown", samples(0, 30, host.GuardSample{BusyCores: 8, ForeignCPU: []host.GuardForeign{{PID: 7, Cores: 3}}}), ""},
	} {
		if got := host.CPUStrangers(c.samples); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	crowd := func(busy, others, named float64, names ...host.GuardCrowd) host.GuardSample {
		s := at(busy, named)
		s.ForeignCPU = s.ForeignCPU[:min(1, int(2*named))]
		s.OtherCores, s.Crowd = others, names
		return s
	}
	small := host.GuardCrowd{Name: "worker", Processes: 100, Cores: 1.4}
	for _, c := range []struct {
		name    string
		samples []host.GuardSample
		want    string
	}{
		{
			"a hundred small ones", samples(20, 10, crowd(8, 1.5, 0, small, host.GuardCrowd{Name: "cron", Processes: 2, Cores: 0.1})),
			"all of the 8 cores were busy and other processes took 1.5 of them in 10 of 30 samples: many named worker",
		},
		{"beside a big one", samples(20, 10, crowd(8, 2.5, 1, small)), "all of the 8 cores were busy and other processes took 2.5 of them in 10 of 30 samples: pid 70 (cc1), many named worker"},
		{"too short-lived to be seen", samples(0, 10, crowd(8, 1.5, 0)), "all of the 8 cores were busy and other processes took 1.5 of them in 10 of 10 samples: none of them had half a core"},
		{"a hundred with cores to spare", samples(0, 30, crowd(7, 1.5, 0, small)), ""},
		{"little more than the noise of the counters", samples(0, 30, crowd(8, 1.1, 0, small)), ""},
		{"not known", samples(0, 30, crowd(8, -1, 0, small)), ""},
		{"not known, but of one", samples(0, 30, crowd(8, -1, 1)), "all of the 8 cores were busy and other processes took 1.0 of them in 30 of 30 samples: pid 70 (cc1)"},
	} {
		if got := host.CPUStrangers(c.samples); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	many := host.GuardSample{Cores: 1, BusyCores: 1}
	for pid := range 9 {
		many.ForeignCPU = append(many.ForeignCPU, host.GuardForeign{PID: pid, Cores: 0.5})
	}
	if got := host.CPUStrangers(samples(0, 9, many)); strings.Count(got, "pid") != 5 {
		t.Errorf("names without end: %q", got)
	}
}

func TestCacheStrangers(t *testing.T) {
	t.Parallel()
	at := func(faults, disk float64) host.GuardSample { return host.GuardSample{Faults: faults, OtherDisk: disk} }
	for _, c := range []struct {
		name    string
		samples []host.GuardSample
		want    string
	}{
		{"nobody", samples(0, 30, at(0, 0)), ""},
		{
			"a copy that drops the trial's pages", samples(20, 10, at(400, 300e6)),
			"page cache was short in 10 of 30 samples: the server had to read 400 pages a second again while other processes moved 300 MB/s to and from the disks",
		},
		{"a copy that does no harm", samples(0, 30, at(3, 300e6)), ""},
		{"the trial's own reading", samples(0, 30, at(4000, 1e6)), ""},
		{"too short", samples(0, 4, at(400, 300e6)), ""},
		{"too seldom", samples(45, 5, at(400, 300e6)), ""},
		{"not known", samples(0, 30, at(-1, -1)), ""},
	} {
		if got := host.CacheStrangers(c.samples); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMemoryStranger(t *testing.T) {
	t.Parallel()
	v := host.GuardVerdict{Reason: host.GuardMemory, MinFree: 4e9, Before: host.GuardMemoryReading{Available: 104e9, Headroom: -1}}
	at := func(gb ...int64) host.GuardSample {
		var s host.GuardSample
		for i, n := range gb {
			s.ForeignMemory = append(s.ForeignMemory, host.GuardForeign{PID: 70 + i, Name: "load", GPU: -1, Memory: n * 1e9})
		}
		return s
	}
	cgroup := v
	cgroup.Reason = host.GuardCgroup
	for _, c := range []struct {
		name    string
		samples []host.GuardSample
		verdict host.GuardVerdict
		want    string
	}{
		{"nobody", samples(9, 0, at()), v, ""},
		{"one took most", samples(3, 1, at(60, 2)), v, "pid 70 (load) took 60.0 of the 104.0 GB of memory that were free"},
		{"one took little", samples(3, 1, at(40, 39)), v, ""},
		{"the limit was the trial's own", samples(3, 1, at(60)), cgroup, ""},
	} {
		if got := host.MemoryStranger(c.samples, c.verdict); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
