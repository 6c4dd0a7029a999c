package sglang_test

import (
	"bytes"
	"testing"

	"sgtune/sglang"
)

// Of servers that wrote into one file one after the other, the last is what the facts are about.
func TestRestart(t *testing.T) {
	t.Parallel()
	const (
		args  = "[2026-11-29 14:00:00] server_args=ServerArgs(model_path='m', tp_size=1, mem_fraction_static=0.9)\n"
		load  = "[2026-11-29 14:00:05] Load weight begin. avail mem=90.00 GB\n"
		oom   = "[2026-11-29 14:01:00] Scheduler hit an exception: Traceback (most recent call last):\n  File \"x.py\", line 1, in f\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
		again = "[2026-11-29 14:02:00] server_args=ServerArgs(model_path='m', tp_size=1, mem_fraction_static=0.8)\n[2026-11-29 14:02:05] Load weight begin. avail mem=91.00 GB\n"
	)
	for _, tt := range []struct {
		name, log string
		restarts  int
		fatal     int
		fraction  float64
	}{
		{"a crash, then a new start", args + load + oom + again, 1, 0, 0.8},
		{"killed in silence, then a new start", args + load + again, 1, 0, 0.8},
		{"the crash is the last server's", args + load + again + oom, 1, 1, 0.8},
		{"a chunk collected twice", args + load + args + load, 0, 0, 0.9},
		{"replicas that start together", args + again, 0, 0, 0.8},
		{"another service", args + load + "other-1  | " + again, 0, 0, 0.8},
		{"unknown flag, then a good start", "launch_server.py: error: unrecognized arguments: --no-such\n" + args + load, 1, 0, 0.9},
		{"a good start, then an unknown flag", args + load + "launch_server.py: error: unrecognized arguments: --no-such\n", 1, 1, 0},
		{"a load generator's unknown flag", args + load + "bench_serving.py: error: unrecognized arguments: --no-such\n", 0, 0, 0.9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := sglang.NewReader()
			if _, err := r.Write([]byte(tt.log)); err != nil {
				t.Fatal(err)
			}
			f := r.Facts()
			if f.Restarts != tt.restarts || len(f.Fatal) != tt.fatal || f.Memory.Fraction != tt.fraction {
				t.Errorf("restarts %d, %d fatal lines, fraction %v; want %d, %d, %v", f.Restarts, len(f.Fatal), f.Memory.Fraction, tt.restarts, tt.fatal, tt.fraction)
			}
			if want := bytes.Count([]byte(tt.log), []byte("\n")); f.Lines != want {
				t.Errorf("%d lines, want %d: line numbers are those of the file", f.Lines, want)
			}
		})
	}
}

// A load generator's traceback, in a log it shares with the server, is not the server's end.
func TestClientTraceback(t *testing.T) {
	t.Parallel()
	log := func(file string) string {
		return "[2026-11-29 14:00:00] Load weight begin. avail mem=90.00 GB\nTraceback (most recent call last):\n  File \"" + file + "\", line 9, in main\n    x()\nValueError: bad response\n"
	}
	for file, want := range map[string]int{"/opt/load/bench_serving.py": 0, "/opt/sglang/srt/managers/scheduler.py": 1} {
		r := sglang.NewReader()
		if _, err := r.Write([]byte(log(file))); err != nil {
			t.Fatal(err)
		}
		if got := len(r.Facts().Fatal); got != want {
			t.Errorf("%s: %d fatal lines, want %d", file, got, want)
		}
	}
}
