package sglang_test

import (
	"strings"
	"testing"

	"sgtune/sglang"
)

// Text of a client means nothing, however it looks.
func TestEchoes(t *testing.T) {
	t.Parallel()
	const at = "[2026-11-29 14:08:17] "
	for _, tt := range []struct {
		name string
		log  string
	}{
		{"one line", at + `Receive: obj=GenerateReqInput(rid='1', text='Traceback (most recent call last):\n  File "x", line 1\ntorch.OutOfMemoryError: CUDA out of memory.')`},
		{"a stamp in it", at + `Receive: obj=GenerateReqInput(rid='1', text='why [2026-11-29 14:08:17 TP3] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 1 -> 2')`},
		{"an escaped line end", at + `Finish: obj=GenerateReqInput(text="a\n[2026-11-29 14:08:17 TP3] SIGQUIT received. signum=None")`},
		{"JSON", `{"event": "request.received", "obj": {"text": "[2026-11-29 14:08:17 TP3] SIGQUIT received. signum=None"}}`},
		{"JSON in a frame", at + `{"event": "request.received", "obj": {"text": "[2026-11-29 14:08:17 TP3] SIGQUIT received. signum=None"}}`},
		{"several lines", at + "Receive: obj=GenerateReqInput(rid='1', text='My server says:\nTraceback (most recent call last):\n  File \"x.py\", line 1, in capture\n" +
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.\n[2025-01-02 10:00:00 TP3] SIGQUIT received. signum=None, frame=None.\n" +
			"it doesn't matter\nKilled', sampling_params={})"},
		{"several lines, two values", at + "Finish: obj=GenerateReqInput(text='a\nRuntimeError: CUDA error: out of memory', x=1), out={'text': 'b\nRuntimeError: CUDA error: out of memory'}"},
		{"an exception that quotes one", `ValueError: bad request text='CUDA out of memory. Tried to allocate 1.00 GiB'`},
		{"a dump of the queue", at + `Req(rid=abc, input_ids=[1, 2], text="RuntimeError: CUDA error: out of memory")`},
	} {
		r := sglang.NewReader()
		r.Feed([]byte(at + "The server is fired up and ready to roll!\n" + tt.log + "\n"))
		f := r.Facts()
		if len(f.Fatal)+len(f.Notes)+f.Retracts > 0 || f.Last["fired_up"].Line != 1 || len(f.Last) != 1 {
			t.Errorf("%s: events %v", tt.name, f.Last)
		}
		// What follows is the server's again.
		r.Feed([]byte("[2026-11-29 14:08:18 TP3] Memory pool end. avail mem=11.20 GB\nRuntimeError: CUDA error: out of memory\n"))
		if f := r.Facts(); f.Last["memory_pool_end"].Rank != 3 || len(f.Fatal) != 1 {
			t.Errorf("%s: the lines after it gave %v", tt.name, f.Last)
		}
	}
}

// A quote that never closes hides the log no longer than to the server's next line.
func TestEchoThatNeverEnds(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	r.Feed([]byte("[2026-11-29 14:08:17] Receive: obj=GenerateReqInput(text='cut off\nRuntimeError: CUDA error: out of memory\n[2026-11-29 14:08:19 TP0] Cache flushed successfully!\nRuntimeError: CUDA error: out of memory\n"))
	if f := r.Facts(); f.Last["cache_flushed"].Line != 3 || len(f.Fatal) != 1 || f.Fatal[0].Line != 4 || f.Echoed != 2 {
		t.Errorf("%+v", f)
	}
	r = sglang.NewReader()
	r.Feed([]byte("[2026-11-29 14:08:17] Receive: obj=GenerateReqInput(text='cut off\n" + strings.Repeat("words\n", 2001) + "RuntimeError: CUDA error: out of memory\n"))
	if f := r.Facts(); len(f.Fatal) != 1 {
		t.Errorf("after 2000 lines: %+v", f.Fatal)
	}
}

// Two processes write into one line; every message counts.
func TestGluedLines(t *testing.T) {
	t.Parallel()
	const stamp = "[2026-11-29 14:08:17 TP3] "
	for _, tt := range []struct{ name, line, kinds string }{
		{"half a line and a whole one", stamp + "KV Cache is allocated. #tokens: 159277[2026-11-29 14:08:17 TP1] Memory pool end. avail mem=11.20 GB", "memory_pool_end"},
		{"two whole ones", stamp + "Load weight begin. avail mem=94.04 GB[2026-11-29 14:08:17 TP1] Memory pool end. avail mem=11.20 GB", "weight_begin memory_pool_end"},
		{"three", stamp + "Init parallel begin." + stamp + "Load weight begin. avail mem=94.04 GB" + stamp + "Cache flushed successfully!", "dist_begin weight_begin cache_flushed"},
		{"behind a decode line", stamp + "Decode batch, #running-req: 41, #token: 5, token usage: 0.87, cuda graph: True, gen throughput (token/s): 1432.11, #queue-req: 120" + stamp + "Cache flushed successfully!", "decode_batch cache_flushed"},
		{"into a decode line", stamp + "Decode batch, #running-req: 41, #tok" + stamp + "Cache flushed successfully!", "cache_flushed"},
		{"bar and exception", "Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:41<00:48,  1.38s/it]RuntimeError: CUDA error: out of memory", "shard_progress gpu_oom"},
		{"bar and line", " 50%|#####     | 12/24 [00:15<00:15,  1.29s/it]" + stamp + "Cache flushed successfully!", "cache_flushed"},
		{"colours in the stamp", "\x1b[32m[2026-11-29\x1b[0m 14:08:17 \x1b[1mTP3\x1b[0m]\x1b[0m Cache flushed successfully!", "cache_flushed"},
		{"a window title and a character set", "\x1b]0;sglang\a\x1b(B" + stamp + "Cache \x1b[Kflushed successfully!", "cache_flushed"},
		{"NULs of a truncated file", strings.Repeat("\x00", 300) + stamp + "Cache flushed successfully!", "cache_flushed"},
		{"an unknown prefix", "node7.example 17% <err> " + stamp + "Cache flushed successfully!", "cache_flushed"},
		{"two frames", "[2026-11-29 14:08:17,123] [INFO] " + stamp + "Cache flushed successfully!", "cache_flushed"},
		{"not UTF-8", "\xff\xfe" + stamp + "Cache flushed successfully!\xff", "cache_flushed"},
		{"CRLF", stamp + "Cache flushed successfully!\r", "cache_flushed"},
		{"quoted", `client said: "see [2026-11-29 14:08:17 TP3] Cache flushed successfully!"`, ""},
	} {
		r := sglang.NewReader()
		var kinds []string
		for _, ev := range r.Feed([]byte(tt.line + "\n")) {
			kinds = append(kinds, ev.Kind)
			if ev.Line != 1 || ev.Offset != 0 {
				t.Errorf("%s: %s on line %d at %d", tt.name, ev.Kind, ev.Line, ev.Offset)
			}
		}
		if got := strings.Join(kinds, " "); got != tt.kinds {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.kinds)
		}
		if f := r.Facts(); f.Lines != 1 {
			t.Errorf("%s: %d lines", tt.name, f.Lines)
		}
	}
}
