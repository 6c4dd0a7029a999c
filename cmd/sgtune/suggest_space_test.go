package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sgtune/tuner/physics"
)

// readInit reads an init as the session does.
func readInit(t *testing.T, line string) (suggestSpace, *suggestRequest) {
	t.Helper()
	var r suggestRequest
	if err := parseSuggest([]byte(line), &r); err != nil {
		t.Fatal(err)
	}
	if err := r.Facts.check(); err != nil {
		t.Fatal(err)
	}
	space, err := newSuggestSpace(r.Space, &r.Facts)
	if err != nil {
		t.Fatal(err)
	}
	return space, &r
}

// words are a knob's values as they are answered.
func words(k *suggestKnob) string {
	var out []string
	for _, w := range k.words {
		out = append(out, string(w))
	}
	return strings.Join(out, " ")
}

func TestSuggestValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, spec, facts string
		words             string
		ordered           bool
		values            []float64 // nil: as the words say
	}{
		{"exact decimals", `"type":"float","low":0.8,"high":0.815,"step":0.005`, "", "0.8 0.805 0.81 0.815", true, nil},
		{"a step that does not end at high", `"type":"float","low":0.3,"high":0.62,"step":0.15`, "", "0.3 0.45 0.6", true, nil},
		{"floats that are whole keep their point", `"type":"float","low":1,"high":2.0,"step":5e-1`, "", "1.0 1.5 2.0", true, nil},
		{"below 0", `"type":"float","low":-0.2,"high":0.1,"step":0.1`, "", "-0.2 -0.1 0.0 0.1", true, nil},
		{"one value", `"type":"float","low":0.85,"high":0.85,"step":0.005`, "", "0.85", true, nil},
		{"integers", `"type":"int","low":1,"high":4`, "", "1 2 3 4", true, nil},
		{"integers written with a point", `"type":"int","low":1.0,"high":3e0`, "", "1 2 3", true, nil},
		{"integers by a step", `"type":"int","low":0,"high":50,"step":16`, "", "0 16 32 48", true, nil},
		{"choices with an order become ascending", `"type":"cat_ord","choices":[8192,-1,2048]`, "", "-1 2048 8192", true, nil},
		{"words with an order keep it", `"type":"cat_ord","choices":["low","high","max"]`, "", `"low" "high" "max"`, true, []float64{0, 1, 2}},
		{"mixed choices with an order keep it", `"type":"cat_ord","choices":["auto",4,2]`, "", `"auto" 4 2`, true, []float64{0, 1, 2}},
		{"choices without an order", `"type":"cat","choices":[64,1,16]`, "", "64 1 16", false, []float64{0, 1, 2}},
		{"as they were written", `"type":"cat","choices":["a\u00e9<b>",true,false,null,1.50]`, "", `"a\u00e9<b>" true false null 1.50`, false, []float64{0, 1, 2, 3, 4}},
		{"a host pool within the budget", `"name":"hicache_size","type":"int","low":0,"high":300,"step":10`, `"tp":8,"host_budget_gb":400`, "0 10 20 30 40 50", true, nil},
		{"a host pool by choices", `"name":"--hicache-size","type":"cat","choices":[64,0,48,16]`, `"tp":8,"host_budget_gb":400`, "0 16 48", true, nil},
		{"a host pool and no budget at all", `"name":"hicache_size","type":"int","low":0,"high":300`, `"tp":8,"host_budget_gb":-7`, "0", true, nil},
		{"a host pool in fractions", `"name":"hicache_size","type":"float","low":0,"high":1,"step":0.1`, `"tp":3,"host_budget_gb":0.7`, "0.0 0.1 0.2", true, nil},
		{"lossless KV", `"name":"kv_cache_dtype","type":"cat","choices":["fp8_e4m3","auto","bf16"]`, "", `"bf16"`, false, []float64{0}},
		{"auto where nothing else is", `"name":"kv_cache_dtype","type":"cat","choices":["fp8_e4m3","auto"]`, "", `"auto"`, false, []float64{0}},
		{"fp8 by choice", `"name":"kv_cache_dtype","type":"cat","choices":["fp8_e4m3","auto","bf16"]`, `"fp8_opt_in":true`, `"fp8_e4m3" "auto" "bf16"`, false, []float64{0, 1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(tt.spec, `"name"`) {
				tt.spec = `"name":"a",` + tt.spec
			}
			space, _ := readInit(t, `{"op":"init","space":[{`+tt.spec+`}],"facts":{`+tt.facts+`}}`)
			k := space[0]
			if got := words(k); got != tt.words {
				t.Errorf("values %s, want %s", got, tt.words)
			}
			if got := k.knob.Kind == physics.Ordered; got != tt.ordered {
				t.Errorf("ordered %v, want %v", got, tt.ordered)
			}
			if tt.values == nil {
				if err := json.Unmarshal([]byte("["+strings.ReplaceAll(tt.words, " ", ",")+"]"), &tt.values); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.values, k.knob.Values); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSuggestFineRanges thins what is too fine, evenly, with both ends.
func TestSuggestFineRanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, spec  string
		first, last string
		least       int // values
	}{
		{"all of a thousand", `"type":"int","low":1,"high":1000`, "1", "1000", 1000},
		{"a long range of integers", `"type":"int","low":0,"high":1000000`, "0", "1000000", 1000},
		{"by ratio", `"type":"int","low":8,"high":1048576,"log":true`, "8", "1048576", 600},
		{"the space of the bench", `"type":"int","low":8,"high":512,"log":true`, "8", "512", 505},
		{"a fine step", `"type":"float","low":0.1,"high":0.9,"step":0.0000001`, "0.1", "0.9", 1000},
		{"no step", `"type":"float","low":0.3,"high":1.6`, "0.3", "1.6", 101},
		{"no step, by ratio", `"type":"float","low":0.0001,"high":10,"log":true`, "0.0001", "10.0", 600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			space, _ := readInit(t, `{"op":"init","space":[{"name":"a",`+tt.spec+`}]}`)
			k := space[0]
			n := len(k.words)
			if n < tt.least || n > maxGrid || string(k.words[0]) != tt.first || string(k.words[n-1]) != tt.last {
				t.Fatalf("%d values from %s to %s", n, k.words[0], k.words[n-1])
			}
			if !slices.IsSorted(k.knob.Values) || len(slices.Compact(slices.Clone(k.knob.Values))) != n {
				t.Error("the values do not ascend")
			}
			for i, w := range k.words {
				if len(w) > 12 {
					t.Errorf("value %d is %s", i, w)
				}
			}
			var widest, narrowest float64 = 0, math.Inf(1)
			for i := range k.knob.Values[n/2 : n-1] {
				low, high := k.knob.Values[n/2+i], k.knob.Values[n/2+i+1]
				gap := high - low
				if k.knob.Log {
					gap = math.Log(high / low)
				}
				widest, narrowest = max(widest, gap), min(narrowest, gap)
			}
			if n == maxGrid && widest > 2.1*narrowest {
				t.Errorf("gaps from %v to %v are not even", narrowest, widest)
			}
		})
	}
}

