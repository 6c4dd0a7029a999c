package host

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func FuzzParseStat(f *testing.F) {
	if b, err := os.ReadFile("/proc/self/stat"); err == nil {
		f.Add(b)
	}
	f.Add([]byte("1 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711"))
	f.Add([]byte("1 )( S"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStat(b)
		if err == nil && !strings.Contains(string(b), "("+s.comm+")") {
			t.Errorf("name %q is not in %q", s.comm, b)
		}
	})
}

func FuzzReadMemory(f *testing.F) {
	f.Add(meminfoText, vmstatText, "0::/a/b\n", mountsV2, "1000\n", "7\n", "inactive_file 1\n")
	f.Add(meminfoText, vmstatText, "3:memory:/a\n", mountsV1, none, "7\n", "total_inactive_file 1\n")
	f.Add("MemTotal: 1 kB\n", "", "0::/../..\n", "1 2 3 / / - cgroup2 x y\n", "max", "x", "")
	f.Fuzz(func(t *testing.T, meminfo, vmstat, cgroup, mounts, limit, used, stat string) {
		root := fstest.MapFS{}
		set := func(name, text string) { root[name] = &fstest.MapFile{Data: []byte(text)} }
		set("proc/meminfo", meminfo)
		set("proc/vmstat", vmstat)
		set("proc/self/cgroup", cgroup)
		set("proc/self/mountinfo", mounts)
		for _, dir := range []string{"sys/fs/cgroup/", "sys/fs/cgroup/a/", "sys/fs/cgroup/a/b/", "sys/fs/cgroup/memory/a/"} {
			set(dir+"memory.max", limit)
			set(dir+"memory.current", used)
			set(dir+"memory.limit_in_bytes", limit)
			set(dir+"memory.usage_in_bytes", used)
			set(dir+"memory.stat", stat)
			set(dir+"memory.events", stat)
		}
		m, err := readMemory(root)
		if err == nil && (m.total < 0 || m.available < -1 || m.headroom < -1 || m.oom.kernel < -1 || m.oom.cgroup < -1) {
			t.Errorf("%+v", m)
		}
	})
}

func FuzzParseListeners(f *testing.F) {
	f.Add([]byte("  sl  local_address\n   0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 4711 1\n"), 8080)
	f.Fuzz(func(t *testing.T, b []byte, port int) {
		for _, inode := range parseListeners(b, port) {
			if inode == "" {
				t.Error("empty inode")
			}
		}
	})
}

func FuzzClaims(f *testing.F) {
	f.Add("0-4711", "90000 live")
	f.Add("ram-4711", "12.5")
	f.Add("0-1.tmp", "NaN ghost")
	f.Fuzz(func(t *testing.T, name, text string) {
		if gpu, pid, ok := parseClaimName(name); ok && (gpu < ramClaim || pid <= 0) {
			t.Errorf("%q is GPU %d, pid %d", name, gpu, pid)
		}
		if c, ok := parseClaim(text); ok && c.bytes < 0 {
			t.Errorf("%q is %d bytes", text, c.bytes)
		}
	})
}

func FuzzParseHolder(f *testing.F) {
	f.Add([]byte(`{"pid":1,"boot_id":"x","start_ticks":4,"who":"s","since":"2026-01-02T03:04:05Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := parseHolder(b); err == nil && h.PID <= 0 {
			t.Errorf("%+v", h)
		}
	})
}

func FuzzParseReading(f *testing.F) {
	f.Add([]byte(`{"gpus":[{"Index":0,"Total":1,"Processes":[{"PID":3}]}]}`))
	f.Add([]byte(`{"no_library":true}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		if r, err := parseReading(out); err != nil && r.GPUs != nil {
			t.Errorf("%+v with %v", r, err)
		}
	})
}

func FuzzParseSMIEnergy(f *testing.F) {
	f.Add("0, GPU-fa4e0000-0000-0000-0000-000000000000, 75.12\n1, GPU-x, [N/A]\n")
	f.Add("0, GPU-x, [Not Supported]\r\n")
	f.Fuzz(func(t *testing.T, out string) {
		if gpus, err := parseSMIEnergy(out); err != nil && gpus != nil || err == nil && len(gpus) == 0 {
			t.Errorf("%+v with %v", gpus, err)
		}
	})
}
