package sglang_test

import (
	"strings"
	"testing"

	"sgtune/sglang"
)

const (
	frameExtend  = `  File ".../sglang/srt/model_executor/model_runner.py", line 2590, in forward_extend`
	frameDecode  = `  File ".../sglang/srt/model_executor/model_runner.py", line 2600, in forward_decode`
	oomOf3       = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.99 GiB of which 1.12 GiB is free."
	oomOf5       = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 94.99 GiB of which 1.00 GiB is free."
	exceptionOf3 = "[2026-11-29 14:08:17 TP3] Scheduler hit an exception: Traceback (most recent call last):"
	exceptionOf5 = "[2026-11-29 14:08:17 TP5] Scheduler hit an exception: Traceback (most recent call last):"
)

// deaths is what the fatal lines of a log come to: "kind rank where".
func deaths(lines ...string) string {
	r := sglang.NewReader()
	r.Feed([]byte(strings.Join(lines, "\n") + "\n"))
	var out []string
	for _, ev := range r.Facts().Fatal {
		text := ev.Kind
		if ev.Rank >= 0 {
			text += " " + string(rune('0'+ev.Rank))
		}
		if where := ev.Words["where"]; where != "" {
			text += " " + where
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestMixedTracebacks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		lines      []string
	}{
		{"line by line", "gpu_oom 3 prefill, gpu_oom 5 prefill", []string{
			exceptionOf3, frameExtend, exceptionOf5, "    return a", frameExtend, "    return a", oomOf3, "", oomOf5,
		}},
		{"the second ends first", "gpu_oom 5 prefill, gpu_oom 3 prefill", []string{exceptionOf3, exceptionOf5, frameExtend, frameExtend, oomOf5, oomOf3}},
		{"each line in the frame of its rank", "gpu_oom 5 decode, gpu_oom 3 prefill", []string{
			exceptionOf3, exceptionOf5, "[2026-11-29 14:08:17 TP3] " + frameExtend, "[2026-11-29 14:08:17 TP5] " + frameDecode,
			"[2026-11-29 14:08:17 TP3]     return a", "[2026-11-29 14:08:17 TP5] " + oomOf5, "[2026-11-29 14:08:17 TP3] " + oomOf3,
		}},
		{"torch's prefix on each line", "gpu_oom 5 decode, gpu_oom 3 prefill", []string{
			"[rank3]: Traceback (most recent call last):", "[rank5]: Traceback (most recent call last):", "[rank3]: " + frameExtend, "[rank5]: " + frameDecode,
			"[rank5]: " + oomOf5, "[rank3]: " + oomOf3,
		}},
		{"srun -l", "gpu_oom 3 prefill, gpu_oom 5 decode", []string{
			"0: " + exceptionOf3, "1: " + exceptionOf5, "0: " + frameExtend, "1: " + frameDecode, "0: " + oomOf3, "1: " + oomOf5,
		}},
		{"other ranks' lines in between", "gpu_oom 3 prefill", []string{
			exceptionOf3, "[2026-11-29 14:08:17 TP5] Load weight begin. avail mem=1.00 GB", frameExtend,
			"[2026-11-29 14:08:17 TP3] Cache flushed successfully!", "    return a", oomOf3,
		}},
		{"glued to a bar", "gpu_oom decode", []string{
			" 50%|#####     | 12/24 [00:15<00:15,  1.29s/it]Traceback (most recent call last):", frameDecode, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.",
		}},
		{"rich", "gpu_oom prefill", []string{
			"╭──────────── Traceback (most recent call last) ────────────╮",
			"│ /usr/lib/sglang/srt/model_executor/model_runner.py:2590 in forward_extend │",
			"│                                                           │",
			"│ ❱ 2590 │   raise RuntimeError(\"CUDA error: out of memory\")  │",
			"╰───────────────────────────────────────────────────────────╯",
			"OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total",
			"capacity of 94.99 GiB of which 1.12 GiB is free.",
		}},
		{"loguru", "gpu_oom prefill", []string{
			"2026-11-29 14:08:17.123 | ERROR    | x:y:1 - died", "Traceback (most recent call last):", "", "> File \"a.py\", line 1, in forward_extend", "    │    └ <x>", "torch.OutOfMemoryError: CUDA out of memory.",
		}},
		{"a name without Error", "traceback_last 3 prefill", []string{exceptionOf3, frameExtend, "zmq.error.Again: Resource temporarily unavailable"}},
		{"KeyboardInterrupt", "traceback_last", []string{"Traceback (most recent call last):", "  File \"a.py\", line 1, in main", "KeyboardInterrupt"}},
		{"a source line that opens a quote", "gpu_oom 3 prefill", []string{exceptionOf3, frameExtend, "    raise ValueError(f\"text='{text}", "    ) from e", oomOf3}},
		{"one word is no exception", "gpu_oom 3 prefill", []string{exceptionOf3, "Aborted", frameExtend, oomOf3}},
	} {
		if got := deaths(tt.lines...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The second exception of a chain says that it is one: the first may have been handled.
func TestChainIsMarked(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	r.Feed([]byte(exceptionOf5 + "\n" + frameExtend + "\nKeyError: 7\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n" +
		"  File \"a.py\", line 1, in main\n" + oomOf5 + "\n"))
	f := r.Facts().Fatal
	if len(f) != 2 || f[0].Words["chained"] != "" || f[1].Words["chained"] != "true" || f[1].Words["where"] != "prefill" || f[1].Rank != 5 {
		t.Errorf("fatal %+v, want a second exception that is chained, of rank 5, in prefill", f)
	}
}

// However many tracebacks begin and never end, memory stays bounded and the next one is read.
func TestEndlessTracebacks(t *testing.T) {
	t.Parallel()
	lines := []string{}
	for range 1000 {
		lines = append(lines, "[rank4]: Traceback (most recent call last):", "  more")
	}
	if got := deaths(append(lines, exceptionOf3, frameExtend, oomOf3)...); got != "gpu_oom 3 prefill" {
		t.Errorf("%q, want gpu_oom 3 prefill", got)
	}
}
