package host

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const (
	meminfoText = "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    800 kB\nBuffers: 1 kB\n"
	vmstatText  = "nr_free_pages 12\noom_kill 3\noom_kill_disable 9\n"
	mountsV2    = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsV1    = "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"32 24 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
	none = "9223372036854771712\n"
)

func tree(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestReadMemory(t *testing.T) {
	t.Parallel()
	base := map[string]string{"proc/meminfo": meminfoText, "proc/vmstat": vmstatText}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  memory
	}{
		{"no cgroup", nil, memory{1000 << 10, 800 << 10, -1, counters{3, -1}}},
		{"version 2, page cache counts as free", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/b/memory.max": "1000\n", "sys/fs/cgroup/a/b/memory.high": "max\n",
			"sys/fs/cgroup/a/b/memory.current": "700\n",
			"sys/fs/cgroup/a/b/memory.stat":    "anon 300\ninactive_file 150\nactive_file 50\n",
			"sys/fs/cgroup/a/b/memory.events":  "low 0\noom 9\noom_kill 2\noom_group_kill 0\n",
		}, memory{1000 << 10, 800 << 10, 500, counters{3, 2}}},
		{"version 2, the parent is stricter", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "700\n",
			"sys/fs/cgroup/a/memory.max": "900\n", "sys/fs/cgroup/a/memory.current": "850\n",
		}, memory{1000 << 10, 800 << 10, 50, counters{3, -1}}},
		{"version 2, throttle limit, overdrawn", map[string]string{
			"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.high": "400\n", "sys/fs/cgroup/a/memory.current": "700\n",
		}, memory{1000 << 10, 800 << 10, 0, counters{3, -1}}},
		{"version 2, unlimited", map[string]string{
			"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "7\n",
		}, memory{1000 << 10, 800 << 10, -1, counters{3, -1}}},
		{"version 1 beside an empty version 2", map[string]string{
			"proc/self/cgroup":    "4:cpuset,memory:/job/7\n0::/\n",
			"proc/self/mountinfo": "33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" + mountsV1,
			"sys/fs/cgroup/memory/job/7/memory.limit_in_bytes": none, "sys/fs/cgroup/memory/job/7/memory.usage_in_bytes": "600",
			"sys/fs/cgroup/memory/job/7/memory.oom_control":  "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1000\n", "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "600\n",
			"sys/fs/cgroup/memory/job/memory.stat":       "cache 9\ninactive_file 1\ntotal_inactive_file 100\ntotal_active_file 20\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": none, "sys/fs/cgroup/memory/memory.usage_in_bytes": "900\n",
		}, memory{1000 << 10, 800 << 10, 520, counters{3, 5}}},
		{"container that sees its own group as the root", map[string]string{
			"proc/self/cgroup":         "0::/docker/abc\n",
			"proc/self/mountinfo":      "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "100\n", "sys/fs/cgroup/memory.events": "oom_kill 1\n",
		}, memory{1000 << 10, 800 << 10, 900, counters{3, 1}}},
		{"path outside of what is mounted", map[string]string{
			"proc/self/cgroup": "0::/../../x\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "100\n",
		}, memory{1000 << 10, 800 << 10, 900, counters{3, -1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := tree(base)
			for name, f := range tree(c.files) {
				root[name] = f
			}
			got, err := readMemory(root)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(memory{}, counters{})); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestReadMemoryFails(t *testing.T) {
	t.Parallel()
	for _, files := range []map[string]string{{}, {"proc/meminfo": "nothing\n"}, {"proc/meminfo": "MemTotal: many kB\n"}} {
		if m, err := readMemory(tree(files)); err == nil {
			t.Errorf("%v read as %+v", files, m)
		}
	}
}

func TestKeyed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, key string
		want      int64
	}{
		{"oom 1\noom_kill 7\n", "oom_kill", 7},
		{"oom_kill 7", "oom_kill", 7},
		{"xoom_kill 7\n", "oom_kill", -1},
		{"oom_kill\n", "oom_kill", -1},
		{"oom_kill -7\n", "oom_kill", -1},
		{"oom_kill 99999999999999999999\n", "oom_kill", -1},
		{"", "oom_kill", -1},
	} {
		if got := keyed([]byte(c.text), c.key); got != c.want {
			t.Errorf("keyed(%q) = %d, want %d", c.text, got, c.want)
		}
	}
	if got := kilobytes([]byte("MemTotal: 9007199254740993 kB"), "MemTotal:"); got != -1 {
		t.Errorf("overflow gave %d", got)
	}
}

// The machine the tests run on has memory too.
func TestReadMemoryHere(t *testing.T) {
	t.Parallel()
	m, err := readMemory(rootFS)
	if err != nil || m.total <= 0 || m.available <= 0 || m.available > m.total || m.headroom < -1 {
		t.Errorf("%+v, %v", m, err)
	}
}
