package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// toySpec is one knob of the toy server's space.
type toySpec struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Step    float64 `json:"step,omitempty"`
	Log     bool    `json:"log,omitempty"`
	Choices []any   `json:"choices,omitempty"`
}

func toySpace() []toySpec {
	return []toySpec{
		{Name: "mem_fraction_static", Type: "float", Low: 0.8, High: 0.95, Step: 0.005},
		{Name: "hicache_size", Type: "int", High: 300},
		{Name: "kv_cache_dtype", Type: "cat", Choices: []any{"bf16", "fp8_e4m3"}},
		{Name: "chunked_prefill_size", Type: "cat_ord", Choices: []any{1024.0, 2048.0, 4096.0, 8192.0, 16384.0}},
		{Name: "max_running_requests", Type: "int", Low: 8, High: 512, Log: true},
		{Name: "cuda_graph_max_bs", Type: "cat_ord", Choices: []any{8.0, 32.0, 128.0, 512.0}},
		{Name: "schedule_conservativeness", Type: "float", Low: 0.3, High: 1.6, Step: 0.05},
		{Name: "attention_backend", Type: "cat", Choices: []any{"flashinfer", "fa3", "triton"}},
		{Name: "hicache_write_policy", Type: "cat", Choices: []any{"write_through", "write_back"}},
		{Name: "page_size", Type: "cat_ord", Choices: []any{1.0, 16.0, 64.0}},
		{Name: "enable_mixed_chunk", Type: "cat", Choices: []any{false, true}},
	}
}

const (
	toyRanks  = 8
	toyBudget = 400
)

// toyInit is the init of a space on the toy server.
func toyInit(t testing.TB, space []toySpec, seed uint64) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"op": "init", "space": space, "budget": 30, "seed": seed, "facts": map[string]any{
			"tp": toyRanks, "gpu_gb": 95.6, "host_budget_gb": toyBudget, "fp8_opt_in": false,
			"model_hint":    map[string]any{"kv_bytes_per_token_rank": 70272, "weights_gb_rank": 74},
			"workload_hint": map[string]any{"clients": 150, "in_tokens": 1096, "out_tokens": 3000, "shared_prefix": 200},
			"defaults": map[string]any{
				"mem_fraction_static": 0.85, "hicache_size": 0, "kv_cache_dtype": "bf16", "chunked_prefill_size": 8192, "max_running_requests": 256,
				"cuda_graph_max_bs": 128, "schedule_conservativeness": 1, "attention_backend": "flashinfer", "hicache_write_policy": "write_through",
				"page_size": 1, "enable_mixed_chunk": false,
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// toyTrial is what a server of the founding case's size shows: tokens and free memory by SGLang's
// rule, throughput by how many requests they hold. names are the knobs' own ones by the given ones.
func toyTrial(config map[string]any, names map[string]string) map[string]any {
	c := map[string]any{}
	for given, v := range config {
		c[names[given]] = v
	}
	num := func(name string) float64 { f, _ := c[name].(float64); return f }
	const before, after, cell = 94.95, 21.7, 70272
	log := map[string]any{"avail_before_load_gb": before, "avail_after_load_gb": after}
	obs := map[string]any{"config": config, "status": "ok", "cost_min": 20, "log": log}
	if c["attention_backend"] == "triton" {
		obs["status"], obs["log"] = "start_crash", map[string]any{}
		return obs
	}
	kv := after - before*(1-num("mem_fraction_static"))
	tokens := math.Floor(kv * (1 << 30) / cell)
	free := before*(1-num("mem_fraction_static")) - 1.3 - 0.006*num("cuda_graph_max_bs")
	log["kv_gb"], log["max_total_num_tokens"], log["avail_after_kv_gb"], log["avail_after_graph_gb"] = kv, tokens, free+0.006*num("cuda_graph_max_bs"), free
	low := free - 0.5 - 0.25*num("chunked_prefill_size")/1024
	switch {
	case free < 0.1:
		obs["status"] = "start_oom"
		return obs
	case low < 0:
		obs["status"] = "load_oom"
		return obs
	}
	running := min(150, num("max_running_requests"), tokens/(1096+3000*(0.15+0.5*num("schedule_conservativeness"))))
	hit := min(0.2, 0.002*num("hicache_size"))
	step := 40 + 0.45*running
	if running > num("cuda_graph_max_bs") {
		step *= 1.3
	}
	obs["value"], obs["frac"] = 1000*running/step*(1+hit/2), 1
	log["running_req"], log["cache_hit_rate"], log["min_free_gb"], log["startup_min"] = running, hit, low, 8
	return obs
}

// toyNight runs n trials; each answer must be admitted and in the words of the space.
func toyNight(t testing.TB, s *suggestSession, space []toySpec, names map[string]string, seed uint64, n int) (best float64) {
	t.Helper()
	ask(t, s, toyInit(t, space, seed))
	for range n {
		reply := ask(t, s, `{"op":"suggest"}`)
		config, _ := reply["config"].(map[string]any)
		if frac, has := reply["measure_frac"].(float64); !has || frac <= 0 || frac > 1 {
			t.Fatalf("measure_frac %v", reply["measure_frac"])
		}
		mustAdmit(t, space, config)
		obs := toyTrial(config, names)
		if v, _ := obs["value"].(float64); v > best {
			best = v
		}
		text, err := json.Marshal(map[string]any{"op": "observe", "obs": obs})
		if err != nil {
			t.Fatal(err)
		}
		ask(t, s, string(text))
		if config, some := ask(t, s, `{"op":"recommend"}`)["config"].(map[string]any); some {
			mustAdmit(t, space, config)
		}
	}
	return best
}

// mustAdmit checks a configuration: every knob and no other, values of the space, the hard rules.
func mustAdmit(t testing.TB, space []toySpec, config map[string]any) {
	t.Helper()
	if len(config) != len(space) {
		t.Fatalf("%d knobs of %d: %v", len(config), len(space), config)
	}
	for _, k := range space {
		v := config[k.Name]
		x, isNumber := v.(float64)
		steps := x - k.Low
		if k.Step > 0 {
			steps /= k.Step
		}
		switch {
		case k.Choices != nil && !slices.Contains(k.Choices, v),
			k.Choices == nil && (!isNumber || x < k.Low || x > k.High || math.Abs(steps-math.Round(steps)) > 1e-9):
			t.Fatalf("%s is %v", k.Name, v)
		case strings.Contains(k.Name, "hicache_size") && x*toyRanks > toyBudget:
			t.Fatalf("a host pool of %v GB", v)
		case k.Name == "kv_cache_dtype" && v != "bf16":
			t.Fatalf("a lossy KV cache: %v", v)
		}
	}
}

// TestSuggestInAnyOrder gives the same problem with its knobs and choices in other orders, and with
// other names for those that physics does not know: every answer is admitted, and the search gets
// better than where it starts all the same.
func TestSuggestInAnyOrder(t *testing.T) {
	t.Parallel()
	orders, trials := 4, 5
	if testing.Short() {
		orders, trials = 2, 2
	}
	for order := range orders {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			space, names := toySpace(), map[string]string{}
			r := rand.New(rand.NewPCG(uint64(order), 6))
			for i := range space {
				own := space[i].Name
				switch own {
				case "attention_backend", "page_size", "enable_mixed_chunk":
					space[i].Name = fmt.Sprintf("knob_%d", i)
				}
				names[space[i].Name] = own
				if space[i].Type == "cat" {
					r.Shuffle(len(space[i].Choices), func(a, b int) {
						c := space[i].Choices
						c[a], c[b] = c[b], c[a]
					})
				}
			}
			r.Shuffle(len(space), func(a, b int) { space[a], space[b] = space[b], space[a] })
			var s suggestSession
			toyNight(t, &s, space, names, uint64(order), trials)
		})
	}
}

