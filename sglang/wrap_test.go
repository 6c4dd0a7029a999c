package sglang_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

// wrappers put a line behind the prefix of another program.
var wrappers = []struct {
	name string
	line func(text string) string
	rank int // that the prefix names
}{
	{"nothing", before(""), -1},
	{"docker compose", before("sglang-1  | "), -1},
	{"docker compose, times", before("sglang-1  | 2026-11-29T14:08:17.616121834Z "), -1},
	{"docker logs -t", before("2026-11-29T14:08:17.616121834Z "), -1},
	{"CI", before("[2026-11-29T14:08:17.6161218Z] "), -1},
	{"docker json-file", func(text string) string {
		return `{"log":"` + strings.NewReplacer("\\", `\\`, `"`, `\"`, "\t", `\t`, "\r", `\r`, "\x1b", `\u001b`).Replace(text) + `\n","stream":"stderr","time":"2026-11-29T14:08:17.123456789Z"}`
	}, -1},
	{"CRI", before("2026-11-29T14:08:17.123456789Z stderr F "), -1},
	{"CRI, zone", before("2026-11-29T14:08:17.123456789+01:00 stdout F "), -1},
	{"kubectl --prefix", before("[pod/sglang-0/server] "), -1},
	{"kubectl --prefix --timestamps", before("[pod/sglang-0/server] 2026-11-29T14:08:17.123456789Z "), -1},
	{"journald short", before("Nov 29 14:08:17 node1 python3[1234]: "), -1},
	{"journald short, first days", before("Nov  3 14:08:17 node1 sglang[1234]: "), -1},
	{"journald short-precise", before("Nov 29 14:08:17.123456 node1 python3[1234]: "), -1},
	{"journald short-iso", before("2026-11-29T14:08:17+0100 node1 python3[1234]: "), -1},
	{"journald short-full", before("Sun 2026-11-29 14:08:17 UTC node1 python3[1234]: "), -1},
	{"journald short-unix", before("1795961297.123456 node1 python3[1234]: "), -1},
	{"journald short-monotonic", before("[12345.678901] node1 python3[1234]: "), -1},
	{"srun -l", before("3: "), -1},
	{"srun -l, many tasks", before(" 3: "), -1},
	{"mpirun", before("[1,3]<stderr>:"), -1},
	{"mpirun 5", before("[prterun-node1-77@1,3]<stderr>: "), -1},
	{"mpirun, times", before("Sun Nov 29 14:08:17 2026[1,3]<stderr>:"), -1},
	{"ts", before("Nov 29 14:08:17 "), -1},
	{"ts -s", before("00:12:17 "), -1},
	{"ts %.s", before("1795961297.123456 "), -1},
	{"foreman", before("14:08:17 server.1 | "), -1},
	{"loguru", before("2026-11-29 14:08:17.123 | ERROR    | launcher.run:pump:77 - "), -1},
	{"logging", before("2026-11-29 14:08:17,123 - launcher - ERROR - "), -1},
	{"Ray", before("(SchedulerActor pid=123) "), -1},
	{"Ray, colours, other node", func(text string) string {
		return "\x1b[36m(SchedulerActor pid=123, ip=192.0.2.7)\x1b[0m " + text + "\x1b[32m [repeated 7x across cluster] (Ray deduplicates logs by default.)\x1b[0m"
	}, -1},
	{"torch", before("[rank5]: "), 5},
	{"SGLang 0.2", before("[gpu=5] "), 5},
	{"kubectl of Ray", before("[pod/ray-worker/ray] 2026-11-29T14:08:17.1Z stderr F (SchedulerActor pid=9) "), -1},
}

func before(prefix string) func(string) string {
	return func(text string) string { return prefix + text }
}

