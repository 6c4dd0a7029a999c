package trial_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Lines of a healthy server that the small cases share.
const (
	causeStart = `[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, host='127.0.0.1', port=30000, mem_fraction_static=0.88, nnodes=1, page_size=1)
[2026-01-01 10:00:05 TP0] Init torch distributed begin.
[2026-01-01 10:00:06 TP1] Init torch distributed begin.
[2026-01-01 10:00:09 TP0] Init torch distributed ends. mem usage=0.70 GB
[2026-01-01 10:00:09 TP1] Init torch distributed ends. mem usage=0.70 GB
[2026-01-01 10:00:09 TP0] Load weight begin. avail mem=78.60 GB
[2026-01-01 10:00:09 TP1] Load weight begin. avail mem=78.60 GB
`
	causePool = `[2026-01-01 10:01:09 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=40.00 GB, mem usage=38.60 GB.
[2026-01-01 10:01:09 TP1] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=40.00 GB, mem usage=38.60 GB.
[2026-01-01 10:01:10 TP0] KV Cache is allocated. #tokens: 300000, K size: 14.00 GB, V size: 14.00 GB
[2026-01-01 10:01:10 TP0] Memory pool end. avail mem=11.00 GB
[2026-01-01 10:01:11 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=10.90 GB
[2026-01-01 10:01:31 TP0] Capture cuda graph end. Time elapsed: 20.00 s. mem usage=1.50 GB. avail mem=9.40 GB.
[2026-01-01 10:01:32 TP0] max_total_num_tokens=300000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=131072, available_gpu_mem=9.40 GB
`
	causeReady = `[2026-01-01 10:01:40] INFO:     Started server process [12]
[2026-01-01 10:01:40] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[2026-01-01 10:01:41 TP0] Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0
[2026-01-01 10:01:45] The server is fired up and ready to roll!
`
	causeServe = `[2026-01-01 10:02:45 TP0] Prefill batch. #new-seq: 4, #new-token: 8192, #cached-token: 0, token usage: 0.10, #running-req: 10, #queue-req: 3
[2026-01-01 10:02:50 TP0] Decode batch. #running-req: 14, #token: 40000, token usage: 0.13, cuda graph: True, gen throughput (token/s): 900.00, #queue-req: 3
`
)

// TestCauses reads the small cases: testdata/causes/README.md.
func TestCauses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/causes/causes.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.NewReplacer("@START\n", causeStart, "@POOL\n", causePool, "@READY\n", causeReady, "@SERVE\n", strings.Repeat(causeServe, 6))
	for _, c := range strings.Split("\n"+string(text), "\n== ")[1:] {
		head, log, _ := strings.Cut(c+"\n", "\n")
		parts := strings.SplitN(head, " | ", 3)
		if len(parts) < 3 {
			parts = append(strings.SplitN(strings.TrimSuffix(head, " |"), " | ", 2), "")
		}
		t.Run(parts[1], func(t *testing.T) {
			t.Parallel()
			v, err := diagnose([]byte(lines.Replace(log)), []byte(strings.TrimSpace(parts[2])))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s / %s / %s, %s", v.Outcome, v.Phase, v.Cause, v.Blames); got != parts[0] {
				t.Errorf("verdict %s, want %s\n%s", got, parts[0], v.Text)
			}
			if v.Line == 0 {
				t.Error("no evidence line")
			}
			inVocabulary(t, v)
		})
	}
}
