package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner/physics"
)

// suggestFacts is what init knows before the first trial; what is missing, null or 0 is unknown.
// docs/suggest.md describes the keys.
type suggestFacts struct {
	TP           float64  `json:"tp"`
	GPUGB        float64  `json:"gpu_gb"`         // GiB
	HostBudgetGB *float64 `json:"host_budget_gb"` // GiB, what host pools of all ranks may take
	FP8OptIn     bool     `json:"fp8_opt_in"`
	ModelHint    struct {
		KVBytes   float64 `json:"kv_bytes_per_token_rank"`
		WeightsGB float64 `json:"weights_gb_rank"` // GiB
	} `json:"model_hint"`
	WorkloadHint struct {
		Clients      float64 `json:"clients"`
		InTokens     float64 `json:"in_tokens"`
		OutTokens    float64 `json:"out_tokens"`
		SharedPrefix float64 `json:"shared_prefix"`
	} `json:"workload_hint"`
	Defaults map[string]json.RawMessage `json:"defaults"`
}

// protocolGB is the protocol's GB.
const protocolGB = 1 << 30

// check refuses figures that cannot be. A host budget below 0 is one of 0: it is what others left.
func (f *suggestFacts) check() error {
	m, w := f.ModelHint, f.WorkloadHint
	for _, x := range []struct {
		key   string
		value float64
	}{
		{"tp", f.TP},
		{"gpu_gb", f.GPUGB},
		{"model_hint.kv_bytes_per_token_rank", m.KVBytes},
		{"model_hint.weights_gb_rank", m.WeightsGB},
		{"workload_hint.clients", w.Clients},
		{"workload_hint.in_tokens", w.InTokens},
		{"workload_hint.out_tokens", w.OutTokens},
		{"workload_hint.shared_prefix", w.SharedPrefix},
	} {
		if x.value < 0 || x.value > 1e15 {
			return fmt.Errorf("facts.%s is %v; give what is true, or leave it out when it is not known", x.key, x.value)
		}
	}
	if f.TP != math.Trunc(f.TP) {
		return fmt.Errorf("facts.tp is %v; give the number of ranks", f.TP)
	}
	if f.HostBudgetGB != nil {
		*f.HostBudgetGB = max(*f.HostBudgetGB, 0)
	}
	return nil
}

// physics is what the search is told, without Start, Budget and Seed.
func (f *suggestFacts) physics(space suggestSpace) physics.Facts {
	w := f.WorkloadHint
	shared := w.SharedPrefix
	if w.InTokens > 0 {
		shared = min(shared, w.InTokens)
	}
	out := physics.Facts{
		Ranks: int(f.ranks()), GPUGiB: f.GPUGB, WeightsGiB: f.ModelHint.WeightsGB, CellBytes: f.ModelHint.KVBytes,
		PoolBytes: protocolGB, Admit: space.admit(f),
		Load: physics.Load{Clients: w.Clients, InputTokens: w.InTokens, OutputTokens: w.OutTokens, SharedTokens: shared},
	}
	if f.HostBudgetGB != nil {
		out.HostGB = *f.HostBudgetGB
	}
	for _, k := range space {
		if k.knob.Role == physics.RoleKVDtype {
			for _, v := range k.known {
				out.CellScale = append(out.CellScale, cellScale(v))
			}
		}
	}
	return out
}

// cellScale is the size of a KV token of a number format, 1 for bf16 and for what nobody knows.
func cellScale(dtype any) float64 {
	text, _ := dtype.(string)
	if bytes, ok := sglang.DtypeBytes(text); ok {
		return bytes / 2
	}
	if strings.HasPrefix(text, "fp8") {
		return 0.5
	}
	return 1
}

// suggestSeed is a seed from whatever JSON value was given: an integer itself, anything else by its text.
func suggestSeed(raw json.RawMessage) uint64 {
	text := string(raw)
	if text == "" || text == "null" {
		return 0
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return uint64(n) //nolint:gosec // any 64 bits are a seed
	}
	h := fnv.New64a()
	_, _ = h.Write(raw) // a hash never fails
	return h.Sum64()
}
