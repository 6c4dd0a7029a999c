package sglang_test

import (
	"bytes"
	"fmt"
	"testing"

	"sgtune/sglang"
)

const (
	decodeLine = "[2026-11-29 02:11:07 TP0] Decode batch, #running-req: 41, #token: 138312, token usage: 0.87, cuda graph: True, gen throughput (token/s): 1432.11, #queue-req: 120"
	accessLine = `[2026-11-29 14:08:17] INFO:     127.0.0.1:47702 - "POST /v1/chat/completions HTTP/1.1" 200 OK`
	otherLine  = "[2026-11-29 14:08:17 TP0] Disable prefill CUDA graph because cuda_graph_config resolved prefill.backend='disabled'"
	plainLine  = "                        [--tokenizer-mode {auto,slow}] [--tokenizer-worker-num TOKENIZER_WORKER_NUM] [--skip-tokenizer-init]"
	proseLine  = "We have auto-detected that your job uses the spawn start method; nothing needs to be done about it."
)

// A line that means nothing costs no memory, and neither does a batch line when only facts are asked
// for.
func TestAllocations(t *testing.T) { // not parallel: it counts the process's allocations
	for _, line := range []string{accessLine, otherLine, plainLine, proseLine, "", "sglang-1  | " + otherLine, "2026-11-29T14:08:17.1Z stderr F " + accessLine} {
		parse := func() { sglang.ParseLine(line) }
		if n := testing.AllocsPerRun(200, parse); n != 0 && !raceDetector {
			t.Errorf("ParseLine allocates %v times for %q", n, line)
		}
		r, text := sglang.NewReader(), []byte(line+"\n")
		if n := testing.AllocsPerRun(200, func() { r.Feed(text) }); n != 0 && !raceDetector {
			t.Errorf("Feed allocates %v times for %q", n, line)
		}
	}
	for _, line := range []string{decodeLine, "sglang-1  | " + decodeLine, decodeLine + "\r"} {
		r, text := sglang.NewReader(), []byte(line+"\n")
		write := func() {
			if _, err := r.Write(text); err != nil {
				t.Error(err)
			}
		}
		if n := testing.AllocsPerRun(200, write); n != 0 {
			t.Errorf("Write allocates %v times for %q", n, line)
		}
	}
}

// decodeLog is n bytes of what a busy server writes.
func decodeLog(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "[2026-11-29 %02d:%02d:%02d TP0] Decode batch, #running-req: %d, #token: %d, token usage: 0.%02d, cuda graph: True, gen throughput (token/s): %d.%02d, #queue-req: %d\n",
			i/3600%24, i/60%60, i%60, 20+i%40, 10000+i*37%150000, i%100, 900+i*7%900, i%100, i%200)
	}
	return b.Bytes()
}

func BenchmarkParseLine(b *testing.B) {
	for name, line := range map[string]string{"decode": decodeLine, "access": accessLine, "other": otherLine, "plain": plainLine, "prose": proseLine} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sglang.ParseLine(line)
			}
		})
	}
}

// BenchmarkReaderDecodeLines is what diagnosing a long log costs.
func BenchmarkReaderDecodeLines(b *testing.B) {
	log := decodeLog(1 << 20)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		r := sglang.NewReader()
		if _, err := r.Write(log); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReaderEvents is the same with an Event for each line, as a running trial wants them.
func BenchmarkReaderEvents(b *testing.B) {
	log := decodeLog(1 << 20)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		sglang.NewReader().Feed(log)
	}
}

func BenchmarkReader(b *testing.B) {
	log := readLog(b, "01-ok-mla-tp8-hicache.log")
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		r := sglang.NewReader()
		r.Feed(log)
		r.Close()
	}
}