func TestSuggestRoles(t *testing.T) {
	t.Parallel()
	space, _ := readInit(t, `{"op":"init","space":[
		{"name":"hicache_write_policy","type":"cat","choices":["write_through","write_back"]},
		{"name":"mem_fraction_static","type":"float","low":0.8,"high":0.9,"step":0.005},
		{"name":"chunked-prefill-size","type":"cat","choices":[4096,2048]},
		{"name":"max_running_requests","type":"int","low":8,"high":512,"log":true},
		{"name":"cuda_graph_max_bs","type":"cat","choices":["few","many"]},
		{"name":"hicache_size","type":"int","low":0,"high":300},
		{"name":"knob_a","type":"cat","choices":["a1","a2"]},
		{"name":"schedule_conservativeness","type":"float","low":0.3,"high":1.6,"step":0.05},
		{"name":"hicache_mem_layout","type":"cat","choices":["layer_first"]}]}`)
	var roles []physics.Role
	var needs []int
	for _, k := range space {
		roles, needs = append(roles, k.knob.Role), append(needs, k.knob.Needs)
	}
	want := []physics.Role{
		physics.RoleOther, physics.RoleMemFraction, physics.RoleChunk, physics.RoleMaxRunning, physics.RoleOther, // words are no batch sizes
		physics.RoleHostPool, physics.RoleOther, physics.RoleConservativeness, physics.RoleOther,
	}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{5, -1, -1, -1, -1, -1, -1, -1, 5}, needs); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}

func TestSuggestStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, spec, facts, want string }{
		{"nearest", `"name":"mem_fraction_static","type":"float","low":0.8,"high":0.9,"step":0.005`, `"defaults":{"mem_fraction_static":0.8524}`, "0.85"},
		{"outside", `"name":"mem_fraction_static","type":"float","low":0.8,"high":0.9,"step":0.005`, `"defaults":{"mem_fraction_static":0.99}`, "0.9"},
		{"a choice", `"name":"attention_backend","type":"cat","choices":["fa3","triton"]`, `"defaults":{"attention_backend":"triton"}`, `"triton"`},
		{"none of the choices", `"name":"attention_backend","type":"cat","choices":["fa3","triton"]`, `"defaults":{"attention_backend":"flashinfer"}`, `"fa3"`},
		{"a list for a default", `"name":"attention_backend","type":"cat","choices":["fa3","triton"]`, `"defaults":{"attention_backend":["triton"]}`, `"fa3"`},
		{"a boolean", `"name":"enable_mixed_chunk","type":"cat","choices":[true,false]`, `"defaults":{"enable_mixed_chunk":false}`, `false`},
		{"a number between choices", `"name":"knob_c","type":"cat_ord","choices":[1,16,32]`, `"defaults":{"knob_c":20}`, `16`},
		{"unknown: SGLang's own", `"name":"page_size","type":"cat","choices":[16,1]`, ``, `1`},
		{"unknown: the careful end", `"name":"mem_fraction_static","type":"float","low":0.8,"high":0.9,"step":0.005`, ``, "0.8"},
		{"unknown: no host pool", `"name":"hicache_size","type":"int","low":0,"high":300`, ``, "0"},
		{"unknown: the middle", `"name":"knob_b","type":"int","low":1,"high":9`, ``, "5"},
		{"a host pool that does not fit", `"name":"hicache_size","type":"int","low":0,"high":300`, `"tp":4,"host_budget_gb":90,"defaults":{"hicache_size":100}`, "22"},
		{"a lossy default", `"name":"kv_cache_dtype","type":"cat","choices":["fp8_e4m3","bf16"]`, `"defaults":{"kv_cache_dtype":"fp8_e4m3"}`, `"bf16"`},
		{"others are not looked at", `"name":"a","type":"cat","choices":["x"]`, `"defaults":{"b":1}`, `"x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			space, r := readInit(t, `{"op":"init","space":[{`+tt.spec+`}],"facts":{`+tt.facts+`}}`)
			if got := string(space[0].words[space.start(r.Facts.Defaults)[0]]); got != tt.want {
				t.Errorf("starts at %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSuggestFacts(t *testing.T) {
	t.Parallel()
	space, r := readInit(t, `{"op":"init","space":[{"name":"kv_cache_dtype","type":"cat","choices":["bf16","fp8_e4m3","auto"]},{"name":"hicache_size","type":"int","low":0,"high":300}],
		"facts":{"tp":8,"gpu_gb":95.6,"host_budget_gb":400,"model_hint":{"kind":"moe_mla","kv_bytes_per_token_rank":70272,"weights_gb_rank":74},
		"workload_hint":{"clients":150,"in_tokens":800,"out_tokens":6000,"shared_prefix":900},"fp8_opt_in":true,"defaults":{}},"budget":30,"seed":7}`)
	got := r.Facts.physics(space)
	want := physics.Facts{
		Ranks: 8, GPUGiB: 95.6, WeightsGiB: 74, CellBytes: 70272, HostGB: 400, PoolBytes: 1 << 30, CellScale: []float64{1, 0.5, 1},
		Load: physics.Load{Clients: 150, InputTokens: 800, OutputTokens: 6000, SharedTokens: 800},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(physics.Facts{}, "Admit")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	space, r = readInit(t, `{"op":"init","space":[{"name":"a","type":"cat","choices":[1]}]}`)
	if diff := cmp.Diff(physics.Facts{Ranks: 1, PoolBytes: 1 << 30}, r.Facts.physics(space), cmpopts.IgnoreFields(physics.Facts{}, "Admit")); diff != "" {
		t.Errorf("nothing known (-want +got):\n%s", diff)
	}
	for text, want := range map[string]uint64{"": 0, "null": 0, "7": 7, "-1": 1<<64 - 1} {
		if got := suggestSeed(json.RawMessage(text)); got != want {
			t.Errorf("seed %q is %d, want %d", text, got, want)
		}
	}
	if suggestSeed(json.RawMessage(`"a"`)) == suggestSeed(json.RawMessage(`"b"`)) {
		t.Error("two texts are one seed")
	}
}

// TestSuggestAdmit is the second guard of the host's memory: the search asks for each point, whatever
// its grid holds.
func TestSuggestAdmit(t *testing.T) {
	t.Parallel()
	open, _ := readInit(t, `{"op":"init","space":[{"name":"a","type":"cat","choices":[1]},{"name":"hicache_size","type":"int","low":0,"high":300}],"facts":{"tp":8}}`)
	budget := 400.0
	admit := open.admit(&suggestFacts{TP: 8, HostBudgetGB: &budget})
	for gb, want := range map[int]bool{0: true, 50: true, 51: false, 300: false} {
		if admit(physics.Point{0, gb}) != want {
			t.Errorf("%d GB on each of 8 ranks within 400: not %v", gb, want)
		}
	}
	if open.admit(&suggestFacts{TP: 8}) != nil {
		t.Error("an unknown budget limits")
	}
}

func TestSuggestObservation(t *testing.T) {
	t.Parallel()
	point := physics.Point{3}
	blank := func(s physics.Status, frac float64, change func(*physics.Observation)) physics.Observation {
		o := physics.Blank(point, s)
		o.Frac = frac
		if change != nil {
			change(&o)
		}
		return o
	}
	for _, tt := range []struct {
		name, obs string
		want      physics.Observation
	}{
		{
			"all of a log", `{"trial":0,"status":"ok","value":700.5,"frac":0.5,"cost_min":12.5,"series":[[0.1,650],[0.5,700.5]],"log":{"avail_before_load_gb":94.9,"avail_after_load_gb":21.7,
			"max_total_num_tokens":159277,"kv_gb":10.4,"avail_after_kv_gb":11.3,"avail_after_graph_gb":5.47,"startup_min":6.5,"running_req":41.5,"token_usage":0.9,"cache_hit_rate":0.25,"retract_frac":0,"min_free_gb":0}}`,
			blank(physics.OK, 0.5, func(o *physics.Observation) {
				o.Value, o.CostMin, o.BeforeLoadGiB, o.AfterLoadGiB, o.Tokens, o.KVGiB = 700.5, 12.5, 94.9, 21.7, 159277, 10.4
				o.AfterKVGiB, o.AfterGraphGiB, o.StartupMin, o.Running, o.HitRatio, o.LowWaterGiB = 11.3, 5.47, 6.5, 41.5, 0.25, 0
			}),
		},
		{"no log", `{"status":"ok","value":1}`, blank(physics.OK, 1, func(o *physics.Observation) { o.Value = 1 })},
		{"null is not known", `{"status":"aborted","value":null,"frac":null,"log":null}`, blank(physics.Pruned, 0.3, nil)},
		{"aborted", `{"status":"aborted","value":1,"frac":0.2}`, blank(physics.Pruned, 0.2, func(o *physics.Observation) { o.Value = 1 })},
		{"started", `{"status":"started"}`, blank(physics.Started, 0, nil)},
		{"crashed", `{"status":"start_crash","reason":"bad_flags"}`, blank(physics.Crashed, 0, nil)},
		{"no memory to start", `{"status":"start_oom"}`, blank(physics.StartOOM, 0, nil)},
		{"out of memory under load", `{"status":"load_oom","series":[[0.1,1],[0.4,1]]}`, blank(physics.LoadOOM, 0.4, nil)},
		{"a series of nothing", `{"status":"load_oom","series":[[]]}`, blank(physics.LoadOOM, 0, nil)},
		{"host", `{"status":"host_oom"}`, blank(physics.HostOOM, 0, nil)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var obs suggestedObservation
			if err := json.Unmarshal([]byte(tt.obs), &obs); err != nil {
				t.Fatal(err)
			}
			got, err := obs.physics(point)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSuggestSnaps takes configurations that were never suggested for the nearest one.
func TestSuggestSnaps(t *testing.T) {
	t.Parallel()
	space, r := readInit(t, `{"op":"init","space":[{"name":"mem_fraction_static","type":"float","low":0.8,"high":0.9,"step":0.01},
		{"name":"page_size","type":"cat","choices":[64,1,16]},{"name":"attention_backend","type":"cat","choices":["fa3","triton"]}],"facts":{"defaults":{"attention_backend":"triton"}}}`)
	home := space.start(r.Facts.Defaults)
	for _, tt := range []struct {
		config string
		want   physics.Point
	}{
		{`{"mem_fraction_static":0.8349,"page_size":1,"attention_backend":"fa3"}`, physics.Point{3, 1, 0}},
		{`{"mem_fraction_static":0.99,"page_size":20,"attention_backend":"triton"}`, physics.Point{10, 2, 1}},
		{`{"mem_fraction_static":0.85000000001,"tp_size":8}`, physics.Point{5, home[1], 1}},
	} {
		var config map[string]json.RawMessage
		if err := json.Unmarshal([]byte(tt.config), &config); err != nil {
			t.Fatal(err)
		}
		got, keptOut, err := space.point(config, home)
		if err != nil || keptOut != "" || !got.Equal(tt.want) {
			t.Errorf("%s is %v (%q, %v), want %v", tt.config, got, keptOut, err, tt.want)
		}
	}
}