// TestSuggestIsAFunction gives the same answers to the same requests, also in a process that served
// another search before.
func TestSuggestIsAFunction(t *testing.T) {
	t.Parallel()
	trials := 5
	if testing.Short() {
		trials = 2
	}
	names := map[string]string{}
	for _, k := range toySpace() {
		names[k.Name] = k.Name
	}
	talk := func(s *suggestSession) string {
		var log strings.Builder
		ask(t, s, toyInit(t, toySpace(), 3))
		for range trials {
			reply, _ := s.answer([]byte(`{"op":"suggest"}`))
			log.Write(reply)
			var v struct{ Config map[string]any }
			if err := json.Unmarshal(reply, &v); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(map[string]any{"op": "observe", "obs": toyTrial(v.Config, names)})
			if err != nil {
				t.Fatal(err)
			}
			ask(t, s, string(text))
		}
		return log.String()
	}
	var fresh, used suggestSession
	first := talk(&fresh)
	toyNight(t, &used, toySpace(), names, 9, 1)
	if again := talk(&used); again != first {
		t.Errorf("the same requests, other answers:\n%s\n%s", first, again)
	}
}

// BenchmarkSuggest is a night of 30 trials, a recommendation after each; it reports the time of one
// suggestion, everything included, and its CPU time, which a busy machine does not stretch.
func BenchmarkSuggest(b *testing.B) {
	const trials = 30
	names := map[string]string{}
	for _, k := range toySpace() {
		names[k.Name] = k.Name
	}
	defer easeGC()()
	var best float64
	before := cpuTime(b)
	for seed := uint64(0); b.Loop(); seed++ {
		var s suggestSession
		best = max(best, toyNight(b, &s, toySpace(), names, seed, trials))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/trials, "ns/suggestion")
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N)/trials, "cpu-ns/suggestion")
	b.ReportMetric(best, "tok/s")
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkSuggestProtocol is what the protocol itself costs: an observation with its log, read and
// translated, and a reply with a configuration, written.
func BenchmarkSuggestProtocol(b *testing.B) {
	var s suggestSession
	ask(b, &s, toyInit(b, toySpace(), 1))
	p := s.problem
	config, err := json.Marshal(p.knobs.config(p.start))
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(`{"op":"observe","obs":{"config":` + string(config) + `,"status":"ok","value":700.5,"frac":0.5,"cost_min":12.5,"series":[[0.1,650],[0.2,660],[0.3,690],[0.4,700],[0.5,700.5]],"log":{"avail_before_load_gb":94.9,"avail_after_load_gb":21.7,"max_total_num_tokens":159277,"kv_gb":10.4,"avail_after_kv_gb":11.3,"avail_after_graph_gb":5.47,"startup_min":6.5,"running_req":41.5,"token_usage":0.9,"cache_hit_rate":0.25,"retract_frac":0,"min_free_gb":0.4}}}`)
	for b.Loop() {
		var r suggestRequest
		if err := parseSuggest(line, &r); err != nil {
			b.Fatal(err)
		}
		point, _, err := p.knobs.point(r.Obs.Config, p.start)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Obs.physics(point); err != nil {
			b.Fatal(err)
		}
		c := p.knobs.config(point)
		if reply := suggestReply(suggestConfig{Config: &c}); !bytes.Contains(reply, []byte("mem_fraction_static")) {
			b.Fatalf("reply %s", reply)
		}
	}
}
