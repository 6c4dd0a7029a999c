package sglang_test

import (
	"strings"
	"testing"

	"sgtune/sglang"
)

// Who counts: of plain tensor parallelism rank 0, with DP attention each DP rank's printer, of a
// pipeline its first stage.
func TestWhoseBatchesCount(t *testing.T) {
	t.Parallel()
	const decode = "Decode batch, #running-req: 7, #token: 5, token usage: 0.87, cuda graph: True, gen throughput (token/s): 10.00, #queue-req: 1"
	const retract = "KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.5 -> 0.9"
	for _, tt := range []struct {
		name              string
		ranks             []string // each prints a decode line, then a retraction
		decodes, retracts int
	}{
		{"one process", []string{""}, 1, 1},
		{"tensor parallel", []string{" TP0", " TP1"}, 1, 1},
		{"DP attention", []string{" DP0 TP0 EP0", " DP1 TP4 EP4"}, 2, 2},
		{"replicas", []string{" DP0 TP0", " DP1 TP0"}, 2, 2},
		{"pipeline", []string{" PP0 TP0", " PP1 TP0"}, 1, 1},
	} {
		var log strings.Builder
		log.WriteString("[2026-11-29 14:08:16] The server is fired up and ready to roll!\n")
		for _, rank := range tt.ranks {
			log.WriteString("[2026-11-29 14:08:17" + rank + "] " + decode + "\n")
		}
		for _, rank := range tt.ranks {
			log.WriteString("[2026-11-29 14:08:18" + rank + "] " + retract + "\n")
		}
		r := sglang.NewReader()
		r.Feed([]byte(log.String()))
		f := r.Facts()
		if f.Decodes != tt.decodes || f.Retracts != tt.retracts || f.MaxRunning != 7 || f.Phase != sglang.PhaseDecode {
			t.Errorf("%s: %d decode lines and %d retractions in %s, want %d and %d", tt.name, f.Decodes, f.Retracts, f.Phase, tt.decodes, tt.retracts)
		}
		if last := f.Last["decode_batch"]; last.Line != 1+len(tt.ranks) || last.Values["running"] != 7 || f.LastBatch.Line != last.Line {
			t.Errorf("%s: last batch %+v", tt.name, last)
		}
	}
	// One rank of a DP group that prints no batches does not count.
	r := sglang.NewReader()
	r.Feed([]byte("[2026-11-29 14:08:17 DP0 TP0] " + decode + "\n[2026-11-29 14:08:18 DP0 TP0] " + retract + "\n[2026-11-29 14:08:18 DP0 TP1] " + retract + "\n"))
	if f := r.Facts(); f.Retracts != 1 || f.Retracted != 3 {
		t.Errorf("%d retractions of %d requests, want 1 of 3", f.Retracts, f.Retracted)
	}
}

// A health probe's batch of one token proves nothing about the phase.
func TestProbeBatch(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	r.Feed([]byte("[2026-11-29 14:08:16] The server is fired up and ready to roll!\n" +
		"[2026-11-29 14:08:17] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, \n"))
	if f := r.Facts(); f.Phase != sglang.PhaseReady || f.Prefills != 1 || f.LastBatch.Kind != "prefill_batch" {
		t.Errorf("phase %s, %d prefills, last %s; want ready", f.Phase, f.Prefills, f.LastBatch.Kind)
	}
}