// A prefix hides nothing: not a framed line, not an exception, not a bar, not argparse.
func TestWrappers(t *testing.T) {
	t.Parallel()
	for _, tt := range wrappers {
		for _, c := range []struct{ line, kind, text string }{
			{"[2026-11-29 14:08:17 TP3] Memory pool end. avail mem=11.20 GB", "memory_pool_end", "Memory pool end. avail mem=11.20 GB"},
			{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.", "gpu_oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."},
			{"sglang serve: error: argument --tp-size: invalid int value: 'x'", "argparse_error", "sglang serve: error: argument --tp-size: invalid int value: 'x'"},
			{"Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:41<00:48,  1.38s/it]", "shard_progress", "Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:41<00:48,  1.38s/it]"},
			{"    raise RuntimeError(\"CUDA error: out of memory\")", "", ""},
		} {
			ev, _ := sglang.ParseLine(tt.line(c.line))
			if ev.Kind != c.kind || ev.Text != c.text {
				t.Errorf("%s: %q gave %q, %q", tt.name, tt.line(c.line), ev.Kind, ev.Text)
			}
			want := tt.rank
			if c.kind == "memory_pool_end" {
				want = 3
			}
			if c.kind != "" && ev.Rank != want {
				t.Errorf("%s: %q gave rank %d, want %d", tt.name, c.line, ev.Rank, want)
			}
		}
	}
}

// A whole traceback behind a prefix on every line is one, with its place.
func TestWrappedTraceback(t *testing.T) {
	t.Parallel()
	for _, tt := range wrappers {
		r := sglang.NewReader()
		for _, line := range []string{
			"[2026-11-29 14:08:16 TP3] Load weight end. elapsed=312.40 s, type=X, avail mem=21.71 GB, mem usage=72.21 GB.",
			"[2026-11-29 14:08:17 TP3] Scheduler hit an exception: Traceback (most recent call last):",
			`  File ".../sglang/srt/model_executor/model_runner.py", line 2590, in forward_extend`,
			"    return self.model.forward(",
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.99 GiB of which 1.12 GiB is free.",
			"",
			"[2026-11-29 14:08:18] Received sigquit from a child process. It usually means the child failed.",
		} {
			r.Feed([]byte(tt.line(line) + "\n"))
		}
		f := r.Facts()
		if len(f.Fatal) != 2 || f.Fatal[0].Kind != "gpu_oom" || f.Fatal[0].Rank != 3 || f.Fatal[0].Words["where"] != "prefill" || f.Fatal[0].Line != 5 {
			t.Errorf("%s: fatal %+v, want gpu_oom of rank 3 in prefill on line 5, then sigquit", tt.name, f.Fatal)
		}
		if wrapped := tt.name != "nothing" && tt.rank < 0; wrapped != (f.Wrapped > 0) {
			t.Errorf("%s: %d wrapped lines", tt.name, f.Wrapped)
		}
	}
}

// Words that look like a prefix and are none.
func TestNoWrapper(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"RuntimeError: CUDA error: out of memory",
		"Killed",
		"[12345.678] Out of memory: Killed process 4242 (sglang::schedul) total-vm:500000000kB",
		"Nov 29 14:08:17 node1 kernel: Out of memory: Killed process 4242 (sglang::schedul) total-vm:500000000kB",
		"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.",
	} {
		if _, ok := sglang.ParseLine(line); !ok {
			t.Errorf("%q gave nothing", line)
		}
	}
}

// Container runtimes cut long lines into records.
func TestRecordsInParts(t *testing.T) {
	t.Parallel()
	const line = "[2026-11-29 14:08:17 TP1] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=9.23 GB"
	cri := func(part, flag string) string { return "2026-11-29T14:08:17.1Z stderr " + flag + " " + part + "\n" }
	docker := func(part, end string) string {
		return `{"log":"` + part + end + `","stream":"stderr","time":"2026-11-29T14:08:17.1Z"}` + "\n"
	}
	for name, log := range map[string]string{
		"CRI":    cri(line[:40], "P") + "2026-11-29T14:08:17.1Z stdout F other\n" + cri(line[40:90], "P") + cri(line[90:], "F"),
		"docker": docker(line[:40], "") + `{"log":"other\n","stream":"stdout","time":"2026-11-29T14:08:17.1Z"}` + "\n" + docker(line[40:90], "") + docker(line[90:], `\n`),
		"cut":    cri(line[:40], "P") + cri(line[40:], "P"), // the log ends here
	} {
		r := sglang.NewReader()
		events := append(r.Feed([]byte(log)), r.Close()...)
		if len(events) != 1 || events[0].Kind != "capacity" || events[0].Rank != 1 || events[0].Line != 1 || events[0].Values["available_gpu_mem_gb"] != 9.23 {
			t.Errorf("%s: %+v, want one capacity line of rank 1 that begins on line 1", name, events)
		}
	}
}

// A whole log says the same behind a prefix, with colours or with Windows line ends.
func TestWrappedLogs(t *testing.T) {
	t.Parallel()
	var ways []func(string) string
	for _, tt := range wrappers {
		if tt.rank < 0 {
			ways = append(ways, tt.line)
		}
	}
	ways = append(ways,
		func(text string) string { return text + "\r" },
		func(text string) string { return "\x1b[32m" + text + "\x1b[0m" },
		func(text string) string { return strings.Replace(text, "] ", "\x1b[1m] \x1b[0m", 1) },
	)
	step := 17 // of the combinations; all take a minute
	if os.Getenv("SGTUNE_ALL_WRAPPERS") != "" {
		step = 1
	}
	for i, path := range allLogs(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			log := ends(t, path)
			want := digest(log, len(log))
			if want.Facts.Wrapped+want.Facts.Coloured > 0 {
				return // it has a prefix or colours of its own
			}
			for n := i % step; n < len(ways); n += step {
				var b strings.Builder
				for line := range strings.Lines(string(log)) {
					text, ended := strings.CutSuffix(line, "\n")
					b.WriteString(ways[n](text))
					if ended {
						b.WriteByte('\n')
					}
				}
				got := digest([]byte(b.String()), 1<<20)
				if d := cmp.Diff(want, got, allFields, ignorePlaces); d != "" {
					t.Errorf("%q -plain +wrapped:\n%s", ways[n]("text"), d)
				}
			}
		})
	}
}

// ignorePlaces leaves out what a prefix changes.
var ignorePlaces = cmp.FilterPath(func(p cmp.Path) bool {
	switch p.Last().String() {
	case ".Offset", ".Bytes", ".Wrapped", ".Coloured", ".LongLines":
		return true
	}
	return false
}, cmp.Ignore())
