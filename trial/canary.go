package trial

import (
	"context"
	"fmt"
	"time"

	"sgtune/benchmark"
)

const (
	canaryQuantile  = 0.99
	canaryOutput    = 32 // of every second request: somebody always ends, so prefill goes on while the rest decodes
	canaryClients   = 64 // extra clients at most
	defaultChunk    = 8192
	worstMinute     = time.Minute
	canaryPoolTimes = 2 // prompt tokens, in KV pools
)

// canary sends the longest prompts at the highest level: enough to fill two prefill chunks per step while that
// level decodes, at most Load.Canary or twice the KV pool in prompt tokens. Surviving proves one
// short window, no more; what it yields is the low-water mark of free GPU memory.
func (a *attempt) canary(ctx context.Context) error {
	if a.Load.Canary <= 0 || a.Load.Workload == nil || a.Load.Workload.Len() == 0 {
		return nil
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	log, _ := a.watch.facts()
	w := a.Load.Workload
	rows := Rows{To: w.Len(), Longest: canaryQuantile, Short: canaryOutput}
	opts := benchmark.Options{Concurrency: canaryClientsAt(w, a.highest(), log.Memory.ChunkedPrefill)}
	opts.Cap = a.Load.Canary
	if a.t.CanaryShrunk {
		at := worstRows(w, a.highest())
		rows = Rows{From: at, To: min(at+a.highest(), w.Len())}
		opts.Concurrency, opts.Cap = a.highest(), min(a.Load.Canary, worstMinute)
		text := fmt.Sprintf("canary shrunk to the trace's own worst minute: %d rows at %d clients", rows.To-rows.From, opts.Concurrency)
		a.find("canary_shrunk", text)
		a.notice("finding", fmt.Sprintf("trial %d: %s", a.t.Number, text))
	}
	opts.PromptTokens = int64(canaryPoolTimes * log.Memory.Tokens)
	opts.Window, opts.Drain = min(a.Load.Window, opts.Cap), cutAtOnce
	rows.Salt = a.salt() + "/canary"
	report, err := a.steady(ctx, rows, opts)
	if err != nil {
		return err
	}
	if !report.Valid && report.Requests.Sent > report.Requests.OK {
		a.find("canary_requests_failed", fmt.Sprintf("%d of %d canary requests failed: %s", report.Requests.Sent-report.Requests.OK, report.Requests.Sent, report.Advice))
	}
	return nil
}

// canaryClientsAt is how many clients send the canary: those beyond the level keep two chunks of prompts waiting.
func canaryClientsAt(w *benchmark.Workload, level, chunk int) int {
	if chunk <= 0 {
		chunk = defaultChunk
	}
	length := max(1, w.InputQuantile(canaryQuantile))
	return level + min((2*chunk+length-1)/length, canaryClients)
}

// worstRows is where the stretch of as many consecutive rows as the highest level has clients begins that has the most
// prompt tokens: the worst that a closed loop over this file can have in flight at once.
func worstRows(w *benchmark.Workload, level int) int {
	n := min(level, w.Len())
	inputs := make([]int, n) // of the last n rows, in a ring
	sum, worst, at := 0, 0, 0
	for i, r := range w.All() {
		sum += r.Input() - inputs[i%n]
		inputs[i%n] = r.Input()
		if i >= n-1 && sum > worst {
			worst, at = sum, i-n+1
		}
	}
	return at
}
