package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestSuggestRandomProblems plays random spaces, facts and results, absurd ones too: nothing is
// refused, and every configuration is within the space and the rules.
func TestSuggestRandomProblems(t *testing.T) {
	t.Parallel()
	problems, trials := 25, 4
	if testing.Short() {
		problems, trials = 12, 2
	}
	for n := range problems {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 11))
			space := randomSpace(r)
			var s suggestSession
			ask(t, &s, mustJSON(t, map[string]any{"op": "init", "space": space, "facts": randomFacts(r, space), "budget": r.IntN(40), "seed": r.Int64()}))
			for range trials {
				reply := ask(t, &s, `{"op":"suggest"}`)
				if reply["stop"] == true {
					return
				}
				config, _ := reply["config"].(map[string]any)
				mustAdmit(t, space, config)
				ask(t, &s, mustJSON(t, map[string]any{"op": "observe", "obs": randomResult(r, config)}))
				if config, some := ask(t, &s, `{"op":"recommend"}`)["config"].(map[string]any); some {
					mustAdmit(t, space, config)
				}
			}
		})
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// randomSpace is some knobs of the toy server and some that nobody knows, in any order.
func randomSpace(r *rand.Rand) []toySpec {
	var space []toySpec
	for _, k := range toySpace() {
		if r.IntN(2) == 0 {
			space = append(space, k)
		}
	}
	for i := range r.IntN(5) + 1 {
		name := fmt.Sprintf("x%d", i)
		low := float64(r.IntN(20))
		switch r.IntN(5) {
		case 0:
			space = append(space, toySpec{Name: name, Type: "int", Low: low, High: low + float64(r.IntN(3000))})
		case 1:
			space = append(space, toySpec{Name: name, Type: "int", Low: low + 1, High: low + 1 + float64(r.IntN(3000)), Log: true})
		case 2:
			space = append(space, toySpec{Name: name, Type: "float", Low: -low, High: low, Step: 0.125})
		case 3:
			space = append(space, toySpec{Name: name, Type: "cat", Choices: []any{"a", 1.0, true, nil}[:r.IntN(4)+1]})
		case 4:
			space = append(space, toySpec{Name: name, Type: "cat_ord", Choices: []any{3.0, 1.0, 2.0, 8.0}[:r.IntN(4)+1]})
		}
	}
	r.Shuffle(len(space), func(a, b int) { space[a], space[b] = space[b], space[a] })
	return space
}

// randomFacts knows some things, right or wrong. The host budget is the toy server's.
func randomFacts(r *rand.Rand, space []toySpec) map[string]any {
	facts := map[string]any{"tp": toyRanks, "host_budget_gb": toyBudget}
	if r.IntN(2) == 0 {
		facts["gpu_gb"] = []float64{0, 0.1, 24, 95.6, 1e6}[r.IntN(5)]
	}
	if r.IntN(2) == 0 {
		facts["model_hint"] = map[string]any{"kv_bytes_per_token_rank": []float64{0, 1, 70272, 1e12}[r.IntN(4)], "weights_gb_rank": 200 * r.Float64()}
	}
	if r.IntN(2) == 0 {
		facts["workload_hint"] = map[string]any{"clients": r.IntN(300), "in_tokens": r.IntN(40000), "out_tokens": r.IntN(6000), "shared_prefix": r.IntN(50000)}
	}
	if r.IntN(2) == 0 {
		defaults := map[string]any{"unknown_knob": 1}
		for _, k := range space {
			defaults[k.Name] = []any{0, 1e6, "fcfs", nil, 0.85}[r.IntN(5)]
		}
		facts["defaults"] = defaults
	}
	return facts
}

// randomResult is any status with some of the figures.
func randomResult(r *rand.Rand, config map[string]any) map[string]any {
	log := map[string]any{}
	for _, name := range []string{
		"avail_before_load_gb", "avail_after_load_gb", "max_total_num_tokens", "kv_gb", "avail_after_kv_gb", "avail_after_graph_gb",
		"min_free_gb", "startup_min", "running_req", "cache_hit_rate",
	} {
		if r.IntN(2) == 0 {
			log[name] = []float64{-1, 0, 1e-12, 0.5, 20, 95, 1e5, 1e14}[r.IntN(8)]
		}
	}
	obs := map[string]any{"config": config, "log": log}
	obs["status"] = []string{"ok", "aborted", "started", "start_crash", "start_oom", "load_oom", "host_oom"}[r.IntN(7)]
	if obs["status"] == "ok" || r.IntN(2) == 0 {
		obs["value"] = []float64{0, 1e-12, 1e-9, 100, 110, 120, mostValue}[r.IntN(7)]
	}
	if r.IntN(2) == 0 {
		obs["frac"], obs["cost_min"] = r.Float64(), 30*r.Float64()
	}
	return obs
}
