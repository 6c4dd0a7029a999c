package tuner

import (
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
)

const storedSource = `study: old
server:
  model: /models/K
  flags: {tp-size: 8, api-key: '***'}
  env: {HF_TOKEN: '***'}
  baseline: {mem-fraction-static: 0.85}
host: {kind: local, ram_budget: 200GB}
space:
  mem-fraction-static: {min: 0.80, max: 0.92, step: 0.04}
  hicache-size: [0, 16, 48]
workload: {file: moved-away.jsonl, load: {concurrency: [40, 120]}}
finish: {notify: [./gone.sh]}
sampler: physics
`

// A stored study is understood after its files have moved and its secrets were masked.
func TestStoredProblem(t *testing.T) {
	t.Parallel()
	tr := baselineTrial(codedProblem())
	tr.MinRAM, tr.OwnRAM, tr.Memory.HostPoolGB = 30e9, 20e9, 16
	p, ok := StoredProblem(&Record{Name: "old", Source: storedSource}, History{tr, tr, tr}, nil)
	if !ok || len(p.Space) != 2 || p.Baseline[memFraction] != 0.85 || len(p.Levels) != 2 || p.Objective.Metric != "output_tok_s" {
		t.Fatalf("%+v, %v", p, ok)
	}
	// Rule 1 leaves 200 GB; rule 2 what trials saw: 30 + 20 + 8 x 16 GB, less the reserve and the server's own.
	if want := (178 - 10.7 - 20.0); p.PoolGB < want-0.01 || p.PoolGB > want+0.01 {
		t.Errorf("host pools up to %.1f GB, want %.1f", p.PoolGB, want)
	}
	if err := p.Admit(sglang.Merge(p.Base, sglang.Config{hicacheSize: 48.0})); err == nil {
		t.Error("384 GB of host pools are admitted")
	}
	if err := p.Admit(tr.Config); err != nil {
		t.Errorf("what was launched is refused: %v; a map asks about it too", err)
	}
	other := []Event{{Kind: "reject", Config: sglang.Config{hicacheSize: 48.0}, Text: "rule host RAM: too large"}}
	fixed := []Event{other[0], {Kind: "reject", Config: sglang.Config{hicacheSize: []any{16.0, 48.0}}, Text: "rule workload: hicache-size is fixed to 0"}}
	for _, events := range [][]Event{other, fixed} {
		p, _ := StoredProblem(&Record{Name: "old", Source: storedSource}, History{tr, tr, tr}, events)
		if d, has := p.Space.Dim(hicacheSize); !has || (len(d.Values) == 1) != (len(events) == 2) {
			t.Errorf("after %d refusals host pools are %v", len(events), d.Values)
		}
	}
	for _, source := range []string{"", "space: [", "study: x\n"} {
		if _, ok := StoredProblem(&Record{Source: source}, History{&trial.Trial{}}, nil); ok {
			t.Errorf("%q has a space", source)
		}
	}
}
