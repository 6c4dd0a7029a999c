package sglang

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// batchLines are batch lines of every dialect, read from the wheels 0.4.6 to 0.5.23.
var batchLines = []string{
	"Decode batch. #running-req: 12, #token: 30012, token usage: 0.19, cuda graph: True, gen throughput (token/s): 412.33, #queue-req: 0",
	"Decode batch. #running-req: 12, #token: 30012, token usage: 0.19, accept len: 2.31, cuda graph: True, gen throughput (token/s): 412.33, #queue-req: 0",
	"Decode batch. #running-req: 12, #token: 30012, token usage: 0.19, pre-allocated usage: 0.02, cuda graph: False, gen throughput (token/s): 412.33, #queue-req: 5",
	"Decode batch. #running-req: 12, #token: 30012, token usage: 0.19, cuda graph: True, gen throughput (token/s): 412.33, #queue-req: 5, timestamp: 2025-08-08T12:01:51.234690",
	"Decode batch. #running-req: 12, #full token: 30012, full token usage: 0.19, #swa token: 11, swa token usage: 0.55, cuda graph: True, gen throughput (token/s): 412.33, #queue-req: 0, ",
	"Decode batch [77], #running-req: 12, #full token: 30012, full token usage: 0.19, mamba num: 33, mamba usage: 0.61, accept len: 2.31, accept rate: 0.65, cpu graph: False, gen throughput (token/s): 412.33, #queue-req: 0, ",
	"Decode batch, #running-req: 12, #token: 30012, token usage: 0.19, pre-allocated usage: 0.02, #prealloc-req: 1, #transfer-req: 2, #retracted-req: 3, npu graph: True, gen throughput (token/s): 412.33, #queue-req: 0",
	"Decode batch, #running-req: 12, #token: 30012, token usage: 0.19, accept len: 2.31, accept rate: 0.65, cap len: 4.00, cuda graph: True, gen throughput (token/s): 412.33, #queue-req: 0, est. decode TFLOPS/s (per GPU): 1.20, est. read BW (GB/s per GPU): 1.00, est. write BW (GB/s per GPU): 0.10",
	"Prefill batch. #new-seq: 4, #new-token: 8192, #cached-token: 128, token usage: 0.12, #running-req: 9, #queue-req: 3",
	"Prefill batch. #new-seq: 4, #new-token: 8192, #cached-token: 128, cache hit rate: 35.00%, token usage: 0.12, #running-req: 9, #queue-req: 3",
	"Prefill batch. #new-seq: 4, #new-token: 8192, #cached-token: 128, token usage: 0.12, #running-req: 9, #queue-req: 3, timestamp: 2025-08-08T12:01:51.234690",
	"Prefill batch. #new-seq: 4, #new-token: 8192, #cached-token: 128, token usage: 0.12, #running-req: 9, #queue-req: 3, ",
	"Prefill batch [1234], #new-seq: 4, #new-token: 8192, #cached-token: 128, full token usage: 0.12, swa token usage: 0.05, #running-req: 9, #queue-req: 3, ",
	"Prefill batch, #new-seq: 4, #new-token: 8192, #cached-token: 128, full token usage: 0.12, mamba usage: 0.94, #running-req: 9, #queue-req: 3, #prealloc-req: 0, #inflight-req: 0, input throughput (token/s): 22620.70, ",
	"Prefill batch, #new-seq: 4, #new-token: 8192, #cached-token: 128, token usage: 0.12, #running-req: 9, #queue-req: 3, #pending-token: 7, cuda graph: False, input throughput (token/s): 22620.70",
}

// The quick reading says what the table's expression says, in every dialect.
func TestBatchAgreesWithTable(t *testing.T) {
	t.Parallel()
	for _, line := range batchLines {
		var b batch
		if !b.parse([]byte(line)) {
			t.Errorf("not read: %s", line)
			continue
		}
		got := b.event(&frame{msg: []byte(line), rank: -1, dp: -1, pp: -1})
		p, want := table.match([]byte(line), true)
		if p == nil || got.Kind != want.Kind {
			t.Fatalf("kind %q, the table says %q: %s", got.Kind, want.Kind, line)
		}
		for name := range got.Values {
			if name == "swa_token_usage" || name == "mamba_usage" || name == "accept_len" { // the table has no word for them
				delete(got.Values, name)
			}
		}
		if d := cmp.Diff(want.Values, got.Values); d != "" {
			t.Errorf("%s\n-table +quick:\n%s", line, d)
		}
	}
}

// What is not one whole batch line is left to the table.
func TestBatchRefuses(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "Decode batch", "Decode batch, ", "Decode batches are many, #running-req: 1",
		"Decode batch, #running-req: 41, #token: 138312",
		"Decode batch, #running-req: 41, #token: 13[2026-11-29 14:08:17 TP3] Memory pool end. avail mem=11.20 GB",
		"Decode batch, #running-req: 12, token usage: 0.19, cuda graph: True[2026-11-29 14:08:17 TP3] x, gen throughput (token/s): 412.33, #queue-req: 0",
		"Decode batch, #running-req: x, token usage: 0.19, gen throughput (token/s): 412.33, #queue-req: 0",
		"Decode batch, #running-req: 1, token usage: 0.19, gen throughput (token/s): inf, #queue-req: 0",
		"Decode batch [12, #running-req: 1, token usage: 0.19, gen throughput (token/s): 1.00, #queue-req: 0",
		"Prefill batch, #new-seq: 4, #new-token: 8192, #cached-token: 128",
	} {
		var b batch
		if b.parse([]byte(line)) {
			t.Errorf("read as a batch line: %q", line)
		}
	}
}

func TestDecimal(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		text := strconv.FormatFloat(rng.Float64()*float64(uint64(1)<<rng.UintN(60)), 'f', rng.IntN(12), 64)
		want, _ := strconv.ParseFloat(text, 64)
		if got, ok := decimal([]byte(text)); !ok || got != want {
			t.Fatalf("decimal(%s) = %v (%v), want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ".", "1.2.3", "-1", "1e5", "nan", " 1", "1 2"} {
		if v, ok := decimal([]byte(text)); ok {
			t.Errorf("decimal(%q) = %v, want a refusal", text, v)
		}
	}
}
